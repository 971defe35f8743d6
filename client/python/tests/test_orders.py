# SPDX-License-Identifier: MIT
"""What the orders of shufd.local have in common, subsets of permutations, and chunks of unequal sizes, against the reference
of the specification."""

import copy
import importlib.util
import itertools
import os
import pickle
import pickletools
import re
import secrets
import signal
import threading

import golden
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shufd
from conftest import run_in_child, run_threads
from shufd.local import Mixture, Order, Permutation, Subset, Weighted

spec = importlib.util.spec_from_file_location("make", golden.VECTORS / "make.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

SEEDS = st.integers(0, 2**64 - 1)
LENGTHS = st.integers(1, 300)


@st.composite
def permutations(draw):
    sizes = st.lists(st.integers(1, 40), min_size=1, max_size=8)
    chunk = draw(st.sampled_from([None, 1, 7, 400]) | sizes)
    n = sum(chunk) if isinstance(chunk, list) else draw(LENGTHS)
    return Permutation(n, draw(SEEDS), draw(SEEDS), chunk=chunk, window=draw(st.integers(1, 5)) if chunk else None)


@st.composite
def subsets(draw):
    order = draw(permutations())
    return order.subset(sorted(draw(st.sets(st.integers(0, order.n - 1), min_size=1, max_size=60))))


@st.composite
def draws(draw):
    weights = draw(st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any))
    replacement = draw(st.booleans())
    length = draw(st.integers(1, 300 if replacement else np.count_nonzero(weights)))
    return Weighted(weights, draw(SEEDS), draw(SEEDS), length=length, replacement=replacement)


@st.composite
def mixtures(draw):
    return Mixture(draw(st.lists(LENGTHS, min_size=1, max_size=4)), None, draw(SEEDS), length=draw(LENGTHS))


ORDERS = st.one_of(permutations(), subsets(), draws(), mixtures())


@settings(deadline=None, max_examples=200)
@given(ORDERS)
def test_pickles_name_public_modules(order):
    """So a later version, whose private modules have other names, reads them."""
    names = {argument for _, argument, _ in pickletools.genops(pickle.dumps(order)) if isinstance(argument, str)}
    assert not {name for name in names if name.startswith("shufd._")}


@settings(deadline=None, max_examples=200)
@given(ORDERS, st.data())
def test_a_sequence(order, data):
    whole = order[:]
    assert isinstance(order, Order) and len(order) == order.length == len(whole) and order
    assert whole.dtype == order.range(0, len(order)).dtype == np.int64 and whole.max() < order.n and whole.min() >= 0
    assert list(order) == whole.tolist() == [order[i] for i in range(len(order))] and type(order[0]) is int
    bound = st.none() | st.integers(-2 * len(order), 2 * len(order)) | st.integers(-(2**70), 2**70)
    cut = slice(data.draw(bound), data.draw(bound), data.draw(bound.filter(lambda step: step != 0)))
    assert np.array_equal(order[cut], whole[cut]) and order[cut].dtype == np.int64
    for place in (len(order), -len(order) - 1, 2**80):
        with pytest.raises(IndexError):
            order[place]
    assert np.array_equal(np.asarray(order), whole) and np.array(order, np.float32).dtype == np.float32
    order[:][:] = np.asarray(order)[:] = 0  # arrays are new
    assert np.array_equal(order[:], whole)


@settings(deadline=None, max_examples=100)
@given(ORDERS, SEEDS)
def test_a_value(order, epoch):
    others = (pickle.loads(pickle.dumps(order)), copy.copy(order), copy.deepcopy(order), order.with_epoch(order.epoch))
    for other in others:
        assert other == order and hash(other) == hash(order) and repr(other) == repr(order) and np.array_equal(other[:], order[:])
    assert "..." in repr(order) or eval(repr(order), {"shufd": shufd}) == order
    for name in ("n", "epoch", "length", "other"):
        with pytest.raises(AttributeError):
            setattr(order, name, 5)
    if isinstance(order, Mixture):
        return
    before, following = order[:], order.with_epoch(epoch)
    assert following.epoch == epoch and (following == order) == (epoch == order.epoch)
    assert following.with_epoch(order.epoch) == order and np.array_equal(order[:], before)
    assert np.array_equal(pickle.loads(pickle.dumps(following))[:], following[:])


@settings(deadline=None, max_examples=100)
@given(ORDERS, st.integers(1, 9), st.data())
def test_ranks_cover_an_order(order, world, data):
    position = data.draw(st.integers(0, len(order)))
    rest = np.empty(len(order) - position, np.int64)
    for rank in range(world):
        count = len(range(position + rank, len(order), world))
        rest[rank::world] = order.range(position + rank, count, world)
        assert np.array_equal(order[position + rank :: world], rest[rank::world])
    assert np.array_equal(rest, order[position:])


