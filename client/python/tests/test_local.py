# SPDX-License-Identifier: MIT
"""shufd.local: the golden tables and the daemon's values in this process, out=, threads, fork and Ctrl-C."""

import os
import pathlib
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import golden
import shufd
from conftest import run_in_child, run_threads
from shufd import local

BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
ALGORITHMS = ("primefold", "philox24", "lcg")


def bits(values):
    return np.asarray(values).view(BITS[np.asarray(values).itemsize])


def same(a, b):
    """Equal types, shapes and bits."""
    assert a.dtype == b.dtype and a.shape == b.shape
    assert (bits(a) == bits(b)).all()


# ---- The golden tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_golden_orders(algorithm):
    rows = [row for row in golden.orders(2**24) if row.algorithm == algorithm]
    assert len(rows) > 100
    for row in rows:
        order = local.permute(row.n, row.seed, row.epoch, algorithm=algorithm, threads=0 if row.n > 10**6 else 1)
        shown = order if row.n <= 40 else np.concatenate([order[:8], order[-4:]])
        assert shown.tolist() == row.values and local.fingerprint(order) == row.fingerprint, row


def test_golden_numbers():
    for row in golden.numbers():
        place = {"size": row.count, "seed": row.seed, "stream": row.stream, "offset": row.offset, "dtype": row.dtype}
        values = row.draw(local.normal, local.uniform, local.exponential, local.bits, local.integers, **place)
        assert bits(values)[:8].tolist() == row.values and local.fingerprint(values) == row.fingerprint, row


def test_golden_shards():
    for n, world, rank, drop_last, step, positions in golden.shards():
        order = local.permute(n, 7, 3)
        shard = local.permute(
            n, 7, 3, rank=rank, world=world, drop_last=bool(drop_last), step=step, count=len(positions) or None
        )
        assert shard.tolist() == order[positions].tolist()


# ---- The daemon ----------------------------------------------------------------------------------


VIEWS = st.one_of(
    st.just({}),
    st.builds(lambda o, s: {"offset": o, "stride": s}, st.integers(0, 40), st.integers(1, 9)),
    st.builds(
        lambda w, r, d, s: {"world": w, "rank": r % w, "drop_last": d, "step": s if s < 2 else None},
        st.integers(1, 9), st.integers(0, 8), st.booleans(), st.integers(0, 2),
    ),
    st.builds(lambda e: {"epochs": range(e, e + 3)}, st.integers(0, 2**64 - 4)),
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(41, 3000), seed=st.integers(-(2**63), 2**64 - 1), epoch=st.integers(0, 2**64 - 1), view=VIEWS,
    dtype=st.sampled_from([None, "u32", "u64", "i64"]), algorithm=st.sampled_from(ALGORITHMS), threads=st.integers(0, 3),
)  # fmt: skip
def test_permute_is_that_of_the_daemon(client, n, seed, epoch, view, dtype, algorithm, threads):
    if "epochs" in view:
        epoch = 0
    options = {**view, "dtype": dtype, "algorithm": algorithm}
    expected = client.permute(n, seed, epoch, **options)
    same(local.permute(n, seed, epoch, threads=threads, **options), expected)
    out = np.empty(expected.shape, expected.dtype)
    assert local.permute(n, seed, epoch, out=out, **options) is out
    same(out, expected)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.one_of(st.none(), st.integers(0, 3000), st.tuples(st.integers(0, 30), st.integers(1, 9))),
    seed=st.integers(0, 2**64 - 1), stream=st.integers(0, 2**64 - 1), offset=st.integers(0, 2**61),
    law=st.one_of(
        st.tuples(st.just("normal"), st.sampled_from(["f64", "f32", "f16", "bf16"]), st.floats(-99, 99),
                  st.floats(0.001, 99), st.sampled_from(["table", "box-muller"])),
        st.tuples(st.just("uniform"), st.sampled_from(["f64", "f32"]), st.floats(-99, 99), st.floats(100, 200), st.none()),
        st.tuples(st.just("uniform"), st.sampled_from(["f64", "f32", "u32", "u64"]), st.just(0.0), st.just(1.0), st.none()),
        st.tuples(st.just("exponential"), st.sampled_from(["f64", "f32"]), st.floats(0.001, 99), st.none(), st.none()),
        st.tuples(st.just("bits"), st.sampled_from(["u32", "u64"]), st.floats(0, 1), st.none(), st.none()),
        st.tuples(st.just("integers"), st.just("u32"), st.integers(1, 2**32), st.none(), st.none()),
        st.tuples(st.just("integers"), st.just("u64"), st.integers(1, 2**64 - 1), st.none(), st.none()),
    ),
)  # fmt: skip
def test_numbers_are_those_of_the_daemon(client, size, seed, stream, offset, law):
    name, dtype, first, second, method = law
    parameters = (first,) if second is None else (first, second)
    options = {"size": size, "seed": seed, "stream": stream, "offset": offset, "dtype": dtype}
    options |= {} if method is None else {"method": method}
    expected = getattr(client, name)(*parameters, **options)
    values = getattr(local, name)(*parameters, **options)
    if size is None:
        assert values == expected and isinstance(values, (float, int))
        return
    same(values, np.asarray(expected))
    out = np.empty(values.shape, values.dtype)
    options.pop("size"), options.pop("dtype")
    assert getattr(local, name)(*parameters, out=out, **(options if dtype != "bf16" else {**options, "dtype": dtype})) is out
    same(out, values)


