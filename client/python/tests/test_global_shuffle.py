# SPDX-License-Identifier: MIT
"""shufd.torch.global_shuffle over gloo, with 1 to 8 processes, against `shufctl shuffle` of the file of all rows."""

import contextlib
import dataclasses
import datetime
import math
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import types
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import shufd
import shufd.torch
from conftest import Daemon, await_value
from ranks import STORE, Failed, Job, cut
from shufd import _agreement, _global_shuffle, _moves, _one_sided, _process_group, _ranks, _serve
from shufd._one_sided import Room
from shufd._plan import Plan

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/global_shuffle.py"
MOST = 8


@pytest.fixture(scope="module")
def job(daemon):
    environment = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{pathlib.Path(__file__).parent}:{environment}"
    job = Job(MOST)
    yield job
    job.close()
    os.environ["PYTHONPATH"] = environment


def rows_of(n, width=8, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (n, width), np.uint8)


def shuffle_file(client, rows, seed, epoch=0):
    """The definition: what shufctl makes of the file of all rows."""
    if len(rows) == 0:
        return rows
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "rows"), pathlib.Path(directory, "shuffled")
        before.write_bytes(rows.tobytes())
        subprocess.run(
            [_serve.program_of("shufctl"), "shuffle", "--in", before, "--record", str(rows.shape[1]), "--seed", str(seed),
             "--epoch", str(epoch), "--out", after, "--socket", client.socket],
            check=True, capture_output=True,
        )  # fmt: skip
        return np.fromfile(after, np.uint8).reshape(rows.shape)


def check(job, client, rows, before, after, dtype=None, strided=False, shape=None, budget=256 << 20, **options):
    """A shuffle of these sizes equals shufctl's of all rows, and its inverse undoes it."""
    arguments = [(own, dtype, strided, shape) for own in cut(rows, before)]
    shuffled = job.call("shuffle", arguments, [dict(output_size=s, budget=budget, **options) for s in after])
    assert [len(part) for part in shuffled] == list(after)
    assert np.array_equal(np.concatenate(shuffled), shuffle_file(client, rows, **options))
    arguments = [(own, dtype, strided, shape) for own in shuffled]
    keywords = [dict(output_size=s, budget=budget, inverse=True, **options) for s in before]
    back = job.call("shuffle", arguments, keywords)
    assert np.array_equal(np.concatenate(back), rows)


def evenly(n, world):
    return [n // world + (rank < n % world) for rank in range(world)]


@pytest.mark.parametrize("n", [3, 257, 10_000])
@pytest.mark.parametrize("world", range(1, MOST + 1))
def test_equal_to_shufctl(job, client, world, n):
    sizes = evenly(n, world)
    check(job, client, rows_of(n), sizes, sizes, seed=world, epoch=n)


@pytest.mark.parametrize(
    "before, after",
    [
        ([1000], [1000]),
        ([1000, 0, 3999, 1], [1000, 0, 3999, 1]),
        ([0, 5, 0, 700], [200, 0, 505, 0]),
        ([0, 0, 3], [1, 1, 1]),
        ([250, 250, 250, 250, 0, 0, 0, 0], [125] * 8),
        ([125] * 8, [0, 0, 0, 1000, 0, 0, 0, 0]),
        ([2, 1], [0, 3]),
    ],
)
def test_uneven_empty_and_elastic(job, client, before, after):
    check(job, client, rows_of(sum(before)), before, after, seed=7)


def test_without_rows(job):
    results = job.call("shuffle", [(rows_of(0),)] * 3, dict(seed=7))
    assert all(result.shape == (0, 8) for result in results)


@st.composite
def exchanges(draw):
    world = draw(st.integers(1, MOST))
    sizes = st.lists(st.integers(0, 20), min_size=world, max_size=world)
    before = draw(sizes)
    cuts = sorted(draw(st.lists(st.integers(0, sum(before)), min_size=world - 1, max_size=world - 1)))
    after = np.diff([0, *cuts, sum(before)]).tolist()
    return before, after


DTYPES = {None: 1, "bool": 1, "int16": 2, "bfloat16": 2, "float32": 4, "int64": 8, "complex32": 4, "complex64": 8,
          "complex128": 16, "uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1}  # fmt: skip
DTYPES = {name: size for name, size in DTYPES.items() if name is None or hasattr(torch, name)}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    exchanges(), st.sampled_from(list(DTYPES)), st.lists(st.integers(1, 5), max_size=3), st.booleans(),
    st.sampled_from([1, 300, 1000, 1 << 28]), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1),
)  # fmt: skip
def test_any_shape(job, client, sizes, dtype, shape, strided, budget, seed, epoch):
    before, after = sizes
    rows = rows_of(sum(before), math.prod(shape) * DTYPES[dtype])
    if dtype == "bool":
        rows %= 2
    check(job, client, rows, before, after, dtype, strided, shape, budget, seed=seed, epoch=epoch)


def test_wide_rows(job, client):
    check(job, client, rows_of(40, 200_001), [10, 0, 30], [20, 19, 1], seed=7)


@contextlib.contextmanager
def one_plan_a_rank(client, world):
    """The ranks request one plan each, for all of their tensors."""

    def count():
        state = client.status()
        return state["computed"] + state["hits"]

    before = count()
    yield
    assert count() - before == world


