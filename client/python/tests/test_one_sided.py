# SPDX-License-Identifier: MIT
"""One-sided plans of exchanges, against their definition in NumPy."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shufd
from conftest import lease_count

UNIT = 65_536
WINDOW = 1 << 21
WINDOWS_MOST = 256


def equal_parts(n, world):
    return [n // world + (rank < n % world) for rank in range(world)]


def sources_of(client, n, outputs, rank, inverse, seed, epoch):
    """For each place of the rank, the position of its record before the shuffle."""
    places = np.arange(outputs[rank], dtype=np.uint64) + np.uint64(sum(outputs[:rank]))
    look_up = client.inverse_index if inverse else client.index
    return look_up(places, n, seed, epoch).astype(np.int64)


def window_bits(sizes):
    bits = 21
    while sum((size + (1 << bits) - 1) >> bits for size in sizes) > WINDOWS_MOST:
        bits += 1
    return bits


def expected_lists(sources, sizes, part):
    """begins, records and indices."""
    bits = window_bits(sizes)
    ends = np.cumsum(sizes)
    first_windows = np.cumsum([0, *((size + (1 << bits) - 1) >> bits for size in sizes)])
    owners = np.searchsorted(ends, sources, side="right")
    numbers = sources - (ends - sizes)[owners]
    windows = first_windows[owners] + (numbers >> bits)
    begins, records, indices = [], [], []
    for first in range(0, max(1, len(sources)), part):
        of_part = windows[first : first + part]
        order = np.argsort(of_part, kind="stable")
        begins.append(np.searchsorted(of_part[order], np.arange(first_windows[-1] + 1)))
        records.append(numbers[first : first + part][order])
        indices.append(np.argsort(order))
    return [np.concatenate(lists) for lists in (begins, records, indices)]


def check(client, n, rank, world, part, input=None, output=None, inverse=False, seed=7, epoch=3):
    plan = client.exchange_one_sided(
        n, seed, epoch, rank=rank, world=world, part=part, input=input, output=output, inverse=inverse
    )
    sizes = equal_parts(n, world) if input is None else list(input)
    outputs = sizes if output is None else list(output)
    expected = expected_lists(sources_of(client, n, outputs, rank, inverse, seed, epoch), sizes, part)
    assert (plan.sizes, plan.places, plan.part) == (tuple(sizes), outputs[rank], part)
    assert plan.parts * (plan.windows[-1] + 1) == len(plan.begins)
    for got, values in zip((plan.begins, plan.records, plan.indices), expected):
        assert got.dtype == np.uint32 and np.array_equal(got, values)
    assert len(plan.numbers) == sum(map(len, expected))
    return plan


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("n", [1, 63, 64, 65_536, 200_003])
def test_equal_parts(client, n, world, inverse):
    for rank in {0, world // 2, world - 1}:
        check(client, n, rank, world, UNIT, inverse=inverse)


@st.composite
def divided(draw, n, world):
    """Sizes with the sum n, of which several are 0."""
    cuts = sorted(draw(st.lists(st.sampled_from([0, n]) | st.integers(0, n), min_size=world - 1, max_size=world - 1)))
    return [end - first for first, end in zip([0, *cuts], [*cuts, n])]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_uneven_parts(daemon, data):
    world = data.draw(st.sampled_from([1, 2, 3, 5, 64]))
    n = data.draw(st.integers(1, 300_000))
    sizes = [data.draw(st.none() | divided(n, world)) for _ in range(2)]
    with shufd.connect(daemon.socket) as client:
        check(
            client, n, data.draw(st.integers(0, world - 1)), world, UNIT * data.draw(st.integers(1, 3)), *sizes,
            inverse=data.draw(st.booleans()), seed=data.draw(st.integers(0, (1 << 64) - 1)),
        )  # fmt: skip


@pytest.mark.parametrize("inverse", [False, True])
def test_windows(client, inverse):
    """Ranks of one record more or less than windows have, and of so many that windows get larger."""
    input = [2 * WINDOW, WINDOW + 1, 0, WINDOW - 1, 1]
    output = [100_000, 0, 4 * WINDOW + 1 - 200_000, 99_999, 1]
    for rank in (0, 1, 3, 4):
        plan = check(client, sum(input), rank, 5, UNIT, input, output, inverse)
        assert plan.windows == [0, 2, 4, 4, 5, 6]
    for n, windows in ((1 << 29, [0, 128, 256]), ((1 << 29) + 1, [0, 65, 129])):
        check(client, n, 1, 2, UNIT, None, [n - 70_000, 70_000], inverse)
        half = equal_parts(n, 2)
        plan = client.exchange_one_sided(n, 7, rank=1, world=2, part=UNIT, output=[n - 1, 1], inverse=inverse)
        assert plan.windows == windows and plan.sizes == tuple(half)


def test_most_ranks_of_most_records(client):
    n = 1 << 38
    plan = check(client, n, 63, 64, 1 << 31, None, [n - 5000, *[0] * 62, 5000])
    assert plan.windows == list(range(0, 257, 4))


def test_lists_are_shared_and_read_only(client):
    gc.collect()
    before = lease_count(client)
    ask = dict(n=100_000, seed=11, rank=0, world=2)
    first, again = (client.exchange_one_sided(part=UNIT, **ask) for _ in range(2))
    assert first.numbers.ctypes.data == again.numbers.ctypes.data
    other = client.exchange_one_sided(part=2 * UNIT, **ask)
    assert other.numbers.ctypes.data != first.numbers.ctypes.data
    with pytest.raises(ValueError):
        first.records[0] = 1
    del first, again, other
    assert lease_count(client) == before


def test_sizes_of_any_shape(client):
    """exchange() too takes the sizes that it can read as one list."""
    expected = client.exchange_one_sided(10, 7, rank=1, world=2, part=UNIT, input=[4, 6], output=[1, 9])
    for input, output in (((4, 6), np.array([1, 9], np.uint8)), ([[4, 6]], np.array([[1], [9]]))):
        plan = client.exchange_one_sided(10, 7, rank=1, world=2, part=UNIT, input=input, output=output)
        assert np.array_equal(plan.numbers, expected.numbers)
        assert (plan.sizes, plan.places) == ((4, 6), 9)
    assert client.exchange_one_sided(10, 7, rank=0, world=1, part=np.uint32(UNIT), input=10).sizes == (10,)
    assert len(client.exchange(10, 7, rank=1, world=2, input=[[4, 6]]).order) == 6


def test_prefetch(client):
    ask = dict(n=300_000, seed=12, rank=1, world=3)
    computed = client.status()["computed"]
    client.prefetch_exchange(part=UNIT, **ask)
    (found,) = (lease for lease in client.leases() if lease["seed"] == 12)
    assert (found["kind"], found["count"], found["part"], found["prefetch"]) == ("exchange", 2 * 4 + 200_000, UNIT, True)
    plan = client.exchange_one_sided(part=UNIT, **ask)
    assert client.status()["computed"] == computed + 1
    assert plan.parts == 2 and plan.places == 100_000
    again = client.exchange_one_sided(part=UNIT, **ask)
    assert again.numbers.ctypes.data == plan.numbers.ctypes.data
    client.prefetch_exchange(**ask)  # of both sides
    assert sum(lease["seed"] == 12 and lease["prefetch"] for lease in client.leases()) == 1


ONE = dict(n=10, seed=7, rank=0, world=1)


@pytest.mark.parametrize(
    "changes, text",
    [
        (dict(part=1), "part 1: expected a multiple of 65536 up to 2^31"),
        (dict(part=UNIT + 1), "part 65537: expected a multiple of 65536"),
        (dict(part=(1 << 31) + UNIT), "part 2147549184: expected a multiple of 65536"),
        (dict(part=-1), "part: -1: expected 0 to 2^64 - 1"),
        (dict(part=1 << 64), "part: 18446744073709551616: expected 0 to 2^64 - 1"),
        (dict(part=1.5), "part: 1.5: expected an integer; convert it with int()"),
        (dict(part=None), "part: None: expected an integer"),
        (dict(world=0), "world 0: expected 1 to"),
        (dict(world=65), "world 65: expected at most 64 for a one-sided plan"),
        (dict(rank=1), "rank 1: expected less than world = 1"),
        (dict(n=0), "n 0: expected 1 to 2^62"),
        (dict(n=(1 << 32) + 1), "input of rank 0, 4294967297 records: expected at most 2^32 for a one-sided plan"),
        (dict(input=[]), "input: 0 sizes, expected world = 1, or None"),
        (dict(input=[9]), "input: 1 size with the sum 9, expected n = 10"),
        (dict(output=[11]), "output[0] 11: expected at most 10, the rest of n = 10"),
        (dict(algorithm="lcg"), "algorithm lcg: expected primefold"),
        (dict(device="cuda"), "device: 'cuda': this daemon has the backend cpu"),
    ],
)
def test_errors(client, changes, text):
    for ask in (client.exchange_one_sided, client.prefetch_exchange):
        with pytest.raises(shufd.Invalid) as caught:
            ask(**{**ONE, "part": UNIT, **changes})
        assert text in str(caught.value)


def test_no_part(client):
    with pytest.raises(shufd.Invalid, match="part: 0: expected a multiple of 65536 up to 2\\^31"):
        client.exchange_one_sided(part=0, **ONE)
    with pytest.raises(TypeError, match="part"):
        client.exchange_one_sided(**ONE)


def test_too_large_for_the_memory(client):
    n = 1 << 38
    needs = "the request needs 2.00 TiB of host memory with its input and workspace, the limit is"
    with pytest.raises(shufd.OutOfMemory, match=needs):
        client.exchange_one_sided(n, 7, rank=0, world=64, part=UNIT, output=[n, *[0] * 63])