def test_laws_of_exponential_numbers_and_bits():
    """By chance a count or a mean is 6 standard deviations off once in 10^9 runs; the seeds are fixed."""
    for dtype, count in (("f64", 10**6), ("f32", 10**6)):
        values = np.sort(local.exponential(2.5, count, seed=11, dtype=dtype).astype("f8") / 2.5)
        assert values[0] > 0 and abs(values.mean() - 1) < 6 / count**0.5
        distance = np.abs(-np.expm1(-values) - (np.arange(count) + 0.5) / count).max()  # of Kolmogorov and Smirnov
        assert distance < 2.5 / count**0.5
    for p in (0, 2.0**-20, 0.1, 0.25, 0.5, 0.9, 1):
        words = local.bits(p, 10**5, seed=11, dtype="u32")
        ones = np.unpackbits(words.view("u1"), bitorder="little")
        assert (words >> 5 & 1 == ones[5::32]).all()
        for part in (ones, ones[:-1] & ones[1:] if 0 < p < 1 else ones, ones[7::128]):
            expected = p**2 if part.size == ones.size - 1 else p
            assert abs(part.mean() - expected) <= 6 * (expected * (1 - expected) / part.size) ** 0.5 * (2 if expected != p else 1)


def test_bits_of_a_larger_probability_include_those_of_a_smaller_one():
    smaller, larger = (local.bits(p, 10**4, seed=7, stream=3, dtype="u64") for p in (0.3, 0.7))
    assert (smaller & ~larger == 0).all() and (larger & ~smaller).any()


@pytest.mark.parametrize("bound", [1, 2, 10, 1000, 2**31 + 1, 3 << 30, 2**32, 2**32 + 1, 3 << 62, 2**64 - 1])
def test_integers_are_equally_likely(bound):
    """By chance, chi squared of 9 degrees of freedom exceeds 60 once in 10^9 runs; the seeds are fixed."""
    values = local.integers(bound, 10**5, seed=11)
    assert values.dtype == ("u4" if bound <= 2**32 else "u8") and int(values.max()) < bound
    for dtype in ("u32", "u64") if bound <= 2**32 else ("u64",):
        values = local.integers(bound, 10**5, seed=11, dtype=dtype).astype("u8")
        parts = min(bound, 10)
        edges = [-(-bound * part // parts) for part in range(parts + 1)]  # part of the values is below edges[part]
        counts = np.array([((values >= low) & (values <= high - 1)).sum() for low, high in zip(edges, edges[1:])])
        expected = np.array([(high - low) / bound for low, high in zip(edges, edges[1:])]) * len(values)
        assert ((counts - expected) ** 2 / expected).sum() < 60, (bound, dtype, counts)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (1000,), (300, 7), (20, 0), (5, 70_000)])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">f4", "S5"])
def test_shuffle_is_that_of_the_daemon(client, algorithm, shape, dtype):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    expected = client.shuffle(array, 7, 3, algorithm=algorithm)
    got = local.shuffle(array, 7, 3, algorithm=algorithm)
    assert got.dtype == expected.dtype and (got == expected).all() and got.flags.writeable
    back = np.empty_like(array)
    assert local.unshuffle(got, 7, 3, algorithm=algorithm, out=back, threads=2) is back
    assert (back == array).all()
    if len(shape) == 2 and shape[0] > 1:
        assert (local.shuffle(array[::2], 7, algorithm=algorithm) == client.shuffle(array[::2], 7, algorithm=algorithm)).all()


def test_index(client):
    at = np.random.default_rng(1).integers(0, 10**12, (30, 40))
    values = local.index(at, 10**12, 7, 3)
    assert (values == client.index(at, 10**12, 7, 3)).all()
    out = np.empty(at.shape, np.uint64)
    assert local.inverse_index(values, 10**12, 7, 3, out=out, threads=2) is out and (out == at).all()
    assert local.index(out, 10**12, 7, 3, out=out) is out and (out == values).all()


