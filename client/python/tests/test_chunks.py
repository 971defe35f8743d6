# SPDX-License-Identifier: MIT
"""shufd.local.Permutation over chunks of unequal sizes, against the reference of the specification, and the samplers over
them."""

import copy
import importlib.util
import itertools
import os
import pickle
import secrets
import signal
import threading

import golden
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shufd
from shufd.local import Permutation

spec = importlib.util.spec_from_file_location("make", golden.VECTORS / "make.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

SEEDS = st.integers(0, 2**64 - 1)
SMALL = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 200)), min_size=1, max_size=60)
LARGE = st.lists(st.one_of(st.just(2**40), st.integers(1, 2**54), st.integers(1, 9)), min_size=1, max_size=40)
WINDOWS = st.one_of(st.integers(1, 70), st.just(2**64 - 1))


# ---- Permutation -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(sizes=SMALL, window=WINDOWS, seed=SEEDS, epoch=SEEDS, data=st.data())
def test_order_of_the_reference(sizes, window, seed, epoch, data):
    expected = np.array(reference.windowed(sizes, window, seed, epoch), np.uint64)
    order, n = Permutation(None, seed, epoch, chunk=sizes, window=window), sum(sizes)
    assert len(order) == order.n == n
    offset, stride = data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, n))
    count = data.draw(st.integers(0, 2 * n))
    positions = [(offset + i * stride) % n for i in range(count)]
    assert np.array_equal(order.range(offset, count, stride), expected[positions])
    narrow = order.range(offset, count, stride, out=np.empty(count, np.uint32))
    assert narrow.dtype == np.uint32 and np.array_equal(narrow, expected[positions])
    assert np.array_equal(order.index(positions, threads=2), expected[positions])
    assert np.array_equal(order.inverse_index(expected), np.arange(n))
    assert order[offset] == expected[offset] and order.inverse_index(order[offset]) == offset
    chunk_of = np.repeat(np.arange(len(sizes)), sizes)[expected]
    needed = list(dict.fromkeys(chunk_of[offset : offset + count].tolist()))
    assert order.chunks(offset, count).tolist() == needed


@settings(deadline=None, max_examples=80)
@given(sizes=LARGE, window=WINDOWS, seed=SEEDS, epoch=SEEDS, data=st.data())
def test_large_chunks(sizes, window, seed, epoch, data):
    n = sum(sizes)
    order = Permutation(n, seed, epoch, chunk=np.array(sizes, np.int64), window=window)
    positions = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    expected = [reference.windowed_at(sizes, window, seed, epoch, i) for i in positions]
    assert order.index(positions).tolist() == expected
    assert [int(order.range(i, 1)[0]) for i in positions] == expected
    assert order.inverse_index(expected).tolist() == positions


@settings(deadline=None, max_examples=100)
@given(sizes=SMALL, window=st.integers(1, 20), seed=SEEDS, world=st.integers(1, 9))
def test_a_window_has_its_chunks_and_no_others(sizes, window, seed, world):
    """Each record once, however many ranks read; and each window has all records of `window` chunks."""
    order, n = Permutation(seed=seed, chunk=sizes, window=window), sum(sizes)
    read = np.full(n, n, np.uint64)
    for rank in range(world):
        read[rank::world] = order.range(rank, len(range(rank, n, world)), world)
    assert np.array_equal(np.sort(read), np.arange(n))
    chunk_of, begin, left = np.repeat(np.arange(len(sizes)), sizes), 0, {*range(len(sizes))}
    while left:
        chunks, end = set(), begin
        while end < n and (len(chunks) < window or end - begin < sum(sizes[k] for k in chunks)):
            chunks.add(int(chunk_of[read[end]]))
            end += 1
        assert len(chunks) == min(window, len(left)) and chunks <= left
        assert end - begin == sum(sizes[k] for k in chunks)
        begin, left = end, left - chunks