def test_structures(job, client):
    n, sizes = 600, [100, 200, 300]
    number, point = np.arange(n), np.random.default_rng(3).random((n, 2, 3))
    empty = np.zeros((n, 0, 4), np.float32)
    order = client.permute(n, 9)
    parts = list(zip(*(cut(values, sizes) for values in (number, point, empty))))
    keys = ("number", "point", "empty")
    dicts = [(dict(zip(keys if rank else reversed(keys), part if rank else part[::-1])),) for rank, part in enumerate(parts)]
    with one_plan_a_rank(client, 3):
        results = job.call("shuffle_numbers", dicts, dict(seed=9))
    assert list(results[0]) == ["empty", "point", "number"]
    for key, values in zip(keys, (number, point, empty)):
        got = np.concatenate([result[key] for result in results])
        assert got.dtype == values.dtype and np.array_equal(got, values[order])
    for kind, epoch in ((list, 1), (tuple, 2)):
        with one_plan_a_rank(client, 3):
            results = job.call("shuffle_numbers", [(kind(part),) for part in parts], dict(seed=9, epoch=epoch))
        order = client.permute(n, 9, epoch)
        assert all(isinstance(result, kind) for result in results)
        assert np.array_equal(np.concatenate([result[1] for result in results]), point[order])


def test_rounds_stay_within_the_budget(job, client):
    rows, sizes, budget = rows_of(6000, 100), [1000, 2000, 3000], 30_000
    results = job.call("measure_rounds", [(own,) for own in cut(rows, sizes)], dict(seed=7, budget=budget))
    assert np.array_equal(np.concatenate([result[0] for result in results]), client.shuffle(rows, 7))
    rounds = {count for _, _, count in results}
    assert len(rounds) == 1 and rounds.pop() >= 6000 * 108 // budget
    for _, most, _ in results:
        assert budget // 8 < most <= budget + 4 * 3 * 108  # a row more for each pair


# ---- Faults --------------------------------------------------------------------------------------


def fails_alike(results, kind, words):
    """All ranks have failed with the same error."""
    assert all(isinstance(result, Failed) for result in results), results
    assert len({(result.kind, result.text) for result in results}) == 1, [str(r) for r in results]
    assert results[0].kind == kind and words in results[0].text, str(results[0])


def plans_of(client):
    """The leases of plans. Those of one rank alone may wait for the next call of its default client."""
    return [lease for lease in client.leases() if lease["kind"] == "exchange" and lease["world"] > 1]


def still_works(job, client):
    rows = rows_of(100)
    check(job, client, rows, [50, 20, 30], [30, 30, 40], seed=5)


@pytest.mark.parametrize(
    "differs, words",
    [
        (dict(seed=8), "rank 2: seed: 8: expected 7, as on rank 0"),
        (dict(epoch=1), "rank 2: epoch: 1: expected 0, as on rank 0"),
        (dict(inverse=True), "rank 2: inverse: True: expected False, as on rank 0"),
        (dict(algorithm="lcg"), "rank 2: algorithm: lcg: expected primefold, as on rank 0"),
    ],
)
def test_ranks_disagree(job, client, differs, words):
    results = job.call_each("shuffle", [(rows_of(10),)] * 3, [dict(seed=7), dict(seed=7), {"seed": 7, **differs}])
    fails_alike(results, "Mismatch", words)
    still_works(job, client)


def test_versions_disagree(job, client):
    results = job.call_each("shuffle_with_version", [(rows_of(10), _agreement.VERSION), (rows_of(10), 1)])
    fails_alike(results, "Mismatch", f"rank 1: version: 1: expected {_agreement.VERSION}, as on rank 0")
    still_works(job, client)


@pytest.mark.parametrize("world", [2, 5])
def test_agreement_through_the_store(job, client, world):
    rows = rows_of(1000)
    for epoch in range(3):
        parts = job.call("shuffle_by_store", [(own,) for own in cut(rows, evenly(1000, world))], dict(seed=7, epoch=epoch))
        assert np.array_equal(np.concatenate(parts), np.asarray(client.shuffle(rows, seed=7, epoch=epoch)))
    results = job.call_each(
        "shuffle_by_store", [(rows_of(10),)] * world, [dict(seed=7 + (rank == world - 1)) for rank in range(world)]
    )
    fails_alike(results, "Mismatch", f"rank {world - 1}: seed: 8: expected 7")
    assert all(part.shape == (0, 8) for part in job.call("shuffle_by_store", [(rows_of(0),)] * world, dict(seed=7)))


def test_rank_that_is_interrupted_fails_the_later_calls(job, client):
    """Otherwise the exchanges of different calls could meet."""
    *others, last = job.call("interrupted_by_store", [(rows_of(10), 3)] * 3)
    assert last[0] == "KeyboardInterrupt: " and all("start all ranks again" in outcome for outcome in last[1:])
    for outcomes in others:
        assert all("start all ranks again" in outcome for outcome in outcomes[1:])
    still_works(job, client)