def test_a_generator_gives_the_numbers_of_the_daemon(client):
    one, other = shufd.Stream(7), shufd.Stream(7)
    for dtype, size in (("f64", 3), ("f32", 5), ("f16", 7), ("f32", 0), ("f64", 2)):
        for method in ("table", "box-muller"):
            same(local.normal(size=size, generator=one, dtype=dtype, method=method),
                 client.normal(size=size, generator=other, dtype=dtype, method=method))  # fmt: skip
    same(local.uniform(-1, 1, size=5, generator=one), client.uniform(-1, 1, size=5, generator=other))
    for dtype in ("f64", "f32", None):
        same(local.exponential(3, 5, generator=one, dtype=dtype), client.exponential(3, 5, generator=other, dtype=dtype))
    for dtype in ("u32", "u64", None):
        same(local.bits(0.3, 5, generator=one, dtype=dtype), client.bits(0.3, 5, generator=other, dtype=dtype))
        for bound in (1, 10**9):
            same(local.integers(bound, 5, generator=one, dtype=dtype), client.integers(bound, 5, generator=other, dtype=dtype))
    assert one.draw == other.draw
    with pytest.raises(shufd.Invalid, match=r"^out: shape \(2,\): expected \(3,\)"):
        local.normal(size=3, generator=one, out=np.empty(2))
    assert one.draw == other.draw


def test_numbers_of_64_bits_share_those_of_two_of_32():
    same(local.bits(0.3, 50, seed=7, offset=50, dtype="u64").view("u4"), local.bits(0.3, 100, seed=7, offset=100))
    upper = local.integers(2**63, 50, seed=7, offset=50) >> np.uint64(63 - 20)
    same(upper.astype("u4"), local.integers(2**20, 100, seed=7, offset=100)[1::2])


@pytest.mark.parametrize("name", ["normal", "uniform", "exponential", "bits", "integers"])
def test_a_generator_has_its_own_place(client, name):
    stream = shufd.Stream(7)
    for draw in getattr(client, name), getattr(local, name):
        arguments = [9] if name == "integers" else []
        for place in dict(stream=1), dict(offset=1):
            with pytest.raises(shufd.Invalid, match="^stream: ., offset: .: expected neither with a generator"):
                draw(*arguments, size=3, generator=stream, **place)
        assert stream.draw == 0
        draw(*arguments, size=0, generator=stream, stream=0, offset=0)


class Interrupt(Exception):
    """Of a signal handler."""


def interrupted_at(call, number):
    """Whether a call was interrupted as it entered a function of shufd.random for the time `number`, where Python runs
    signal handlers."""
    entered = 0

    def trace(frame, event, _):
        nonlocal entered
        entered += event == "call" and frame.f_globals.get("__name__") == "shufd.random"
        if entered == number:
            raise Interrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
        return False
    except Interrupt:
        return True
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("call", [lambda stream: local.normal(size=3, generator=stream), lambda stream: stream.advance(2)])
def test_an_interrupt_leaves_a_stream_usable(call):
    stream, number, drawn = shufd.Stream(7), 1, []
    while interrupted_at(lambda: call(stream), number):
        worker = threading.Thread(target=lambda: drawn.append(local.normal(generator=stream)), daemon=True)
        worker.start()
        worker.join(10)
        assert len(drawn) == number, "the stream is locked"
        number += 1
    assert number > 2 and len(set(drawn)) == len(drawn)


def test_an_interrupt_of_the_scaling_does_not_move_a_stream(monkeypatch):
    stream = shufd.Stream(7)

    def interrupt(*_):
        raise Interrupt

    with monkeypatch.context() as patch:
        patch.setattr("shufd._in_process.scale", interrupt)
        with pytest.raises(Interrupt):
            local.uniform(1.0, 3.0, size=3, generator=stream)
    assert stream.draw == 0


def test_parts_without_values():
    for part in ({"count": 0}, {"offset": 3, "count": 0}, {"offset": 10}, {"offset": 10, "count": 0}, {"count": 0, "stride": 2}):
        assert local.permute(10, 7, **part).shape == (0,) and local.permute(10, 7, epochs=range(2), **part).shape == (2, 0)
    assert local.Permutation(10, 7).range(3, 0).shape == (0,)


def test_a_permutation_is_a_value():
    order, windowed = local.Permutation(10, -1, 3), local.Permutation(10, -1, 3, chunk=2, window=2)
    for change in (lambda: setattr(order, "n", 5), lambda: delattr(order, "seed"), lambda: setattr(order, "other", 5)):
        with pytest.raises(AttributeError):
            change()
    for one in (order, windowed):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and hash(again) == hash(one) and again.seed == 2**64 - 1
    others = {order, windowed, local.Permutation(10, 7, 3), local.Permutation(10, -1, 4), local.Permutation(9, -1, 3)}
    assert len(others) == 5 and order == local.Permutation(10, 2**64 - 1, 3) and order != [*order]