@settings(deadline=None, max_examples=80)
@given(n=st.integers(1, 3000), chunk=st.integers(1, 300), window=st.integers(1, 40), seed=SEEDS)
def test_equal_sizes_give_the_order_of_a_number(n, chunk, window, seed):
    sizes = reference.chunk_sizes(n, chunk)
    listed, order = (Permutation(n, seed, 5, chunk=c, window=window) for c in (sizes, chunk))
    assert np.array_equal(listed.range(0, n), order.range(0, n))
    assert np.array_equal(listed.chunks(n // 2, 99), order.chunks(n // 2, 99))


def test_other_sizes_give_another_order():
    """Also with the same n, window, and sizes of the first chunk."""
    orders = [Permutation(None, 7, chunk=sizes, window=2).range(0, 600) for sizes in
              ([100, 150, 50, 100, 100, 100], [100, 50, 150, 100, 100, 100], [100] * 6, [100, 100, 100, 100, 99, 101])]  # fmt: skip
    assert all((a != b).sum() > 500 for a, b in itertools.combinations(orders, 2))


@pytest.mark.parametrize(
    "sizes",
    [(3, 1, 2), np.array([3, 1, 2], np.int8), np.array([3, 0, 1, 0, 2, 0], np.uint64)[::2], np.array([3.0, 1, 2]).astype(int)],
)
def test_lists_and_arrays_of_integers(sizes):
    order = Permutation(6, 7, 1, chunk=sizes, window=1)
    assert order == Permutation(6, 7, 1, chunk=[3, 1, 2], window=1)
    assert [*order.chunk] == [3, 1, 2] and len(order.chunk) == 3 and order.chunk[1:].tolist() == [1, 2]


def test_sizes_are_copied_and_read_only():
    given = np.array([3, 1, 2], np.uint64)
    order = Permutation(seed=7, chunk=given, window=2)
    before = order.range(0, 6)
    given[0] = 9
    assert [*order.chunk] == [3, 1, 2] and np.array_equal(order.range(0, 6), before)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(order.chunk)[0] = 5


def test_an_order_is_a_value():
    order = Permutation(seed=7, epoch=3, chunk=[3, 1, 2], window=2)
    others = [
        Permutation(seed=8, epoch=3, chunk=[3, 1, 2], window=2), Permutation(seed=7, epoch=4, chunk=[3, 1, 2], window=2),
        Permutation(seed=7, epoch=3, chunk=[3, 2, 1], window=2), Permutation(seed=7, epoch=3, chunk=[3, 1, 2], window=1),
        Permutation(6, 7, 3, chunk=3, window=2), Permutation(6, 7, 3),
    ]  # fmt: skip
    for same in (pickle.loads(pickle.dumps(order)), copy.copy(order), copy.deepcopy(order), eval(repr(order))):
        assert same == order and hash(same) == hash(order) and np.array_equal(same.range(0, 6), order.range(0, 6))
    assert all(other != order for other in others) and len({order, *others}) == 7
    assert repr(order) == "shufd.local.Permutation(n=6, seed=7, epoch=3, chunk=[3, 1, 2], window=2)"
    assert "chunk=[1, 2, 3, ..., 1000], window=2" in repr(Permutation(seed=7, chunk=range(1, 1001), window=2))
    again = Permutation(seed=7, epoch=9, chunk=order.chunk, window=2)
    assert again.chunk is order.chunk
    with pytest.raises(AttributeError):
        order.seed = 5


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"chunk": [3, 0, 2]}, r"^chunk\[1\] 0: expected at least 1"),
        ({"chunk": [3, -1, 2]}, r"^chunk\[1\]: -1: expected at least 1"),
        ({"chunk": []}, r"^chunk: 0 of them, expected 1 to 2\^24"),
        ({"chunk": np.ones(2**24 + 1, np.int8)}, r"^chunk: 16777217 of them, expected 1 to 2\^24"),
        ({"chunk": [2**62, 1]}, r"^chunk\[1\] 1: expected at most 0, because all chunks together have at most 2\^62 records"),
        ({"chunk": [2**63] * 4}, r"^chunk\[0\] 9223372036854775808: expected at most"),
        ({"chunk": [2**64]}, r"^chunk: "),
        ({"chunk": [1.5, 2]}, r"^chunk: type float64: expected integers"),
        ({"chunk": [[1, 2], [3, 4]]}, r"^chunk: .*: expected an integer, or the sizes of the chunks in one dimension"),
        ({"chunk": "123"}, r"^chunk: "),
        ({"chunk": None}, r"^chunk: None, window: 2: expected both or none"),
        ({"window": None}, r"^window: None: expected at least 1, with the sizes of chunks"),
        ({"window": 0}, r"^window: 0: expected at least 1, with the sizes of chunks"),
        ({"window": -1}, r"^window: -1: expected"),
        ({"n": 7}, r"^n: 7: expected 6, the sum of the sizes of the chunks, or None"),
        ({"n": 6.0}, r"^n: 6\.0: expected an integer"),
        ({"seed": None}, r"^seed: None: expected an integer"),
        ({"epoch": -1}, r"^epoch: -1: expected"),
    ],
)
def test_an_error_names_the_argument(arguments, message):
    with pytest.raises(shufd.Invalid, match=message):
        Permutation(**{"n": 6 if arguments.get("chunk", 0) is None else None, "seed": 7, "chunk": [3, 1, 2], "window": 2} | arguments)


