# SPDX-License-Identifier: MIT
"""The moves that need GPUs, on the host: threads are the ranks, and a loop over addresses is the kernel.

nccl_cases.py has the kernel and real peers. These tests have the arithmetic of segments, stages and rounds.
"""

import contextlib
import ctypes
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from shufd import _kernel_move, _read_move
from shufd._kernel_move import StagedMove
from shufd._plan_lists import Lists, Numbers
from shufd._read_move import DirectMove, Peers, PulledMove, Stage

LIMIT_S = 60


class HostTable:
    """Does what move_rows() of _row_kernel.py does. Several segments move side by side there, so their order
    here is reversed."""

    def __init__(self, groups, row_bytes, width, device):
        self.groups, self.row, self.number = groups, row_bytes, {4: ctypes.c_uint32, 8: ctypes.c_uint64}[width]

    def launch(self, group):
        for segment in reversed(self.groups[group]):
            for k in range(segment.rows):
                i, o = (
                    self.number.from_address(list + k * ctypes.sizeof(self.number)).value if list else k
                    for list in (segment.source_list, segment.target_list)
                )
                ctypes.memmove(segment.target + o * self.row, segment.source + i * self.row, self.row)


class Exchange:
    """What the threads share."""

    def __init__(self, world):
        self.barrier = threading.Barrier(world, timeout=LIMIT_S)
        self.sent = [None] * world


class Ranks:
    """The ranks of threads."""

    def __init__(self, rank, world, exchange):
        self.rank, self.world, self.exchange = rank, world, exchange

    def wait_for_all(self, device):
        self.exchange.barrier.wait()

    def start(self, received, sent, arriving, to):
        self.exchange.sent[self.rank] = sent.split(to)
        self.exchange.barrier.wait()
        received.copy_(torch.cat([self.exchange.sent[source][self.rank] for source in range(self.world)]))
        self.exchange.barrier.wait()
        return lambda: None


def lists_of(client, sizes, outputs, rank, **options):
    plan = client.exchange(sum(sizes), rank=rank, world=len(sizes), input=sizes, output=outputs, **options)
    lists = Lists(plan)
    for name in ("order", "places"):
        setattr(lists, name, Numbers(torch.from_numpy(getattr(lists, name).numbers.copy())))
    return lists


def prepare_reads(kind, ranks, lists, leaf, out, stages, leaves, budget):
    """The move of a rank, prepared as _begin() does it before all ranks agree on the rounds."""
    peers = Peers(
        [stage.memory.data_ptr() if stage else 0 for stage in stages],
        [stage.half if stage else 0 for stage in stages],
        [each.data_ptr() for each in leaves],
    )
    move = kind(ranks, lists, leaf, out, stages[ranks.rank], peers)
    move.prepare(move.count_rounds(budget))
    ranks.wait_for_all(None)
    move.prepare_beside(move.count_rounds(budget))
    return move


def exchange_all(client, kind, rows, sizes, outputs, budget, **options):
    """The outputs of all ranks. Each rank is a thread."""
    world = len(sizes)
    exchange = Exchange(world)
    plans = [lists_of(client, sizes, outputs, rank, **options) for rank in range(world)]
    leaves = [torch.from_numpy(part.copy()) for part in np.split(rows, np.cumsum(sizes)[:-1])]
    outs = [torch.zeros((size, rows.shape[1]), dtype=torch.uint8) for size in outputs]
    stages = [Stage([leaf], world, budget) if len(leaf) and kind is not StagedMove else None for leaf in leaves]
    rounds, errors = [0] * world, []

    def run(rank):
        ranks, lists = Ranks(rank, world, exchange), plans[rank]
        if kind is StagedMove:
            move = StagedMove(ranks, lists, leaves[rank], outs[rank])
        else:
            move = prepare_reads(kind, ranks, lists, leaves[rank], outs[rank], stages, leaves, budget)
        rounds[rank] = move.count_rounds(budget)
        exchange.barrier.wait()
        lists.all_to = [each.to for each in plans]
        if len(set(rounds)) > 1:
            move.forget_preparation()
        move.run(max(rounds))

    def run_safely(rank):
        try:
            run(rank)
        except BaseException as error:
            errors.append(error)
            exchange.barrier.abort()

    threads = [threading.Thread(target=run_safely, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    return np.concatenate([out.numpy() for out in outs])


@contextlib.contextmanager
def on_host(width, is_wide):
    """A row counts as wide or not, whatever its width. Short rounds overlap, as long ones do."""
    before = _kernel_move.Table, _kernel_move._SHORTEST_ROUND, _read_move.LEAST_DIRECT_BYTES
    _kernel_move.Table, _kernel_move._SHORTEST_ROUND = HostTable, 512
    _read_move.LEAST_DIRECT_BYTES = width if is_wide else width + 1
    try:
        yield
    finally:
        _kernel_move.Table, _kernel_move._SHORTEST_ROUND, _read_move.LEAST_DIRECT_BYTES = before


KINDS = [StagedMove, PulledMove, DirectMove]


def check(client, kind, sizes, outputs, width, budget, inverse=False):
    rows = np.random.default_rng(len(sizes)).integers(0, 256, (sum(sizes), width), np.uint8)
    options = {"seed": 5, "epoch": sum(sizes), "inverse": inverse}
    with on_host(width, kind is DirectMove):
        moved = exchange_all(client, kind, rows, sizes, outputs, budget, **options)
    one = client.unshuffle if inverse else client.shuffle
    assert np.array_equal(moved, np.asarray(one(rows, seed=5, epoch=sum(sizes))))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sizes, outputs",
    [
        ([300, 300], [300, 300]),
        ([1000, 3, 0], [1, 1002, 0]),
        ([0, 500, 0, 7], [500, 0, 7, 0]),
        ([1, 0], [0, 1]),
        ([250, 250, 250, 253], [251, 251, 251, 250]),
    ],
)
@pytest.mark.parametrize("budget", [1, 900, 1 << 20])
def test_equal_to_one_shuffle(client, kind, sizes, outputs, budget):
    check(client, kind, sizes, outputs, 8, budget)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_sizes(client, data):
    world = data.draw(st.integers(2, 5))
    sizes = data.draw(st.lists(st.integers(0, 120), min_size=world, max_size=world).filter(any))
    cuts = sorted(data.draw(st.lists(st.integers(0, sum(sizes)), min_size=world - 1, max_size=world - 1)))
    outputs = np.diff([0, *cuts, sum(sizes)]).tolist()
    check(
        client, data.draw(st.sampled_from(KINDS)), sizes, outputs, data.draw(st.integers(1, 20)),
        data.draw(st.sampled_from([1, 100, 1000, 1 << 20])), data.draw(st.booleans()),
    )  # fmt: skip


def test_the_stage_fits_the_budget():
    leaf = torch.zeros((10_000, 8), dtype=torch.uint8)
    for budget in (1 << 20, 20_000, 1000):
        stage = Stage([leaf], 4, budget)
        assert len(stage.memory) == 2 * stage.half <= budget + 2 * (4 * 8 + 16)