def test_a_permutation_reads_no_freed_memory():
    """Its fields come from a structure of C. Here freed memory has other bytes at once."""
    program = "import shufd.local; print(shufd.local.Permutation(1000, 7, 3))"
    environment = {**os.environ, "PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "shufd.local.Permutation(n=1000, seed=7, epoch=3)\n", done.stderr


def test_values_in_a_permutation():
    order = local.Permutation(2**62, 7)  # so large that a search would not end
    for value in (0, 2**62 - 1, np.uint64(5), 3.0, True):
        assert value in order
    for value in (-1, 2**62, 2**70, 0.5, float("nan"), float("inf"), "1", None, np.arange(3)):
        assert value not in order


def test_ranges_into_an_array():
    order = local.Permutation(1000, 7, 3)
    for kind in (np.uint32, np.uint64, np.int64):
        out = np.empty(50, kind)
        for offset, stride in ((5, 1), (990, 1), (0, 20), (0, 0), (7, 10**6)):
            assert order.range(offset, 50, stride, out=out) is out
            assert np.array_equal(out, order.range(offset, 50, stride)), (kind, offset, stride)
    for wrong in (np.empty(49, np.uint32), np.empty(50, np.int32), np.empty(100, np.uint32)[::2], [0] * 50):
        with pytest.raises(shufd.Invalid, match="out"):
            order.range(0, 50, out=wrong)
    with pytest.raises(shufd.Invalid, match="out"):
        local.Permutation(2**32 + 1, 7).range(0, 50, out=np.empty(50, np.uint32))


def test_ranges_wrap():
    order = local.Permutation(10_007, 7, 3)
    whole = local.permute(10_007, 7, 3)
    for first, count, stride in ((0, 10_007, 1), (10_000, 20, 1), (5, 100, 10_006), (3, 50, 2**61), (7, 9, 0), (1, 0, 1)):
        assert order.range(first, count, stride).tolist() == [whole[(first + k * stride) % 10_007] for k in range(count)]
    large = local.Permutation(2**62, 7)
    first, stride = 2**62 - 3, 2**62 - 5
    assert large.range(first, 9, stride).tolist() == [large[(first + k * stride) % 2**62] for k in range(9)]


def test_a_fingerprint_does_not_depend_on_the_order_of_bytes():
    for dtype in ("u4", "i8", "f8", "f2"):
        values = np.arange(10, dtype=dtype)
        assert local.fingerprint(values.astype(np.dtype(dtype).newbyteorder("S"))) == local.fingerprint(values)


# ---- Refusals ------------------------------------------------------------------------------------

ROWS = np.array([(1, 2), (3, 4), (5, 6)], [("x", "i4"), ("y", "i4")])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: local.permute(10, 7, out=np.empty(9, np.uint32)), r"out: shape \(9,\): expected \(10,\)"),
        (lambda: local.permute(10, 7, out=np.empty(10, np.float32)), "out: type float32: expected uint32, uint64 or int64 in nat"),
        (lambda: local.permute(10, 7, out=np.empty(10, ">u4")), "out: type >u4: expected uint32, uint64 or int64 in native byte order"),
        (lambda: local.normal(seed=7, out=np.empty(3, ">f4")), "out: type >f4: expected float64, float32, float16 or bfloat16 in"),
        (lambda: local.shuffle(np.arange(4), 7, out=np.empty(4, ">i8")), "out: type >i8: expected int64 in native byte order"),
        (lambda: local.permute(10, 7, dtype="u32", out=np.empty(10, np.uint64)), "out: type uint64: expected uint32"),
        (lambda: local.permute(10, 7, out=np.empty(20, np.uint32)[::2]), r"out: strides \(8,\): expected a C-contiguous"),
        (lambda: local.permute(10, 7, out=[0] * 10), r"out: \[0, 0.*: expected an array of NumPy or CuPy of shape \(10,\)"),
        (lambda: local.permute(10, 7, out=np.broadcast_to(np.uint32(1), 10)), "out: "),
        (lambda: local.permute(0, 7), r"n 0: expected 1 to 2\^62"),
        (lambda: local.permute(0, 7, count=0), r"n 0: expected 1 to 2\^62"),
        (lambda: local.permute(10, 7, count=-1), "count: -1: expected 0 to"),
        (lambda: local.permute(10, 7, epochs=range(2**65)), "epochs: 36893488147419103232: expected 0 to"),
        (lambda: local.permute(10, 7, epochs=range(3, 3)), r"epochs: range\(3, 3\): expected a range with step 1"),
        (lambda: local.permute(10, None), "seed: None: expected an integer"),
        (lambda: local.shuffle(np.arange(4), None), "seed: None: expected an integer"),
        (lambda: local.Permutation(10, 7).range(0, -1), "count: -1: expected 0 to"),
        (lambda: local.normal(size=(0, 2**63), seed=7), "result: 2 dimensions, 0 bytes: "),
        (lambda: local.shuffle(ROWS, 7, out=np.empty(3, object)), r"out: type object: expected \[\('x', "),
        (lambda: local.shuffle(ROWS.view("V8"), 7, out=np.empty(3)), r"out: type float64: expected \|V8"),
        (lambda: local.Permutation(10, 7).range(0, 2.5), "count: 2.5: expected an integer"),
        (lambda: local.permute(10, 7, threads=-1), "threads: -1: expected 0"),
        (lambda: local.permute(10, 7, threads=1.5), "threads: 1.5: expected an integer"),
        (lambda: local.normal(scale=0, size=3, seed=7), "scale 0: expected 2"),
        (lambda: local.normal(scale=-1, size=3, seed=7), "scale -1: expected 2"),
        (lambda: local.normal(size=3), "seed: None, generator: None: expected one of the two"),
        (lambda: local.normal(size=0, seed=7, offset=2**63), "offset"),
        (lambda: local.normal(size=3, seed=7, offset=-1), r"offset: -1: expected 0 to 2\^62 - 1"),
        (lambda: local.normal(size=3, generator=np.random.default_rng(7)), "generator: .*: expected a shufd.Stream; for a generator of N"),
        (lambda: local.uniform(1, 0, size=3, seed=7), "high: 0.0: expected at least low"),
        (lambda: local.uniform(0, 2, size=3, seed=7, dtype="u32"), "low: 0.0, high: 2.0: expected neither"),
        (lambda: local.exponential(0, 3, seed=7), "scale 0: expected 2"),
        (lambda: local.exponential(1, 3, seed=7, dtype="f16"), "dtype: 'f16': expected one of f64, f32"),
        (lambda: local.bits(1.5, 3, seed=7), "p 1.5: expected a probability, 0 to 1"),
        (lambda: local.bits(float("nan"), 3, seed=7), "p nan: expected a probability, 0 to 1"),
        (lambda: local.bits(0.5, 3, seed=7, dtype="i64"), "dtype: 'i64': expected one of u32, u64"),
        (lambda: local.integers(0, 3, seed=7), r"bound 0: expected 1 to 2\^32 with dtype u32"),
        (lambda: local.integers(0, 3, seed=7, dtype="u64"), r"bound 0: expected 1 to 2\^64 - 1 with dtype u64"),
        (lambda: local.integers(2**32 + 1, 3, seed=7, dtype="u32"), r"bound 4294967297: expected 1 to 2\^32 with dtype u32"),
        (lambda: local.integers(2**64, 3, seed=7), r"bound: 18446744073709551616: expected 0 to 2\^64 - 1"),
        (lambda: local.integers(9.5, 3, seed=7), "bound: 9.5: expected an integer"),
        (lambda: local.integers(9, 3, seed=7, dtype="i64"), "dtype: 'i64': expected one of u32, u64"),
        (lambda: local.shuffle(np.arange(4), 7, out=np.arange(4, dtype="u8")), "out: type uint64: expected int64"),
        (lambda: local.shuffle(np.array(4), 7), r"array: shape \(\), type int64: expected at least one dimension"),
        (lambda: local.index([3, 10], 10, 7), r"positions\[1\] 10: expected less than n = 10"),
        (lambda: local.inverse_index([10], 10, 7), r"values\[0\] 10: expected less than n = 10"),
        (lambda: local.fingerprint(np.zeros(3, "u1")), "values: type uint8: expected a type with 2, 4 or 8 bytes"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


def test_a_shuffle_may_not_overlap():
    array = np.arange(10)
    for call in (local.shuffle, local.unshuffle):
        with pytest.raises(shufd.Invalid, match="^array and out overlap: expected two .* of 80 bytes; a shuffle cannot be in place$"):
            call(array, 7, out=array)


def test_an_unaligned_array_is_refused():
    out = np.empty(41, np.uint8)[1:].view(np.uint32)
    with pytest.raises(shufd.Invalid, match="^out: strides .* aligned for its type"):
        local.permute(10, 7, out=out)


def test_keys_are_refused():
    with pytest.raises(TypeError, match="'key'.*a named key never leaves its daemon"):
        local.permute(10, key="training")


def test_results_that_do_not_fit():
    for n in (2**50, 2**59):
        with pytest.raises(shufd.OutOfMemory, match="^result: [0-9]+ bytes: they do not fit the memory of this process"):
            local.permute(n, 7)
        assert local.permute(n, 7, offset=n - 1).shape == (1,)
    for call in (
        lambda: local.normal(size=2**61, seed=7),
        lambda: local.normal(size=(2**40, 2**40), seed=7),
        lambda: local.normal(size=2**70, seed=7),
        lambda: local.Permutation(2**62, 7).range(0, 2**62),
    ):
        with pytest.raises(shufd.OutOfMemory, match="^result: [0-9]+ bytes: they do not fit the memory of this process"):
            call()
    for call in (
        lambda: local.permute(10, 7, epochs=range(0, 2**63)),
        lambda: local.permute(2**62, 7),
        lambda: local.permute(2**62, 7, epochs=range(0, 2)),
    ):
        with pytest.raises(shufd.OutOfMemory, match=r"^n \d+: \d+ x \d+ values pass 2\^63 bytes"):
            call()


def test_copies_that_do_not_fit():
    values = np.broadcast_to(np.float32(1), (2**15, 2**32))
    for call, name in (
        (lambda: local.fingerprint(values), "values"),
        (lambda: local.fingerprint(np.broadcast_to(np.array(1, ">f4"), 2**47)), "values"),
        (lambda: local.index(np.broadcast_to(np.uint32(1), 2**46), 10, 7), "positions"),
    ):
        with pytest.raises(shufd.OutOfMemory, match=f"^{name}: ndarray of shape .*: a copy does not fit the memory of this process"):
            call()


def test_threads_that_do_not_start():
    with pytest.raises(shufd.Invalid, match="^threads 1000000: expected at most 65536$"):
        local.permute(10**6, 7, threads=10**6)
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**32, before[1]))  # 5000 stacks need more
    try:
        with pytest.raises(shufd.IOFailure, match="^threads 5000: "):
            local.permute(10**6, 7, threads=5000)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_an_array_with_a_mask_is_refused():
    with pytest.raises(shufd.Invalid, match="^out: MaskedArray of shape"):
        local.permute(9, 7, out=np.ma.MaskedArray(np.zeros(9, np.uint32)))