@pytest.mark.parametrize("order", [
    Permutation(2**62, 7, 3), Permutation(2**62, 7, chunk=2**40, window=100), Weighted([1, 0, 3], 7), Mixture([2**61, 5], [1, 1], 7),
    Permutation(2**62, 7).subset([0, 5, 2**41, 2**62 - 1]),
])  # fmt: skip
def test_large_orders(order):
    end = len(order) if order.length else 2**62
    for place in (0, 1, end // 2, end - 1):
        assert 0 <= order[place] < order.n and order[place] == order[place : place + 1][0] == order[place - end]
    ahead = order[end - 9 :]
    assert ahead.tolist() == [order[i] for i in range(end - min(9, end), end)]
    assert order[::-1][:0].size == 0 if end < 9 else order[end : end - 9 : -1].tolist() == ahead[:0:-1].tolist()
    if end > 2**40:
        with pytest.raises(shufd.OutOfMemory):
            np.asarray(order)  # at once, where NumPy would ask for each element
    if order.length is None:
        with pytest.raises(TypeError, match="length="):
            len(order)
    elif hasattr(order, "inverse_index"):
        assert [order.inverse_index(order[i]) for i in (0, end - 1)] == [0, end - 1]


def test_indices_of_a_weighted_order():
    with pytest.raises(TypeError, match="not a container"):
        0 in Weighted([1, 0], 7)  # a search would have no end


# ---- Subsets -------------------------------------------------------------------------------------


def sizes_of(order):
    """The sizes of the chunks: of an order without chunks, that of one chunk."""
    chunk = order.chunk or order.n
    return reference.chunk_sizes(order.n, chunk) if isinstance(chunk, int) else [*map(int, chunk)]


def chunks_of(order):
    """The records of each chunk."""
    return np.split(np.arange(order.n), np.cumsum(sizes_of(order))[:-1])


def test_the_subset_of_all_records_is_the_order():
    for windows in ({}, {"chunk": 9, "window": 3}, {"chunk": [40, 10, 30, 20], "window": 2}):
        order = Permutation(100, 7, 3, **windows)
        assert np.array_equal(order.subset(np.ones(100, bool))[:], order[:])


@settings(deadline=None, max_examples=150)
@given(subsets(), st.data())
def test_a_subset_is_a_permutation_of_its_records(order, data):
    kept = order.kept
    values = reference.subset(kept.tolist(), sizes_of(order), order.window or 1, order.seed, order.epoch)
    assert order[:].tolist() == values
    assert sorted(order) == kept.tolist()
    assert order.inverse_index(order[:]).tolist() == list(range(len(order)))
    place = data.draw(st.integers(0, len(order) - 1))
    assert order.inverse_index(order[place]) == place and type(order.inverse_index(kept[0])) is int
    mask = np.zeros(order.n, bool)
    mask[kept] = True
    for same in (mask, mask.tolist(), kept.tolist(), kept.astype(np.int16), np.repeat(kept, 2)[::2]):
        assert order.order.subset(same) == order == Subset(order.order, same)
    assert [record in order for record in range(-1, order.n + 1)] == [False, *mask.tolist(), False]
    for other in ([-1], [order.n], np.flatnonzero(~mask)):
        if len(other):
            with pytest.raises(shufd.Invalid, match=r"^values(\[0\])?: "):
                order.inverse_index(other)
    begin, count = data.draw(st.integers(0, 400)), data.draw(st.integers(0, 400))
    assert order.range(begin, count).tolist() == [order[(begin + k) % len(order)] for k in range(count)]


@pytest.mark.parametrize("n", [300_000, 2**16, 2**32 + 1])
def test_the_records_of_a_mask(n):
    """A mask is read in blocks."""
    mask = np.zeros(min(n, 300_000), bool)
    mask[::7] = mask[2**16 - 2 :: 2**14] = True
    if n > mask.size:
        with pytest.raises(shufd.Invalid, match=f"^kept: .* or a mask of {n} booleans"):
            Permutation(n, 7).subset(mask)
    else:
        kept = Permutation(n, 7).subset(mask).kept
        assert kept.dtype == np.uint32 and np.array_equal(kept, np.flatnonzero(mask))


def test_a_subset_keeps_no_array_of_the_caller():
    for given_kept in (np.array([1, 5], np.uint64), np.array([1, 5], np.uint32), np.array([1, 5]), np.arange(6) % 4 == 1):
        order = Permutation(6, 7).subset(given_kept)
        before = order[:]
        given_kept[:] = given_kept[::-1].copy()
        assert np.array_equal(order[:], before)
        with pytest.raises(ValueError):
            order.kept[0] = 3


@pytest.mark.parametrize("kept, message", [
    ([], r"kept: \[\]: expected at least one record"), (np.zeros(10, bool), "kept: ndarray of shape .*: expected at least one record"),
    ([1, 1], r"kept\[1\]: 1 after 1: expected records in ascending order, each once: pass numpy.unique"),
    ([5, 8, 3], r"kept\[2\]: 3 after 8: expected"), ([0, 1, 1, 0, 1], r"kept\[2\]: 1 after 1: .* or a mask of booleans"),
    ([3, 10], r"kept\[1\]: 10: expected a record below n, which is 10"), ([-1, 3], r"^kept\[0\]: -1: expected 0 or more"),
    ([2**70], "kept"), ([1.0], "kept: type float64: expected integers"), (np.ones(9, bool), "kept: ndarray of shape .*: expected .* a mask of 10 booleans"),
    ([[1, 2]], "kept: .*expected records in one dimension"), (3, "kept: 3: expected records in one"), (None, "kept: None"),
    ("12", "kept: '12'"), (np.ma.array([1, 2], mask=[0, 1]), "kept: it has a mask"), ({1, 2}, r"kept: \{1, 2\}"),
])  # fmt: skip
def test_wrong_subsets(kept, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        Permutation(10, 7).subset(kept)


def test_a_subset_of_too_many_chunks():
    with pytest.raises(shufd.Invalid, match=r"^kept: records of 16777217 chunks: expected at most 2\^24 chunks"):
        Permutation(2**30, 7, chunk=1, window=3).subset(np.arange(2**24 + 1))


def test_a_subset_of_something_else():
    with pytest.raises(shufd.Invalid, match="^order: .*: expected a shufd.local.Permutation"):
        Subset(Permutation(10, 7).subset([1]), [0])
    assert not hasattr(Permutation(10, 7).subset([1]), "subset")  # of numbers, or of numbers of numbers?


# ---- Chunks --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(permutations() | subsets(), st.integers(0, 400), st.integers(0, 400), st.integers(1, 9))
def test_chunks_that_a_rank_needs(order, offset, count, world):
    if order.chunk is None:
        with pytest.raises(shufd.Invalid, match="chunk: None: expected a windowed order"):
            order.chunks(offset, count, world)
        return
    number_of = np.concatenate([np.full(len(records), k) for k, records in enumerate(chunks_of(order))])
    needed = number_of[[order[i] for i in range(offset, len(order), world)[:count]]].tolist() if offset < len(order) else []
    assert order.chunks(offset, count, world).tolist() == list(dict.fromkeys(needed))


@settings(deadline=None, max_examples=100)
@given(permutations() | subsets())
def test_a_reader_has_a_window_of_chunks_open(order):
    """From its first record to its last, a chunk is open."""
    if order.chunk is None:
        return
    places = [[order.inverse_index(i) for i in records.tolist() if i in order] for records in chunks_of(order)]
    changes = np.zeros(len(order) + 1, int)
    for of_chunk in filter(None, places):
        changes[min(of_chunk)] += 1
        changes[max(of_chunk) + 1] -= 1
    assert np.cumsum(changes).max() <= order.window


def test_chunks_beyond_the_types_of_numpy():
    for n in (10, 2**32, 2**33):
        for chunk in (2**31, 2**32, 2**63, 2**64 - 1):
            order = Permutation(n, 7, chunk=chunk, window=1)
            last = (n - 1) // chunk
            assert order.chunks(order.inverse_index(n - 1), 1).tolist() == [last]
            assert sorted(order.subset([0, n - 1]).chunks(0, 2).tolist()) == sorted({0, last})


def test_wrong_chunks():
    for order in (Weighted([1, 2], 7), Mixture([5], [1], 7, chunk=2, window=1)):
        with pytest.raises(shufd.Invalid, match="chunk: None: expected a windowed order"):
            order.chunks(0, 1)
    windowed = Permutation(10, 7, chunk=2, window=2)
    for arguments, name in (((-1, 1), "offset"), ((0, -1), "count"), ((0, 1, 0), "stride"), ((0, 1, -1), "stride"), ((0.5, 1), "offset")):
        with pytest.raises(shufd.Invalid, match=f"^{name}: "):
            windowed.chunks(*arguments)


# ---- Refusals, subclasses, threads and processes -------------------------------------------------


@pytest.mark.parametrize("order", [Weighted([1, 2], 7, length=9), Weighted([1, 2, 3], 7, replacement=False), Mixture([5], [1], 7, length=3)])
def test_ranges_behind_the_end(order):
    end = len(order)
    for offset, count, stride in ((end, 1, 1), (0, end + 1, 1), (1, end, 1), (0, 2, end), (0, 2, 0), (2**62, 1, 1)):
        with pytest.raises(shufd.Invalid, match=f"offset: {offset}, count {count}, stride {stride}: expected positions below {end}"):
            order.range(offset, count, stride)
    for offset, count, stride in ((end, 0, 1), (2**64 - 1, 0, 0), (0, 0, 2**64 - 1)):
        assert order.range(offset, count, stride).size == 0
    assert order.range(0, 1, 2**64 - 1)[0] == order[0]


def test_wrong_orders():
    for call, message in (
        (lambda: Weighted([1, 2], 7, length=0), "length: 0: expected 1 to"), (lambda: Weighted([1], 7, length=2**62), "length: "),
        (lambda: Weighted([1], 7, length=1.5), "length: 1.5: expected an integer"),
        (lambda: Weighted([1, 0], 7, length=2, replacement=False), "length: 2: expected at most 1, the weights above 0"),
        (lambda: Weighted([0], 7, replacement=False), "all are 0"), (lambda: Weighted([1], 7, replacement=1), "replacement: 1: "),
        (lambda: Mixture([5], [1], 7).with_epoch(1), "epoch: 1: expected 0, because a mixture is one run"),
        (lambda: Mixture([5], [1], 7).with_epoch(-1), "epoch: -1: expected 0 to"),
        (lambda: Permutation(5, 7).with_epoch(2**64), "epoch: "), (lambda: Permutation(5, 7).subset([1]).with_epoch("1"), "epoch: '1'"),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=message):
            call()
    with pytest.raises(TypeError):
        Permutation(5, 7)["a"]


class Reversed(Permutation):
    """A subclass with another order."""

    def range(self, offset, count, stride=1, *, out=None):
        return self.n - 1 - super().range(offset, count, stride, out=out)


def test_subclasses():
    order = Reversed(100, 7, 3)
    assert order[:].tolist() == [99 - i for i in Permutation(100, 7, 3)] == [order[i] for i in range(100)]
    for other in (pickle.loads(pickle.dumps(order)), copy.deepcopy(order), order.with_epoch(3)):
        assert type(other) is Reversed and other == order != Permutation(100, 7, 3)
    assert type(order.with_epoch(4).subset([5, 6]).order) is Reversed


def test_threads_and_children_share_a_sample():
    order = Weighted(np.arange(50_000), 7, replacement=False)
    expected = Weighted(np.arange(50_000), 7, replacement=False)[:]

    def read(_):
        assert np.array_equal(order.with_epoch(0)[::7], expected[::7]) and np.array_equal(order[:], expected)

    run_threads(read, 6)

    def child():
        assert np.array_equal(order[:], expected) and np.array_equal(pickle.loads(pickle.dumps(order))[:], expected)

    run_in_child(child)


def test_text():
    assert repr(Permutation(10, 7).subset([1, 5])) == "shufd.local.Permutation(n=10, seed=7, epoch=0).subset([1, 5])"
    large = Permutation(1000, 7).subset(np.arange(500))
    assert repr(large) == "shufd.local.Permutation(n=1000, seed=7, epoch=0).subset(ndarray of shape (500,))"
    assert re.fullmatch(r"shufd.local.Weighted\(weights=\[1, 2], seed=7, epoch=0, length=5\)", repr(Weighted([1, 2], 7, length=5)))


# ---- Chunks of unequal sizes ---------------------------------------------------------------------

SMALL = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 200)), min_size=1, max_size=60)
LARGE = st.lists(st.one_of(st.just(2**40), st.integers(1, 2**54), st.integers(1, 9)), min_size=1, max_size=40)
WINDOWS = st.one_of(st.integers(1, 70), st.just(2**64 - 1))


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


def test_threads_and_children_share_an_order():
    order = Permutation(seed=7, chunk=range(1, 400), window=10)
    expected = order.range(0, order.n)

    def read(offset):
        for first in range(offset, order.n - 1000, 3001):
            assert np.array_equal(order.range(first, 1000), expected[first : first + 1000])

    run_threads(read, 4)

    def child():
        assert np.array_equal(order.range(0, order.n), expected) and order.inverse_index(int(expected[5])) == 5

    run_in_child(child)


def test_a_signal_ends_calls():
    order = Permutation(seed=7, chunk=[2**40 + i for i in range(100)], window=3)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            order.range(0, 10**7)
    timer.join()
