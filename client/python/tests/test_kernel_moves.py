# SPDX-License-Identifier: MIT
"""The moves that need GPUs, on the host: threads are the ranks, and NumPy's copies are the kernels.

test_nccl.py has the kernels and real peers. These tests have the arithmetic of addresses, stages and rounds.
"""

import contextlib
import ctypes
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from conftest import run_threads
from shufd import _moves, _one_sided, _row_kernels
from shufd._moves import BothSidesLists, Numbers, OneSidedLists, StagedMove, TorchMove
from shufd._one_sided import DirectMove, PeerStage, Room, Stage, WrittenMove, part_for, room_for
from shufd._plan import PART_UNIT

LIMIT_S = 60


def memory(address, count, dtype):
    """The numbers at an address."""
    bytes = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address) if count else bytearray()
    return np.frombuffer(bytes, dtype)


def rows_at(address, count, row):
    return memory(address, count * row, np.uint8).reshape(count, row)


class HostTable:
    """Does what move_rows() of _row_kernels.py does. Several segments move side by side there, so their order
    here is reversed."""

    def __init__(self, groups, row_bytes, width, device):
        self.groups, self.row, self.dtype = groups, row_bytes, {4: np.uint32, 8: np.uint64}[width]

    def launch(self, group):
        for s in reversed(self.groups[group]):
            sources, targets = (
                memory(list, s.rows, self.dtype) if list else np.arange(s.rows) for list in (s.source_list, s.target_list)
            )
            if s.rows:
                rows = rows_at(s.source, int(sources.max()) + 1, self.row)[sources]
                rows_at(s.target, int(targets.max()) + 1, self.row)[targets] = rows


class HostSender:
    """Does what send_rows() of _row_kernels.py does."""

    def __init__(self, leaf, row_bytes, windows, groups):
        self.leaf, self.row, self.windows, self.groups = leaf, row_bytes, windows, groups

    def launch(self, group, expected):
        source = self.leaf.numpy().reshape(len(self.leaf), self.row)
        for request in reversed(self.groups[group]) if self.windows else ():
            begins = memory(request.begins, self.windows + 1, np.uint32).astype(np.int64)
            assert (np.diff(begins) >= 0).all()
            numbers = memory(request.records, int(begins[-1] - begins[0]), np.uint32)
            rows_at(request.target, int(begins[-1]), self.row)[begins[0] :] = source[numbers]