def test_a_gpu_without_the_library():
    """The error of the call for a GPU, which a program reaches only with an array of CuPy or a tensor of torch."""
    from shufd import _in_process, _request

    request = _request.whole(10, 7, None, 0, "primefold")
    out = np.empty(16, np.uint32)
    with pytest.raises(shufd.DeviceError) as error:
        _in_process.check(_in_process.lib.shufpy_cuda_fill(request, out.ctypes.data & ~15, 40, 0, 0, 0))
    if "cannot open shared object" in str(error.value):
        assert re.search(r"install shufd-cuda1[123] of shufd [0-9.]+$", str(error.value))


# ---- Threads, fork, signals ----------------------------------------------------------------------


def test_eight_threads():
    expected = local.permute(300_000, 7, dtype="u64")
    numbers = local.normal(size=100_000, seed=7, dtype="f32")

    def run(number):
        for _ in range(5):
            assert (local.permute(300_000, 7, dtype="u64", threads=1 + number % 3) == expected).all()
            assert (local.normal(size=100_000, seed=7, dtype="f32", threads=1 + number % 3) == numbers).all()

    run_threads(run, 8)


def test_child_of_a_process_with_a_team():
    expected = local.permute(300_000, 7, threads=2)

    def child():
        assert (local.permute(300_000, 7, threads=2) == expected).all()
        assert (local.permute(300_000, 7, threads=0) == expected).all()

    run_in_child(child)