def test_only_an_order_takes_sizes():
    with pytest.raises(shufd.Invalid, match=r"^chunk: \[3, 1, 2\]: expected an integer; for the sizes of chunks, use"):
        shufd.local.permute(6, 7, chunk=[3, 1, 2], window=2)
    assert shufd.local.index(4, 6, 7, chunk=[3, 1, 2], window=2) == Permutation(6, 7, chunk=[3, 1, 2], window=2)[4]


def test_errors_of_calls():
    order = Permutation(seed=7, chunk=[3, 1, 2], window=2)
    with pytest.raises(shufd.Invalid, match=r"positions\[1\] 6: expected less than n = 6"):
        order.index([0, 6])
    with pytest.raises(shufd.Invalid, match=r"values\[0\] 9: expected less than n = 6"):
        order.inverse_index(9)
    with pytest.raises(IndexError):
        order[6]
    assert order.chunks(0, 0).size == order.chunks(6, 1).size == 0 and sorted(order.chunks(0, 99).tolist()) == [0, 1, 2]


def test_hostile_sizes():
    """One large chunk among many small ones, in windows of any width."""
    sizes = np.ones(100_000, np.uint64)
    sizes[secrets.randbelow(len(sizes))] = 2**61
    for window in (1, 7, 5000, 99_999, 100_000):
        order = Permutation(seed=secrets.randbits(64), chunk=sizes, window=window)
        for offset in (0, 2**61 - 5000, order.n - 10_000):
            values = order.range(offset, 10_000)
            assert np.array_equal(order.inverse_index(values[::100]), offset + np.arange(0, 10_000, 100))
            assert np.array_equal(order.index(offset + np.arange(0, 10_000, 100)), values[::100])