def take_on_host(out, row, plan, owners):
    """Does what take_rows() of _row_kernels.py does."""
    places = np.arange(plan.places)
    part = places // plan.part
    parts = max(1, -(-plan.places // plan.part))
    begins = memory(plan.begins, parts * (plan.windows + 1), np.uint32).reshape(parts, -1)
    index = memory(plan.indices, plan.places, np.uint32)
    records = memory(plan.records, plan.places, np.uint32)[part * plan.part + index]
    owner = sum((index >= begins[part, each.window]).astype(int) for each in owners[1:]) + 0 * index.astype(int)
    target = out.numpy().reshape(plan.places, row)
    for rank in set(owner.tolist()):
        mine = records[owner == rank]
        target[owner == rank] = rows_at(owners[rank].rows, int(mine.max()) + 1, row)[mine]


class HostStream:
    """Work on the host ends at once or, if it is `late`, when another stream waits for it."""

    def __init__(self, late=False):
        self.late, self.queued = late, []
        self.cuda_stream = self

    def do(self, work):
        self.queued.append(work)
        if not self.late:
            self.record_event()()

    def wait_event(self, event):
        event()

    def record_event(self):
        queued = self.queued

        def end():
            while queued:
                queued.pop(0)()

        return end


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


class Mixed:
    """Staged moves with a plan in host memory on the last rank. The plans of the others are in the memory of their GPUs."""


def lists_of(client, sizes, outputs, rank, kind, **options):
    plan = client.exchange(sum(sizes), rank=rank, world=len(sizes), input=sizes, output=outputs, **options)
    lists = BothSidesLists(plan)
    for name in ("order", "places") if kind is StagedMove else ():
        setattr(lists, name, Numbers(torch.from_numpy(getattr(lists, name).numbers.copy())))
    return lists


def sources_of(client, sizes, outputs, rank, part, **options):
    plan = client.exchange_one_sided(
        sum(sizes), rank=rank, world=len(sizes), part=part, input=sizes, output=outputs, **options
    )
    return OneSidedLists(plan)


def stages_of(leaves, outputs, width, budget):
    """The stages of all ranks, and their places in memory; None for a rank that needs none."""
    world = len(leaves)
    rooms = [room_for(len(leaf), places, width, world, budget) for leaf, places in zip(leaves, outputs)]
    stages = [
        Stage(room, width, world, "cpu") if len(leaf) + places else None for room, leaf, places in zip(rooms, leaves, outputs)
    ]
    peers = [PeerStage(s.memory.data_ptr(), s.room, s.half) if s else PeerStage(0, Room(), 0) for s in stages]
    return stages, peers


class Pair:
    """The moves of two tensors, one after the other. The second one has the bytes of each row in reverse."""

    def __init__(self, first, second):
        self.first, self.second = first, second
        self.count_rounds, self.prepare, self.begin = first.count_rounds, first.prepare, first.begin

    def run(self, rounds):
        first, second = self.first.run(rounds), self.second.run(rounds)
        assert torch.equal(torch.flip(first, [1]), second)


def moves_of(client, kind, ranks, leaves, outs, sizes, outputs, budget, **options):
    """The moves of all ranks, and what they need. Moves of written rows come with those of another tensor, which uses
    the same stages."""
    world, width = len(sizes), leaves[0].shape[1]
    if kind in (StagedMove, Mixed):
        kinds = [StagedMove] * (world - 1) + [StagedMove if kind is StagedMove else TorchMove]
        plans = [lists_of(client, sizes, outputs, rank, each, **options) for rank, each in enumerate(kinds)]
        return [each(*arguments) for each, *arguments in zip(kinds, ranks, plans, leaves, outs)], plans
    stages, peers = stages_of(leaves, outputs, width, budget)
    rooms = [stage.room if stage else Room(1 << 62, 1 << 62) for stage in stages] if kind is WrittenMove else None
    part = part_for(rooms, sizes, outputs)
    plans = [sources_of(client, sizes, outputs, rank, part, **options) for rank in range(world)]
    if kind is WrittenMove:
        for plan in plans:
            assert all(count <= stage.room.numbers for count, stage in zip(plan.longest(), stages) if stage)
        again = [(torch.flip(leaf, [1]), torch.zeros_like(out)) for leaf, out in zip(leaves, outs)]
        return [
            Pair(WrittenMove(*each, peers, outputs), WrittenMove(*each[:2], *other, peers, outputs))
            for each, other in zip(zip(ranks, plans, leaves, outs), again)
        ], (plans, stages)
    tensors = [leaf.data_ptr() for leaf in leaves]
    return [DirectMove(*each, tensors) for each in zip(ranks, plans, leaves, outs)], plans


def exchange_all(client, kind, rows, sizes, outputs, budget, prepares, **options):
    """The outputs of all ranks. Each rank is a thread. It begins the moves of the first tensor before all ranks agree."""
    world = len(sizes)
    exchange = Exchange(world)
    ranks = [Ranks(rank, world, exchange) for rank in range(world)]
    leaves = [torch.from_numpy(part.copy()) for part in np.split(rows, np.cumsum(sizes)[:-1])]
    outs = [torch.zeros((size, rows.shape[1]), dtype=torch.uint8) for size in outputs]
    moves, needed = moves_of(client, kind, ranks, leaves, outs, sizes, outputs, budget, **options)
    rounds = max(move.count_rounds(budget) for move in moves)

    def run(rank):
        try:
            if prepares:
                prepared = moves[rank].prepare()
                if prepared:
                    prepared()
                moves[rank].begin()
                exchange.barrier.wait()
            moves[rank].run(rounds)
        except BaseException:
            exchange.barrier.abort()  # the others then fail later
            raise

    run_threads(run, world)
    del needed
    return np.concatenate([out.numpy() for out in outs])


def copy_on_host(ordinal, target, source, size, stream):
    stream.do(lambda: ctypes.memmove(target, source, size))


@contextlib.contextmanager
def on_host(late):
    """Short rounds overlap, as long ones do. `late`: requests are written as late as possible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_moves, "Table", HostTable)
        patch.setattr(_moves, "_SHORTEST_ROUND", 512)
        patch.setattr(_one_sided, "Table", HostTable)
        patch.setattr(_one_sided, "Sender", HostSender)
        patch.setattr(_one_sided, "_current_stream", lambda device: HostStream())
        patch.setattr(_one_sided, "_new_stream", lambda device: HostStream(late))
        patch.setattr(_one_sided, "_copy", copy_on_host)
        patch.setattr(_row_kernels, "take_rows", take_on_host)
        yield


KINDS = [StagedMove, Mixed, WrittenMove, DirectMove]


def check(client, kind, sizes, outputs, width, budget, inverse=False, prepares=True):
    rows = np.random.default_rng(len(sizes)).integers(0, 256, (sum(sizes), width), np.uint8)
    options = {"seed": 5, "epoch": sum(sizes), "inverse": inverse}
    with on_host(late=sum(sizes) % 2):
        moved = exchange_all(client, kind, rows, sizes, outputs, budget, prepares, **options)
    one = client.unshuffle if inverse else client.shuffle
    assert np.array_equal(moved, np.asarray(one(rows, seed=5, epoch=sum(sizes))))


SIZES = [
    ([300, 300], [300, 300]),
    ([1000, 3, 0], [1, 1002, 0]),
    ([0, 500, 0, 7], [500, 0, 7, 0]),
    ([1, 0], [0, 1]),
    ([250, 250, 250, 253], [251, 251, 251, 250]),
]


@pytest.mark.parametrize("kind", [StagedMove, Mixed])
@pytest.mark.parametrize("budget", [1, 900, 1 << 20])
@pytest.mark.parametrize("sizes, outputs", SIZES)
def test_staged_equals_one_shuffle(client, kind, sizes, outputs, budget):
    check(client, kind, sizes, outputs, 8, budget)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kind", [WrittenMove, DirectMove])
@pytest.mark.parametrize(
    "sizes, outputs",
    [
        *SIZES,
        ([PART_UNIT] * 2, [PART_UNIT] * 2),
        ([400_000, 300_001], [300_000, 400_001]),
        ([0, 500_000, 20_000], [520_000 - 7, 0, 7]),
        ([2_500_000, 100_000], [100_000, 2_500_000]),  # two windows
    ],
)
@pytest.mark.parametrize("budget, prepares", [(5 << 20, True), (64 << 20, False)])
def test_one_sided_equals_one_shuffle(client, kind, sizes, outputs, budget, prepares, inverse):
    check(client, kind, sizes, outputs, 3, budget, inverse, prepares)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_sizes(client, data):
    world = data.draw(st.integers(2, 5))
    kind = data.draw(st.sampled_from(KINDS))
    is_staged = kind in (StagedMove, Mixed)
    most = 120 if is_staged else 90_000
    sizes = data.draw(st.lists(st.integers(0, most), min_size=world, max_size=world).filter(any))
    cuts = sorted(data.draw(st.lists(st.integers(0, sum(sizes)), min_size=world - 1, max_size=world - 1)))
    outputs = np.diff([0, *cuts, sum(sizes)]).tolist()
    budget = data.draw(st.sampled_from([1, 100, 1000, 1 << 20])) if is_staged else 8 << 20
    width, inverse, prepares = data.draw(st.integers(1, 20)), data.draw(st.booleans()), data.draw(st.booleans())
    check(client, kind, sizes, outputs, width, budget, inverse, prepares)


@settings(deadline=None)
@given(data=st.data())
def test_the_stage_fits_the_budget(data):
    records, places = (data.draw(st.integers(0, 1 << 33)) for _ in range(2))
    row, world = data.draw(st.integers(1, 63)), data.draw(st.integers(2, 64))
    budget = data.draw(st.integers(0, 1 << 33))
    room = room_for(records, places, row, world, budget)
    if room is None:
        assert budget < 2 * (PART_UNIT * row + 128 + world * 4 * (PART_UNIT + 640))
    else:
        assert 2 * room.bytes_of(row, world) <= budget


@settings(deadline=None)
@given(data=st.data())
def test_a_part_fits_the_stages(data):
    world = data.draw(st.integers(2, 8))
    sizes = data.draw(st.lists(st.integers(0, 1 << 30), min_size=world, max_size=world).filter(any))
    cuts = sorted(data.draw(st.lists(st.integers(0, sum(sizes)), min_size=world - 1, max_size=world - 1)))
    outputs = np.diff([0, *cuts, sum(sizes)]).tolist()
    rooms = [room_for(size, output, 8, world, 1 << 30) for size, output in zip(sizes, outputs)]
    part = part_for(rooms, sizes, outputs)
    assert part % PART_UNIT == 0
    for room, size, output in zip(rooms, sizes, outputs) if part else ():
        assert room.rows >= min(part, output)
        share = part * size / sum(sizes)
        assert room.numbers >= min(size, part, share + 8 * share**0.5)