def test_fork_during_a_call_with_a_stream():
    """The thread of the call is not in the child, which gets new locks. Those of the thread that forks stay."""
    stream, inside, go_on = shufd.Stream(7), threading.Event(), threading.Event()
    worker = threading.Thread(target=lambda: stream._turn(lambda: inside.set() or go_on.wait(60)))
    worker.start()
    inside.wait(60)

    def child():
        signal.alarm(20)
        assert local.normal(generator=stream) == local.normal(seed=7)
        assert pickle.loads(pickle.dumps(stream)).draw == 1

    run_in_child(child)
    go_on.set()
    worker.join()

    def child_in_a_call():
        with pytest.raises(shufd.Invalid, match="^generator: a call of this thread uses it"):
            stream.advance(1)

    stream._turn(lambda: run_in_child(child_in_a_call))
    assert local.normal(generator=stream) == local.normal(seed=7)


LONG = """
import shufd.local, threading, time
def call():
    shufd.local.permute(2**31, 7, {options})
print("begins", flush=True)
"""


def interrupted(tail, options="threads=1"):
    """Runs a long call, sends SIGINT to it, and returns its output and the seconds until its end."""
    process = subprocess.Popen(
        [sys.executable, "-c", LONG.format(options=options) + tail], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.7)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    return out + error, time.monotonic() - begin


@pytest.mark.parametrize("options", ["threads=1", "threads=2", "algorithm='philox24'"])
def test_ctrl_c_ends_a_call(options):
    text, seconds = interrupted("call()", options)
    assert "KeyboardInterrupt" in text and seconds < 5