def test_most_chunks():
    order = Permutation(seed=7, chunk=np.tile(np.arange(1, 5, dtype=np.uint8), 2**22), window=1000)
    values = order.range(order.n // 2, 100_000)
    assert np.array_equal(order.inverse_index(values), order.n // 2 + np.arange(100_000))
    assert len(order.chunks(0, 5000)) == len({*order.chunks(0, 5000).tolist()})


def test_threads_share_an_order():
    order = Permutation(seed=7, chunk=range(1, 400), window=10)
    expected, wrong = order.range(0, order.n), []

    def read(offset):
        for first in range(offset, order.n - 1000, 3001):
            if not np.array_equal(order.range(first, 1000), expected[first : first + 1000]):
                wrong.append(first)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_a_child_of_fork_reads_it():
    order = Permutation(seed=7, chunk=range(1, 400), window=10)
    expected = order.range(0, order.n)
    if (child := os.fork()) == 0:
        is_same = np.array_equal(order.range(0, order.n), expected) and order.inverse_index(int(expected[5])) == 5
        os._exit(0 if is_same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_signal_ends_calls():
    order = Permutation(seed=7, chunk=[2**40 + i for i in range(100)], window=3)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            order.range(0, 10**7)
    timer.join()


# ---- Samplers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torch")
    import shufd.torch

    return shufd.torch


LISTED = [30, 1, 500, 77, 8, 8, 120, 256, 3]


def sampler_of(torch, sizes=LISTED, world=1, rank=0, window=3, **options):
    return torch.DistributedSampler(range(sum(LISTED)), world, rank, seed=7, chunk=sizes, window=window, **options)


@pytest.mark.parametrize("world", [1, 2, 7])
def test_ranks_share_an_order(torch, world):
    n = sum(LISTED)
    for epoch in (0, 5):
        order = Permutation(seed=7, epoch=epoch, chunk=LISTED, window=3).range(0, -(-n // world) * world)
        for rank in range(world):
            sampler = sampler_of(torch, np.array(LISTED, np.int32), world, rank)
            sampler.set_epoch(epoch)
            assert [*sampler] == order[rank::world].tolist()


@settings(deadline=None, max_examples=40)
@given(used=st.integers(0, 249), worlds=st.tuples(st.integers(1, 4), st.integers(1, 4)), epoch=st.integers(0, 2**64 - 1))
def test_resumes_with_another_world(torch, used, worlds, epoch):
    """The last index of a rank of four is number 249: the state after it is that of the next epoch."""
    n, seen = sum(LISTED), []
    for rank in range(worlds[0]):
        sampler = sampler_of(torch, LISTED, worlds[0], rank, drop_last=True)
        sampler.set_epoch(epoch)
        seen += itertools.islice(sampler, used)
        state = pickle.loads(pickle.dumps(sampler.state_dict(used=used)))
    for rank in range(worlds[1]):
        sampler = pickle.loads(pickle.dumps(sampler_of(torch, tuple(LISTED), worlds[1], rank, drop_last=True)))
        sampler.load_state_dict(state)
        seen += [*sampler]
    left = n - used * worlds[0]
    assert len(seen) == len({*seen}) == n - left % worlds[1] and {*seen} <= {*range(n)}


def test_a_state_names_the_sizes(torch):
    state = sampler_of(torch).state_dict()
    assert state["chunk"] == shufd.local.fingerprint(np.array(LISTED, np.uint64)) and state["window"] == 3
    sampler_of(torch, np.array(LISTED)).load_state_dict(state)
    swapped = [LISTED[1], LISTED[0], *LISTED[2:]]
    for other in (sampler_of(torch, swapped), sampler_of(torch, 100), sampler_of(torch, None, window=None)):
        with pytest.raises(shufd.Invalid, match="^state: chunk '0x[0-9a-f]{16}': expected"):
            other.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^state: window 3: expected 4"):
        sampler_of(torch, window=4).load_state_dict(state)


def test_random_sampler(torch):
    n = sum(LISTED)
    sampler = torch.RandomSampler(range(n), num_samples=n + 10, seed=7, chunk=LISTED, window=3)
    first, second = (Permutation(seed=7, epoch=e, chunk=LISTED, window=3).range(0, n).tolist() for e in (0, 1))
    assert [*sampler] == first + second[:10]
    with pytest.raises(shufd.Invalid, match="window: 3: expected None with replacement"):
        torch.RandomSampler(range(n), True, seed=7, chunk=LISTED, window=3)


def test_loader_with_workers(torch):
    import torch.utils.data as data

    n = sum(LISTED)
    loader = data.DataLoader(range(n), 64, sampler=sampler_of(torch), num_workers=2)
    expected = Permutation(seed=7, chunk=LISTED, window=3).range(0, n).tolist()
    assert [int(i) for batch in loader for i in batch] == expected


def test_the_data_set_has_the_records_of_the_chunks(torch):
    with pytest.raises(shufd.Invalid, match=f"^dataset: length 5: expected {sum(LISTED)}, the sum of the sizes of its chunks"):
        torch.DistributedSampler(range(5), 1, 0, seed=7, chunk=LISTED, window=3)
    with pytest.raises(shufd.Invalid, match="^algorithm philox24: expected primefold with a window"):
        sampler_of(torch, algorithm="philox24")
    with pytest.raises(shufd.Invalid, match="^window: None: expected at least 1"):
        sampler_of(torch, window=None)
    data = [*range(sum(LISTED))]
    sampler = torch.DistributedSampler(data, 1, 0, seed=7, chunk=LISTED, window=3)
    data.append(0)
    with pytest.raises(shufd.Invalid, match=f"^n: {len(data)}: expected {sum(LISTED)}, the sum of the sizes"):
        next(iter(sampler))