def test_rank_with_little_memory_takes_more_rounds(job, client):
    rows, world = rows_of(10_000, 64), 3
    arguments = [(own, 20_000) for own in cut(rows, evenly(10_000, world))]
    results = job.call("shuffle_with_little_memory", arguments, dict(seed=7))
    assert np.array_equal(np.concatenate([result[0] for result in results]), np.asarray(client.shuffle(rows, seed=7)))
    rounds = [result[2] for result in results]
    assert min(rounds) == max(rounds) >= 2 * (10_000 // world) * 64 // 20_000
    results = job.call_each("shuffle_with_little_memory", [(own, 0) for own, _ in arguments], dict(seed=7))
    fails_alike(results, "OutOfMemory", "global_shuffle: rank 2: no memory on cpu for the buffers")
    still_works(job, client)


def test_tensors_disagree(job, client):
    a, b = np.zeros((4, 2), np.float32), np.zeros((4, 3), np.float32)

    def refused(first, second, words):
        fails_alike(job.call_each("shuffle_numbers", [(first,), (second,)], dict(seed=7)), "Mismatch", words)

    refused(a, b, "rank 1: shape: [3]: expected [2], as on rank 0")
    refused(a, a.astype(np.float64), "rank 1: dtype: torch.float64: expected torch.float32")
    refused([a], [a, a], "rank 1: tensors: 2: expected 1")
    refused([a], (a,), "rank 1: structure: tuple: expected list")
    refused({"x": a}, {"y": a}, "rank 1: name of tensor 'x': 'y': expected 'x'")
    refused({"x": a}, {"x": b}, "rank 1: shape of tensor 'x': [3]: expected [2]")
    still_works(job, client)


def test_wrong_arguments_of_one_rank(job, client):
    good, rows = torch.zeros(4, 2), rows_of(10)

    def refused(data, words, **options):
        arguments = [(good,), (data,), (good,)]
        keywords = [dict(seed=7), {"seed": 7, **options}, dict(seed=7)]
        fails_alike(job.call_each("shuffle_anything", arguments, keywords), "Invalid", f"rank 1: {words}")

    refused(None, "tensor: NoneType: expected a torch.Tensor")
    refused(torch.tensor(1), "tensor: no dimension")
    refused([good, good[:3]], "tensor 1: 3 records: expected 4, as the first tensor has")
    refused([], "tensors: none; expected at least one")
    refused("sparse", "tensor: layout torch.sparse_coo")
    refused(good, "output_size: -1: expected 0 or more", output_size=-1)
    refused(good, "budget: 0: expected 1 or more", budget=0)
    refused(good, "seed: 7, key: 'x': expected one of the two", key="x")
    refused(good, "seed: '7': expected an integer; convert it with int()", seed="7")
    refused(good, "seed: ndarray of shape (2,): expected an integer", seed=np.array([7, 8]))
    refused(good, "seed: <torch._C.Generator object at ", seed="generator")
    refused(good, "key: b'x': expected the name of the key", seed=None, key=b"x")
    refused(good, "Boolean value of Tensor", inverse=torch.ones(2))
    results = job.call_each("shuffle", [(rows,)] * 2, [dict(seed=7, output_size=9), dict(seed=7)])
    words = "output_size: [9, 10] of the ranks have the sum 19, expected 20, the records of all ranks; rank 0 has 10 and gets 9"
    fails_alike(results, "Invalid", words)
    results = job.call_each("shuffle", [(rows,)] * 8, [dict(seed=7, output_size=9 + rank // 7) for rank in range(8)])
    fails_alike(results, "Invalid", "rank 3 has 10 and gets 9, and 3 more")
    results = job.call_each("shuffle", [(rows,)] * 2, dict(seed=7, algorithm="philox24"))
    fails_alike(results, "Invalid", "rank 0: algorithm philox24: expected primefold")
    results = job.call_each("shuffle", [(rows,)] * 2, dict(seed=2**64))
    fails_alike(results, "Invalid", "rank 0: seed: 18446744073709551616: expected 0 to 2^64 - 1")
    still_works(job, client)


def test_what_is_no_process_group_is_refused(job, client):
    """All ranks fail at once, and a single process does, too."""
    text = "group: 7: expected a process group of torch.distributed or None; did you mean seed=7?"
    fails_alike(job.call_each("shuffle_over", [(rows_of(10), 7)] * 3), "Invalid", text)
    still_works(job, client)
    with pytest.raises(shufd.Invalid, match=f"^{re.escape(text)}$"):
        shufd.torch.global_shuffle(torch.arange(10), 7)
    with pytest.raises(shufd.Invalid, match="^group: 'x': expected a process group of torch.distributed or None$"):
        shufd.torch.global_shuffle(torch.arange(10), "x", seed=7)


def test_a_rank_without_daemon(job, client):
    rows = rows_of(10)
    job.start([("shuffle", (3, rows), dict(seed=7)), ("without_daemon", (3, rows), {}),
               ("shuffle", (3, rows), dict(seed=7))])  # fmt: skip
    fails_alike(job.finish(3), "NoDaemon", "rank 1: ")
    still_works(job, client)


@pytest.mark.parametrize("when", ["end", "end_between_plan_and_rows"])
def test_a_rank_that_ends(daemon, client, job, when):
    rows = rows_of(10_000)
    other = Job(3)
    try:
        began = time.monotonic()
        other.start([("shuffle", (3, rows), dict(seed=7)), (when, (3, rows), {}),
                     ("shuffle", (3, rows), dict(seed=7))])  # fmt: skip
        first, ended, last = other.finish(3)
        assert ended is None and time.monotonic() - began < 50
        for rank, result in ((0, first), (2, last)):
            assert result.kind == "IOFailure", str(result)
            assert f"rank {rank} of 3: the exchange with the other ranks failed" in result.text
        assert await_value(lambda: plans_of(client), []) == []
    finally:
        other.close()


def test_no_leases_remain(job, client):
    still_works(job, client)
    assert await_value(lambda: plans_of(client), []) == []


def test_verify_of_groups(job, client):
    """The ranks have called it different numbers of times."""
    for world in (2, 4, 3, 3):
        results = job.call("verify", [()] * world, dict(n=np.int64(1000), seed=np.uint8(7), epoch=np.int32(3)))
        assert results == [client.fingerprint(1000, 7, 3)] * world
    results = job.call_each("verify", [()] * 3, [dict(seed=7), dict(seed=7, client=5), dict(seed=7)])
    fails_alike(results, "Error", ": 'int' object has no attribute 'fingerprint'")


def test_verify_of_a_rank_that_does_not_come():
    store = torch.distributed.HashStore()
    store.set_timeout(datetime.timedelta(milliseconds=50))
    with pytest.raises(shufd.IOFailure, match="verify: rank 3 did not come; it may have ended: "):
        _ranks._await(store, "key/3", 3)


# ---- One process ---------------------------------------------------------------------------------


def test_one_process(client):
    rows = torch.arange(5000).reshape(1000, 5)
    shuffled = shufd.torch.global_shuffle(rows, seed=7, client=client, budget=9000)
    assert torch.equal(shuffled, rows[torch.from_numpy(client.permute(1000, 7).astype(np.int64))])
    assert torch.equal(shufd.torch.global_shuffle(shuffled, seed=7, inverse=True, client=client), rows)
    assert torch.equal(shufd.torch.global_shuffle(rows, seed=7), shuffled)
    with pytest.raises(shufd.Invalid, match="algorithm philox24: expected primefold"):
        shufd.torch.global_shuffle(rows, seed=7, algorithm="philox24", client=client)


def test_inference_mode_of_one_rank(job, client):
    """The others do not wait for it in vain."""
    rows, sizes = rows_of(1000), [300, 200, 500]
    arguments = [(own, "int64", rank == 1) for rank, own in enumerate(cut(rows, sizes))]
    names = ["shuffle", "shuffle_in_inference_mode", "shuffle"]
    job.start([(name, (3, *own), dict(seed=7)) for name, own in zip(names, arguments)])
    results = job.finish(3)
    assert np.array_equal(np.concatenate(results), client.shuffle(rows, 7)), results
    with torch.inference_mode():
        numbers = torch.arange(10)
        shuffled = shufd.torch.global_shuffle(numbers, seed=7, client=client)
    assert shuffled.tolist() == client.permute(10, 7).tolist() and not shuffled.is_inference()


class Integer:
    """An integer of another package, which has no arithmetic."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_integers_of_other_packages(client):
    """A rank that fails in its arithmetic would fail alone."""
    rows = torch.arange(1000)
    for kind in (Integer, np.uint64, np.uint16, torch.tensor):
        shuffled = shufd.torch.global_shuffle(
            rows, seed=kind(7), epoch=kind(1), output_size=kind(1000), budget=kind(9000), next_epoch=kind(2), client=client
        )
        assert np.array_equal(shuffled.numpy(), client.shuffle(rows.numpy(), seed=7, epoch=1))


def test_keys_with_the_same_name(client):
    """Ranks know keys by their names."""
    keys = [type("Key", (), {"__repr__": lambda self: "k"})() for _ in range(2)]
    with pytest.raises(shufd.Invalid, match="rank 0: tensors: 2 keys with 1 name; expected a name for each key"):
        shufd.torch.global_shuffle({key: torch.arange(10) for key in keys}, seed=7, client=client)


def test_gradients_do_not_follow(client):
    rows = torch.ones(10, 2, requires_grad=True)
    assert not shufd.torch.global_shuffle(rows, seed=7, client=client).requires_grad


def test_the_daemon_ends_after_the_plan(killable_daemon, monkeypatch):
    rows = torch.arange(30_000)
    move = _moves.LocalMove.run

    def run(self, rounds):
        killable_daemon.kill()
        return move(self, rounds)

    with shufd.connect(killable_daemon.socket) as client:
        expected = rows[torch.from_numpy(client.permute(30_000, 7).astype(np.int64))]
        monkeypatch.setattr(_moves.LocalMove, "run", run)
        assert torch.equal(shufd.torch.global_shuffle(rows, seed=7, client=client), expected)
        killable_daemon.start()
        monkeypatch.setattr(_moves.LocalMove, "run", move)
        assert torch.equal(shufd.torch.global_shuffle(rows, seed=7, client=client), expected)


def test_no_room_for_the_output(client, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(_agreement, "staged_move", fail)
    with pytest.raises(shufd.Error, match="global_shuffle: rank 0: no room") as caught:
        shufd.torch.global_shuffle(torch.arange(20_000), seed=99, client=client)
    del caught
    assert not [lease for lease in client.leases() if lease["kind"] == "exchange" and lease["seed"] == 99]


def test_an_error_without_a_text(client, monkeypatch):
    def fail(leaves):
        raise MemoryError

    monkeypatch.setattr(_agreement, "_count_records", fail)
    with pytest.raises(shufd.Error, match="global_shuffle: rank 0: MemoryError"):
        shufd.torch.global_shuffle(torch.arange(10), seed=7, client=client)


def test_plans(client):
    input, output = [300, 0, 700], [1, 998, 1]
    plans = [client.exchange(1000, 7, 2, rank=r, world=3, input=input, output=output) for r in range(3)]
    order, places = client.permute(1000, 7, 2), np.argsort(client.permute(1000, 7, 2))
    assert [len(p.order) for p in plans] == input and [len(p.places) for p in plans] == output
    assert all((plans[s].to[d] == plans[d].arriving[s]) for s in range(3) for d in range(3))
    assert (places[plans[2].order + 300] == np.sort(places[300:])).all()
    from_two = plans[1].places[plans[1].arriving[:2].sum() :]
    assert (from_two == np.flatnonzero(order[1:999] >= 300)).all()
    client.prefetch_exchange(1000, 8, rank=0, world=2)
    found = [lease for lease in client.leases() if lease["kind"] == "exchange" and lease["seed"] == 8]
    assert [(lease["rank"], lease["world"], lease["n"], lease["inverse"]) for lease in found] == [(0, 2, 1000, False)]
    assert client.exchange(10, 7, rank=0, world=2).order.dtype == np.uint32
    for ask in (client.exchange, client.prefetch_exchange):
        with pytest.raises(shufd.Invalid, match="device: 'cuda': this daemon has the backend cpu"):
            ask(10, 7, rank=0, world=2, device="cuda")
    with pytest.raises(shufd.Invalid, match="input: 2 sizes, expected world = 3"):
        client.exchange(10, 7, rank=0, world=3, input=[5, 5])
    with pytest.raises(shufd.Invalid, match="rank 3: expected less than world = 3"):
        client.exchange(10, 7, rank=3, world=3)
    with pytest.raises(ValueError):
        plans[0].order[0] = 1


class DlpackArray:
    """Numbers that torch can only take by DLPack, like those of a DeviceArray."""

    def __init__(self, numbers):
        self.numbers, self.dtype = numbers, numbers.dtype

    def __len__(self):
        return len(self.numbers)

    def view(self, dtype):
        return self.numbers.view(dtype)


def signed(values):
    return values.view(f"i{values.dtype.itemsize}")


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("as_lent", [np.asarray, torch.from_numpy])
def test_lists_as_indices(kind, as_lent):
    values = np.array([5, 0, 2**31 + 7, 2**32 - 1, 3], kind)
    numbers = _moves.Numbers(as_lent(signed(values)))
    cpu = torch.device("cpu")
    assert numbers.count == 5
    index = numbers.index([slice(0, 2), slice(2, 2), slice(3, 5)], cpu)
    assert index.dtype == torch.int64 and index.tolist() == [5, 0, 2**32 - 1, 3]


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("as_lent", [np.asarray, DlpackArray])
def test_lists_count(kind, as_lent):
    to, arriving = np.array([5, 0, 2**31 + 7], kind), np.array([2**32 - 1, 3, 0], kind)
    plan = Plan(as_lent(np.array([*to, *arriving, 4, 5, 6], kind)), 3, 2)
    lists = _moves.BothSidesLists(plan)
    assert (lists.to, lists.arriving) == (to.tolist(), arriving.tolist())
    assert (lists.order.numbers.tolist(), lists.places.numbers.tolist()) == ([4, 5], [6])


@pytest.mark.parametrize(
    "slices, merged",
    [
        ([(0, 2), (2, 2), (2, 5)], [(0, 5)]),
        ([(0, 0), (3, 5)], [(3, 5)]),
        ([(0, 2), (2, 2), (4, 5)], [(0, 2), (4, 5)]),
        ([(1, 2), (2, 3), (3, 3), (5, 6), (7, 7)], [(1, 3), (5, 6)]),
        ([(4, 4), (9, 9)], [(0, 0)]),
    ],
)
def test_slices_merge(slices, merged):
    assert _moves.merged([slice(*part) for part in slices]) == [slice(*part) for part in merged]


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("as_lent", [np.asarray, torch.from_numpy])
def test_lists_as_indices_without_a_conversion(kind, as_lent):
    values = np.array([5, 0, 2**31 - 1, 3], kind)
    numbers = _moves.Numbers(as_lent(signed(values)), 2**31)
    for slices in ([slice(0, 4)], [slice(0, 2), slice(2, 4)]):
        index, wide = (take(slices, torch.device("cpu")) for take in (numbers.index, numbers.wide))
        assert index.dtype == (torch.int32 if kind is np.uint32 else torch.int64) and wide.dtype == torch.int64
        assert index.tolist() == wide.tolist() == values.tolist()


def run_example(environment, program=EXAMPLE, world=3):
    if STORE:
        pytest.skip("this torch lacks libuv, but its launcher asks for it")
    result = subprocess.run(
        # Debian's torchrun fails without a redirection of the output: its Python is newer than torch's.
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(world), "-r", "1", "-t", "1",
         str(program), "--rows", "20_001", "--device", "cpu"],
        capture_output=True, text=True, timeout=300, env={**environment, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"20,001 rows on {world} ranks" in result.stdout
    assert "every rank holds its rows of the shuffle: True" in result.stdout
    assert "every rank has its own rows back: True" in result.stdout
    sockets = re.findall(r"rank (\d): cpu, gloo, daemon: cpu \(.*\) on (.*)$", result.stdout, re.MULTILINE)
    assert [int(rank) for rank, _ in sockets] == list(range(world)), result.stdout
    return [pathlib.Path(path) for _, path in sockets], result.stderr.count("started a private daemon")


@pytest.mark.parametrize("has_daemon", [True, False], ids=["daemon", "none"])
def test_example(daemon, has_daemon):
    """Without a daemon, the first rank starts one for all ranks."""
    environment = dict(os.environ)
    if not has_daemon:
        if os.path.exists("/run/shufd/shufd.sock"):
            pytest.skip("a daemon of this machine is running")
        environment["XDG_RUNTIME_DIR"] = "/nonexistent"
        del environment["SHUFD_SOCKET"]
    sockets, started = run_example(environment)
    assert len(set(sockets)) == 1 and started == (not has_daemon)
    assert not has_daemon or str(sockets[0]) == daemon.socket


OF_ITS_GPU = """
import os, runpy, sys
os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-" + os.environ["LOCAL_RANK"]
runpy.run_path({example!r}, run_name="__main__")
"""


def test_example_with_a_daemon_for_each_gpu(tmp_path):
    """Each rank takes the daemon of its GPU. The GPU of the first rank has none, so this rank takes that of another one."""
    daemons = []
    for gpu in (1, 2):
        (tmp_path / str(gpu)).mkdir()
        daemons.append(Daemon(tmp_path / str(gpu)))
        daemons[-1].socket = str(tmp_path / f"GPU-{gpu}.sock")
    (tmp_path / "rank.py").write_text(OF_ITS_GPU.format(example=str(EXAMPLE)))
    environment = {name: value for name, value in os.environ.items() if name != "SHUFD_SOCKET"}
    environment.update(SHUFD_RUNTIME_DIR=str(tmp_path), XDG_RUNTIME_DIR="/nonexistent")
    try:
        for daemon in daemons:
            daemon.start()
        sockets, started = run_example(environment, tmp_path / "rank.py")
    finally:
        for daemon in daemons:
            daemon.kill()
    assert [path.name for path in sockets] == ["GPU-1.sock", "GPU-1.sock", "GPU-2.sock"] and started == 0


def test_example_never_replaces_gpus_by_cpus(monkeypatch):
    """Unless the caller asks for them."""
    device_of = runpy.run_path(str(EXAMPLE))["device_of"]
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for gpus, wanted, device in ((0, None, "cpu"), (0, "cpu", "cpu"), (2, "cpu", "cpu"), (4, None, "cuda:1"), (8, "cuda", "cuda:1")):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        assert device_of(wanted) == torch.device(device)
    for gpus, wanted in ((3, None), (3, "cuda"), (0, "cuda")):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        with pytest.raises(SystemExit, match=f"GPUs: {gpus} for 4 ranks of this machine: expected one for each rank"):
            device_of(wanted)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")  # the launcher has given each rank a GPU of its own
    assert device_of(None) == torch.device("cuda:0")


def test_ranks_that_cannot_move_by_one_sided_plans_take_the_others(client, monkeypatch):
    """The first plan and its outputs are gone when the second plan is asked for."""
    asked, ask = [], _global_shuffle.Planner._ask

    def asks(planner, sizes, outputs, part):
        asked.append((part, [one for one in client.leases() if one["kind"] == "exchange" and one["seed"] == 14]))
        return ask(planner, sizes, outputs, part)

    monkeypatch.setattr(_global_shuffle.Planner, "_ask", asks)
    monkeypatch.setattr(_agreement, "part_of", lambda *sizes: 65536)
    monkeypatch.setattr(_agreement.OneSided, "_compile", lambda one_sided: None)
    rows = torch.arange(200_000)
    shuffled = shufd.torch.global_shuffle(rows, seed=14, client=client)
    assert np.array_equal(shuffled.numpy(), client.shuffle(rows.numpy(), seed=14))
    assert asked == [(65536, []), (0, [])]


def test_entries_are_deleted_after_the_prefetch(client, monkeypatch):
    """The daemon computes the next plan meanwhile."""
    calls = []
    monkeypatch.setattr(_process_group.Ranks, "tidy", lambda ranks: calls.append("tidy"))
    monkeypatch.setattr(_global_shuffle.Planner, "prefetch", lambda planner, *_: calls.append("prefetch"))
    shufd.torch.global_shuffle(torch.arange(100), seed=14, client=client, next_epoch=1)
    shufd.torch.global_shuffle(torch.arange(100), seed=14, client=client)
    assert calls == ["prefetch", "tidy", "tidy"]


def test_no_stage_is_exposed_after_a_common_failure():
    attempt = _global_shuffle._Attempt()
    attempt.rounds = [1]
    failed = (("Busy", "no room"), True, [])
    calls = []

    def gather(own, after=None, meanwhile=None):
        calls.append((own, attempt.is_common))
        return [own, failed]

    attempt.wait = lambda: calls.append("wait")
    memory = types.SimpleNamespace(close=lambda at_once: calls.append(("close", at_once)))
    with pytest.raises(shufd.Busy, match="rank 1: no room"):
        attempt.agree(types.SimpleNamespace(gather=gather), memory)
    assert calls == [((None, True, [1]), False), "wait", ("close", True), (None, False)]
    assert attempt.is_common


def single_rank(ranks, group):
    """Ranks.__init__() of a single rank, without has_told."""
    ranks.group, ranks.rank, ranks.world = None, 0, 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, shufd.IOFailure("the exchange with the other ranks failed")])
def test_the_stage_stays_if_the_first_agreement_fails(monkeypatch, error):
    """The others may have what it offers."""
    stages = []

    def fail(ranks, *arguments):
        ranks.has_told = told
        raise error

    monkeypatch.setattr(_agreement, "make_stage", lambda *arguments: _one_sided.Stage(Room(1, 32), 8, 1, "cpu"))
    monkeypatch.setattr(_agreement, "offers_of", lambda *arguments: _agreement.Offers())
    monkeypatch.setattr(_one_sided, "_kept", stages)
    monkeypatch.setattr(_process_group.Ranks, "gather", fail)
    for told in (True, False, True):
        with pytest.raises((KeyboardInterrupt, shufd.IOFailure)):
            shufd.torch.global_shuffle(torch.arange(10), seed=7)
    assert len(stages) == 2


@pytest.mark.parametrize("error, expected", [(KeyboardInterrupt(), "leave"), (shufd.Invalid("sizes"), "finish")])
def test_only_errors_of_the_comparison_are_common(monkeypatch, error, expected):
    called = []

    def fail(arguments):
        raise error

    monkeypatch.setattr(_agreement, "sizes_of", fail)
    for name in ("leave", "finish"):
        monkeypatch.setattr(_process_group.Ranks, name, lambda ranks, name=name: called.append(name))
    with pytest.raises(type(error)):
        shufd.torch.global_shuffle(torch.arange(10), seed=7)
    assert called == [expected]


def test_tensors_on_several_gpus_get_no_stage(monkeypatch):
    """Their plan would not be in the memory of one GPU."""
    monkeypatch.setattr(_agreement, "_fits_kernel", lambda leaf: True)
    ranks = types.SimpleNamespace(uses_nccl=lambda device: True)
    first, second = (types.SimpleNamespace(device=torch.device("cuda", gpu)) for gpu in range(2))
    assert _agreement._are_readable(ranks, [first, first])
    assert not _agreement._are_readable(ranks, [first, second])


@pytest.mark.parametrize("error, kept", [(KeyboardInterrupt, 1), (MemoryError("no room"), 0)])
def test_the_stage_stays_while_others_may_write_into_it(client, monkeypatch, error, kept):
    """They may before this rank has moves, if it leaves the call without a word."""
    stages = []

    def fail(*arguments):
        raise error

    monkeypatch.setattr(_agreement, "make_stage", lambda *arguments: _one_sided.Stage(Room(1, 32), 8, 1, "cpu"))
    monkeypatch.setattr(_agreement, "offers_of", lambda *arguments: _agreement.Offers())
    monkeypatch.setattr(_agreement, "part_of", lambda *arguments: 65536)
    monkeypatch.setattr(_agreement, "OneSided", lambda *_: types.SimpleNamespace(is_able=True))
    monkeypatch.setattr(_one_sided, "_kept", stages)
    monkeypatch.setattr(_global_shuffle.Planner, "take", fail)
    with pytest.raises(error if kept else shufd.Error):
        shufd.torch.global_shuffle(torch.arange(10), seed=7, client=client)
    assert len(stages) == 0  # a single rank has told nobody
    monkeypatch.setattr(_process_group.Ranks, "has_told", True, raising=False)
    monkeypatch.setattr(_process_group.Ranks, "__init__", single_rank)
    with pytest.raises(error if kept else shufd.Error):
        shufd.torch.global_shuffle(torch.arange(10), seed=7, client=client)
    assert len(stages) == kept


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_while_rows_move_keeps_no_plan(client, monkeypatch, error):
    """As long as the caller has the error."""

    def fail(self, rounds):
        kept = self.lists
        raise error(kept)

    monkeypatch.setattr(_moves.LocalMove, "run", fail)
    with pytest.raises(error) as caught:
        shufd.torch.global_shuffle(torch.arange(20_000), seed=97, client=client)
    caught.value.args = ()
    assert not [lease for lease in client.leases() if lease["kind"] == "exchange" and lease["seed"] == 97]


def test_an_error_keeps_no_plan_and_no_stage(client, monkeypatch):
    """As long as the caller has the error, for example while it tries again with less memory."""
    made = []

    def make_stage(*arguments):
        stage = _one_sided.Stage(Room(1, 32), 8, 1, "cpu")
        made.append(weakref.ref(stage))
        return stage

    def fail(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(_agreement, "make_stage", make_stage)
    monkeypatch.setattr(_agreement, "offers_of", lambda *arguments: _agreement.Offers())
    monkeypatch.setattr(_agreement, "part_of", lambda *arguments: 65536)
    monkeypatch.setattr(_agreement, "OneSided", lambda *_: types.SimpleNamespace(is_able=True, moves=fail))
    with pytest.raises(shufd.Error, match="global_shuffle: rank 0: no room") as caught:
        shufd.torch.global_shuffle(torch.arange(20_000), seed=98, client=client)
    assert not [lease for lease in client.leases() if lease["kind"] == "exchange" and lease["seed"] == 98]
    assert made[0]() is None
    del caught


def test_next_epoch_is_computed_ahead(client):
    rows = torch.arange(5000)
    for epoch in range(3):
        shuffled = shufd.torch.global_shuffle(rows, seed=4, epoch=epoch, next_epoch=epoch + 1, client=client)
        assert np.array_equal(shuffled.numpy(), client.shuffle(rows.numpy(), seed=4, epoch=epoch))
        (lease,) = (one for one in client.leases() if one["kind"] == "exchange" and one["seed"] == 4)
        assert lease["prefetch"] and lease["epoch"] == epoch + 1
    client.drop()
    for wrong in (-1, 1 << 64, "1"):
        with pytest.raises(shufd.Invalid, match="rank 0: next_epoch: "):
            shufd.torch.global_shuffle(rows, seed=4, next_epoch=wrong, client=client)


def test_no_daemon_for_the_next_epoch(client, monkeypatch):
    clients = [client]

    def default_client():
        if not clients:
            raise shufd.NoDaemon("none")
        return clients.pop()

    monkeypatch.setattr(shufd, "default_client", default_client)
    shuffled = shufd.torch.global_shuffle(torch.arange(5000), seed=5, next_epoch=1)
    assert not clients and np.array_equal(shuffled.numpy(), client.shuffle(np.arange(5000), seed=5))


@pytest.mark.parametrize(
    "name, config, by_nccl, on_gpu, on_host",
    [
        ("nccl", "cuda:nccl", True, True, False),
        ("undefined", "cuda:nccl", True, True, False),  # init_process_group() of torch 2.11 without a name
        ("undefined", "cpu:gloo,cuda:nccl", False, True, False),  # that of older ones
        ("cpu:gloo,cuda:nccl", "cpu:gloo,cuda:nccl", False, True, False),
        ("undefined", "cpu:gloo", False, False, False),
        ("gloo", "cpu:gloo,cuda:gloo", False, False, False),
        ("mpi", "cpu:mpi,cuda:mpi", False, True, True),
    ],
)
def test_engines(monkeypatch, name, config, by_nccl, on_gpu, on_host):
    distributed = types.SimpleNamespace(get_backend=lambda group: name, get_backend_config=lambda group: config)
    monkeypatch.setattr(_process_group, "dist", distributed)
    ranks = object.__new__(_process_group.Ranks)
    ranks.group, ranks.world = None, 2
    gpu, host = torch.device("cuda", 0), torch.device("cpu")
    assert (ranks.has_only_nccl, ranks.exchanges_on(gpu), ranks.exchanges_on(host)) == (by_nccl, on_gpu, on_host)
    assert (ranks.uses_nccl(gpu), ranks.uses_nccl(host)) == ("nccl" in config, False)


def test_ranks_at_different_points(monkeypatch):
    """A rank calls again after Ctrl-C, while the others are still in the call before."""
    ranks = object.__new__(_process_group.Ranks)
    ranks.rank, ranks.world = 0, 2
    monkeypatch.setattr(_process_group.Ranks, "_gather", lambda self, value, meanwhile: [value, (None, True, [])])
    with pytest.raises(shufd.IOFailure, match="rank 1 is at another point than rank 0"):
        ranks.gather("arguments")
    assert ranks.gather((None, True, [1])) == [(None, True, [1]), (None, True, [])]


class TensorOfGpu(torch.Tensor):
    """On a GPU that is not the current one."""

    device = torch.device("cuda", 3)


def test_a_rank_with_wrong_arguments_takes_its_gpu(monkeypatch):
    """NCCL would wait for ever if it took another one to tell the others."""
    taken = []

    def device(device):
        taken.append(device.index)
        return contextlib.nullcontext()

    monkeypatch.setattr(torch.cuda, "device", device)
    tensor = torch.zeros(3).as_subclass(TensorOfGpu)
    keys = [type("Key", (), {"__repr__": lambda self: "k"})() for _ in range(2)]
    for data in ([tensor, tensor[:2]], {"a": None, "b": tensor}, dict.fromkeys(keys, tensor)):
        with pytest.raises(shufd.Invalid, match="rank 0: tensor"):
            shufd.torch.global_shuffle(data, seed=7)
    monkeypatch.setattr(_process_group.Ranks, "gpu", torch.device("cuda", 2))
    with pytest.raises(shufd.Invalid, match="rank 0: tensor: NoneType"):
        shufd.torch.global_shuffle(None, seed=7)
    assert taken == [3, 3, 3, 2]


class EarlyClient:
    """Counts the requests that are cancelled."""

    cancelled = 0

    def _connection(self):
        return "connection"

    def _with(self, connection, function):
        assert connection == "connection" and threading.current_thread() is not threading.main_thread()
        return function()

    def _cancel(self):
        self.cancelled += 1


def planners(monkeypatch, ask):
    """A function that makes planners, whose requests call `ask`."""
    own = _agreement.Arguments(0, 7, None, 0, "primefold", False, "tensor", [], 3, None, None)
    ranks = types.SimpleNamespace(rank=0, world=2)
    monkeypatch.setattr(_global_shuffle.Planner, "_ask", ask)
    monkeypatch.setattr(_global_shuffle, "_last_sizes", {})
    return lambda **changes: _global_shuffle.Planner(EarlyClient(), ranks, dataclasses.replace(own, **changes), [])


def test_early_plan_serves_the_same_sizes_only(monkeypatch):
    """A rank asks for the plan for the sizes of the call before while the ranks agree."""
    asked = []

    def ask(planner, *sizes):
        asked.append(sizes)
        return object()

    planner = planners(monkeypatch, ask)
    first = planner()
    first.request_early()
    first.drop_early()
    assert asked == []
    first.take([3, 4], [3, 4], 0)
    for sizes, part, changes, calls in (
        ([3, 4], 0, {}, 1), ([3, 5], 0, {}, 2), ([3, 5], 65536, {}, 2), ([3, 5], 65536, {"records": 4}, 1),
        ([4, 5], 65536, {}, 1),
    ):  # fmt: skip
        asked.clear()
        again = planner(**changes)
        again.request_early()
        again.take(sizes, sizes, part)
        assert len(asked) == calls and asked[-1] == (sizes, sizes, part) and again.early is None
    broken = planner(error="bad")
    asked.clear()
    broken.request_early()
    broken.drop_early()
    assert asked == []


def test_early_plan_fails_or_is_not_used(monkeypatch):
    replies = []

    def ask(planner, *sizes):
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    planner = planners(monkeypatch, ask)
    replies[:] = ["first", shufd.Busy("no room"), "second", "unused", shufd.Busy("no room"), shufd.Busy("still")]
    assert planner().take([3, 4], [3, 4], 0) == "first"
    again = planner()
    again.request_early()
    assert again.take([3, 4], [3, 4], 0) == "second" and again.client.cancelled == 0
    unused = planner()
    unused.request_early()
    unused.drop_early()
    assert unused.early is None and len(replies) == 2
    failing = planner()
    failing.request_early()
    with pytest.raises(shufd.Busy, match="still"):
        failing.take([3, 4], [3, 4], 0)


def test_interrupted_wait_cancels_the_early_plan(monkeypatch):
    ended = threading.Event()
    planner = planners(monkeypatch, lambda planner, *sizes: ended.wait(60))
    _global_shuffle._last_sizes[(0, 2, 3, None)] = [3, 4], [3, 4], 0
    interrupted, left = planner(), planner()
    interrupted.request_early()
    monkeypatch.setattr(_global_shuffle._wait.Work, "wait", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.take([3, 4], [3, 4], 0)
    left.request_early()
    left.cancel_early()
    assert interrupted.client.cancelled == left.client.cancelled == 1
    ended.set()


def raise_interrupt(work):
    raise KeyboardInterrupt