def test_a_signal_handler_may_compute():
    handler = """
import signal
signal.signal(signal.SIGINT, lambda *_: print("handler", shufd.local.permute(10, 7)[0], flush=True) or exit(3))
call()
"""
    text, seconds = interrupted(handler, "threads=2")
    assert text == "handler 4\n" and seconds < 5


def test_ctrl_c_during_a_call_of_another_thread():
    """The main thread gets the signal at once; the call of the other thread goes on."""
    tail = """
worker = threading.Thread(target=call, daemon=True)
worker.start()
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("main", worker.is_alive(), flush=True)
    import os; os._exit(0)
"""
    text, seconds = interrupted(tail)
    assert text == "main True\n" and seconds < 5


def test_import_takes_less_than_a_fifth_of_a_second(tmp_path):
    """Of a processor, with the bytecode of the first import, without the time of NumPy, and without torch."""
    program = """
import sys, time, numpy
begin = time.process_time(); import shufd; print(time.process_time() - begin); assert "torch" not in sys.modules
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    seconds = min(float(subprocess.check_output([sys.executable, "-c", program], env=environment)) for _ in range(5))
    assert seconds < 0.2


# ---- CuPy, by a stand-in whose device memory is host memory --------------------------------------


class DeviceMemory:
    """An array of CuPy, over one of NumPy."""

    def __init__(self, array, read_only=False):
        self.array, self.shape, self.dtype, self.nbytes = array, array.shape, array.dtype, array.nbytes
        self.strides, self.read_only = array.strides, read_only

    @property
    def __cuda_array_interface__(self):
        contiguous = self.array.flags.c_contiguous
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.array.ctypes.data, self.read_only), "version": 3,
                "strides": None if contiguous else self.strides}  # fmt: skip

    def __len__(self):
        return len(self.array)

    def __imul__(self, factor):
        self.array *= factor
        return self

    def __iadd__(self, term):
        self.array += term
        return self

    def clip(self, low, high, out):
        self.array.clip(low, high, out=out.array)


@pytest.fixture
def cupy(monkeypatch):
    """Replaces CuPy and the calls for a GPU. They get the stream 5 of the device 1, and a workspace of 64 bytes."""
    from shufd import _in_process

    here = []

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            here.append(self.number)

        def __exit__(self, *_):
            here.pop()

    def on_device(stream, workspace, size):
        assert (stream, here) == (5, [1]) and workspace and size == 64

    def fill(request, out, size, workspace, workspace_size, stream):
        on_device(stream, workspace, workspace_size)
        return libshuf.shufpy_host_fill(request, 1, out, size)

    def shuffle(records, rows, out, size, workspace, workspace_size, stream):
        on_device(stream, workspace, workspace_size)
        return libshuf.shufpy_host_shuffle(records, 1, rows, out, size)

    libshuf, memory = _in_process.lib, np.empty(64, np.uint8)
    runtime = types.SimpleNamespace(pointerGetAttributes=lambda address: types.SimpleNamespace(device=1))
    cuda = types.SimpleNamespace(
        Device=Device, runtime=runtime, get_current_stream=lambda: types.SimpleNamespace(ptr=5),
        alloc=lambda size: types.SimpleNamespace(ptr=memory.ctypes.data),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(_in_process, "lib", types.SimpleNamespace(
        shufpy_cuda_fill=fill, shufpy_cuda_shuffle=shuffle, shufpy_host_fill=libshuf.shufpy_host_fill,
        shufpy_host_shuffle=libshuf.shufpy_host_shuffle,
    ))  # fmt: skip
    monkeypatch.setattr(_in_process, "workspace_bytes", lambda request: 64)


def test_arrays_of_cupy(cupy):
    def filled(call, shape, dtype):
        out = DeviceMemory(np.zeros(shape, dtype))
        assert call(out) is out
        return out.array

    same(filled(lambda out: local.permute(100, 7, 3, out=out), 100, np.int64), local.permute(100, 7, 3, dtype="i64"))
    same(filled(lambda out: local.normal(seed=7, out=out), (5, 3), np.float32), local.normal(size=(5, 3), seed=7, dtype="f32"))
    same(filled(lambda out: local.uniform(-1, 2, seed=7, out=out), 9, np.float64), local.uniform(-1, 2, 9, seed=7))
    rows = np.arange(12.0).reshape(4, 3)
    same(filled(lambda out: local.shuffle(DeviceMemory(rows), 7, out=out), (4, 3), np.float64), local.shuffle(rows, 7))
    assert filled(lambda out: local.permute(5, 7, offset=5, out=out), 0, np.uint32).shape == (0,)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: local.permute(9, 7, out=DeviceMemory(np.zeros(18, np.int64)[::2])), r"out: strides \(16,\): expected a C-"),
        (lambda: local.permute(9, 7, out=DeviceMemory(np.zeros(9, np.int64), read_only=True)), "out: read-only"),
        (lambda: local.permute(9, 7, out=DeviceMemory(np.zeros(8, np.int64))), r"out: shape \(8,\): expected \(9,\)"),
        (lambda: local.shuffle(np.zeros(9), 7, out=DeviceMemory(np.zeros(9))), "out: DeviceMemory, array: ndarray: expected both"),
        (lambda: local.shuffle(DeviceMemory(np.zeros(9)), 7, out=np.zeros(9)), "out: ndarray, array: DeviceMemory: expected both"),
        (lambda: local.shuffle(DeviceMemory(np.zeros((9, 2))[:, :1]), 7, out=DeviceMemory(np.zeros((9, 1)))), "array: strides"),
        (lambda: local.index([1], 9, 7, out=DeviceMemory(np.zeros(1, np.uint64))), "out: DeviceMemory: expected an array of NumPy"),
    ],
)  # fmt: skip
def test_refusals_of_arrays_of_cupy(cupy, call, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


# ---- Windowed orders -----------------------------------------------------------------------------


@given(
    n=st.integers(1, 5000), chunk=st.integers(1, 300), window=st.integers(1, 40), seed=st.integers(0, 2**64 - 1)
)
@settings(max_examples=40, deadline=None)
def test_windows(n: int, chunk: int, window: int, seed: int) -> None:
    """A bijection; each window has all records of its chunks; parts and look-ups agree with the whole."""
    order = local.permute(n, seed, 1, chunk=chunk, window=window)
    assert sorted(order.tolist()) == list(range(n))
    begin, chunks = 0, -(-n // chunk)
    seen: list[int] = []
    while len(seen) < chunks and begin < n:
        inside = sorted(set((order[begin : begin + 1] // chunk).tolist()))
        end = begin
        while end < n and (int(order[end]) // chunk in inside or len(inside) < min(window, chunks - len(seen))):
            inside = sorted({*inside, int(order[end]) // chunk})
            end += 1
        assert end - begin == sum(min(n - k * chunk, chunk) for k in inside)
        seen, begin = seen + inside, end
    assert begin == n and sorted(seen) == list(range(chunks))
    permutation = local.Permutation(n, seed, 1, chunk=chunk, window=window)
    assert permutation.range(n // 3, n - n // 3).tolist() == order[n // 3 :].tolist()
    assert permutation.inverse_index(order).tolist() == list(range(n))


def test_windows_of_a_daemon(client: shufd.Client) -> None:
    order = local.permute(70001, 7, 3, chunk=97, window=40)
    leased = client.permute(70001, 7, 3, chunk=97, window=40)
    assert np.array_equal(leased, order)
    assert np.array_equal(client.permute(70001, 7, 3, chunk=97, window=40, rank=5, world=8), np.resize(order, 70008)[5::8])
    assert np.array_equal(client.index([0, 70000], 70001, 7, 3, chunk=97, window=40), order[[0, 70000]])
    assert np.array_equal(client.inverse_index(order[:9], 70001, 7, 3, chunk=97, window=40), np.arange(9))
    assert client.leases()[0]["window"] == 40
    uniform = client.permute(1000, 7)
    assert np.array_equal(client.permute(1000, 7, chunk=100, window=10), uniform)  # one window


def test_chunks_of_windows() -> None:
    permutation = local.Permutation(10_000, 7, chunk=100, window=5)
    assert permutation.chunks(permutation.n, 1).size == permutation.chunks(0, 0).size == 0
    first = permutation.chunks(0, 500)
    assert len(first) == 5 and first[0] == permutation[0] // 100
    assert set(first.tolist()).isdisjoint(permutation.chunks(500, 500).tolist())
    assert pickle.loads(pickle.dumps(permutation)).range(0, 10).tolist() == permutation.range(0, 10).tolist()


@pytest.mark.parametrize("windows, words", [
    ({"chunk": 3}, "expected both or none"), ({"window": 3}, "expected both or none"),
    ({"chunk": 0, "window": 3}, "expected at least 1"), ({"chunk": 3, "window": 3, "algorithm": "lcg"}, "expected primefold"),
])  # fmt: skip
def test_wrong_windows(windows: dict, words: str) -> None:
    with pytest.raises(shufd.Invalid, match=words):
        local.permute(10, 7, **windows)


def test_a_team_that_grows_again_is_tried_first():
    """A smaller team ends the threads of a larger one, so the next large one may fail, but does not end the process."""
    program = """
import resource, shufd, numpy as np
out = np.empty(1 << 22, np.uint32)
for threads in (16, 2):
    shufd.local.permute(1 << 22, seed=7, threads=threads, out=out)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (3 << 20), resource.RLIM_INFINITY))
try:
    shufd.local.permute(1 << 22, seed=7, threads=16, out=out)
except shufd.IOFailure as error:
    print(error)
"""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer needs the address space")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "threads 16: 15 more threads cannot be started" in done.stdout
