# SPDX-License-Identifier: MIT
"""Requests and their results as arrays."""

import copy
import ctypes
import decimal
import errno
import fcntl
import functools
import gc
import importlib.util
import itertools
import os
import pathlib
import pickle
import platform
import re
import signal
import struct
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shufd
from conftest import Daemon, await_value, descriptor_count, lease_count, mapping_count, private_bytes, run_threads
from shufd import _dtype
from shufd.random import RecordGenerator, ReplacementGenerator


def test_first_example(client):
    assert client.permute(10, seed=7).tolist() == [4, 0, 5, 1, 2, 9, 6, 8, 7, 3]
    assert str(shufd.permute(10, seed=7)) == "[4 0 5 1 2 9 6 8 7 3]"


@pytest.mark.parametrize("algorithm", ["primefold", "philox24", "lcg"])
@pytest.mark.parametrize("n", [1, 2, 256, 257, 1000, 65_537])
def test_permutation(client, algorithm, n):
    order = client.permute(n, 7, 3, algorithm=algorithm)
    assert order.dtype == np.uint32 and order.shape == (n,)
    assert (np.sort(order) == np.arange(n)).all()
    rows = client.permute(n, 7, epochs=range(2, 5), algorithm=algorithm)
    assert rows.shape == (3, n) and (rows[1] == order).all()
    assert (client.permute(n, 7, 3, offset=n // 2, stride=3, algorithm=algorithm) == order[n // 2 :: 3]).all()
    assert (client.permute(n, 7, 3, offset=n // 3, count=1, algorithm=algorithm) == order[n // 3]).all()
    assert (client.permute(n, 7, 3, rank=1, world=4, drop_last=True, algorithm=algorithm)
            == order[1 :: 4][: n // 4]).all()  # fmt: skip


@pytest.mark.parametrize("dtype", ["u32", "u64", "i64", "uint64", np.int64, np.dtype("uint32")])
def test_dtypes(client, dtype):
    order = client.permute(1000, 7, dtype=dtype)
    name = {"u32": "uint32", "u64": "uint64", "i64": "int64"}.get(dtype, dtype)
    assert order.dtype == np.dtype(name) and (order == client.permute(1000, 7)).all()


def lists_of(plan):
    return plan.to, plan.arriving, plan.order, plan.places


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_integers_of_numpy(client, kind):
    """Their arithmetic wraps, or makes floats."""
    n, three = kind(120), kind(3)
    order = client.permute(120, 7, 3)
    assert np.array_equal(client.permute(n, kind(7), three), order)
    assert np.array_equal(client.permute(n, kind(7), three, offset=kind(1), stride=three), order[1::3])
    assert client.permute(n, kind(7), epochs=range(3)).shape == (3, 120)
    for of_numpy, expected in zip(
        lists_of(client.exchange(n, kind(7), rank=kind(1), world=kind(100))),
        lists_of(client.exchange(120, 7, rank=1, world=100)),
    ):
        assert np.array_equal(of_numpy, expected)


def test_result_is_shared_and_read_only(client):
    first, second = client.permute(100_000, 7), client.permute(100_000, 7)
    assert first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    with pytest.raises(ValueError):
        first.setflags(write=True)
    with pytest.raises(ValueError):
        first.view(np.uint8).setflags(write=True)


def test_empty_shard(client):
    empty = client.permute(3, 7, rank=1, world=8, drop_last=True)
    assert empty.shape == (0,) and empty.dtype == np.uint32 and not empty.flags.writeable


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n, world", [(1000, 3), (7, 8), (64, 4)])
def test_rank_resumes_at_step(client, n, world, drop_last):
    for rank in range(world):
        shard = {"rank": rank, "world": world, "drop_last": drop_last}
        order = client.permute(n, 7, 3, **shard)
        for step in {0, 1, len(order) // 2, len(order)} - {len(order) + 1}:
            if step <= len(order):
                assert (client.permute(n, 7, 3, step=step, **shard) == order[step:]).all()
        if len(order) > 2:
            assert client.permute(n, 7, 3, step=1, count=2, **shard).tolist() == order[1:3].tolist()
            client.prefetch(n, 7, 3, step=2, count=1, **shard)
            assert client.permute(n, 7, 3, step=2, count=1, **shard).tolist() == order[2:3].tolist()


def test_named_key(tmp_path):
    """Each call accepts a key instead of a seed. The fingerprint is from tests/vectors/named_keys.txt."""
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    (keys / "training").write_text("000102030405060708090a0b0c0d0e0f")
    (keys / "training").chmod(0o600)
    daemon = Daemon(tmp_path, CREDENTIALS_DIRECTORY=str(keys)).start()
    with shufd.connect(daemon.socket) as client:
        assert client.fingerprint(1000, key="training", epoch=3) == "0x6b6bfba7f6d9a4fe"
        order = client.permute(1000, key="training", epoch=3)
        assert (np.sort(order) == np.arange(1000)).all()
        assert (order != client.permute(1000, 0, 3)).any()
        assert client.index([4, 5], 1000, key="training", epoch=3).tolist() == order[4:6].tolist()
        assert client.inverse_index(order[9], 1000, key="training", epoch=3) == 9
        rows = np.arange(1000)
        assert (client.shuffle(rows, key="training", epoch=3) == order).all()
        assert (client.unshuffle(order, key="training", epoch=3) == rows).all()
        assert (client.normal(size=9, key="training") != client.normal(size=9, seed=0)).all()
        assert [lease["key"] for lease in client.leases()] == ["training"]
    daemon.stop()


def test_leases_and_drop(killable_daemon):
    with shufd.connect(killable_daemon.socket) as client:
        order = client.permute(1_000_000, 7, 3)
        noise = client.uniform(size=1_000_000, seed=8, dtype="f32")
        first, second = client.leases()
        assert first["pid"] == second["pid"] == os.getpid() and first["id"] != second["id"]
        assert (first["kind"], first["n"], first["seed"], first["epoch"]) == ("permute", 1_000_000, 7, 3)
        assert first["algorithm"] == "primefold" and first["transport"] == "memfd" and first["ready"]
        assert (second["kind"], second["seed"], second["dtype"]) == ("uniform", 8, "f32")
        assert first["bytes"] >= 4_000_000 and first["age"] >= 0 and first["count"] == 1_000_000
        del noise
        gc.collect()
        client.permute(3, 7)
        while len(client.leases()) > 2:
            time.sleep(0.01)
        before = client.status()["host_idle"]
        assert before >= 4_000_000
        dropped = client.drop()
        assert dropped["results"] >= 1 and dropped["device_bytes"] == 0
        assert client.status()["host_idle"] < before
        assert order[0] == client.index(0, 1_000_000, 7, 3)
        client.drop(everybody=True)
        buffer = client.shuffle(np.arange(10), 7)
        assert {"shuffle"} <= {lease["kind"] for lease in client.leases()} and len(buffer) == 10


def test_look_ups(client):
    order = client.permute(100_003, 7, 3)
    at = np.random.default_rng(1).integers(0, 100_003, (30, 400))
    assert (client.index(at, 100_003, 7, 3) == order[at]).all()
    assert (client.inverse_index(order[at], 100_003, 7, 3) == at).all()
    assert (shufd.local.index(at, 100_003, 7, 3) == order[at]).all()
    assert (shufd.local.inverse_index(order[at], 100_003, 7, 3) == at).all()
    assert client.index(5, 100_003, 7, 3) == order[5] == shufd.local.index(5, 100_003, 7, 3)
    assert client.index([], 10, 7).shape == shufd.local.index([], 10, 7).shape == (0,)


@pytest.mark.parametrize("n", [1, 2, 256, 257, 1000, 65_521, 65_537, 1 << 40, 1 << 62])
def test_local_permutation(n):
    order = shufd.local.Permutation(n, 7, 3)
    last = order[n - 1]
    assert order.inverse_index(last) == n - 1 and order[-1] == last and len(order) == n
    count = min(n, 1000)
    assert order.range(n - 1, count, 2)[0] == last
    assert order.range(0, count, 3).tolist() == [order[3 * k % n] for k in range(count)]
    assert pickle.loads(pickle.dumps(order))[n // 2] == order[n // 2]
    with pytest.raises(shufd.Invalid, match=rf"positions\[1\] {n}: expected less than n"):
        order.index([0, n])


ALLOWED = {
    "permute": ("uint32", "uint64", "int64"),
    "normal": ("float64", "float32", "float16", "bfloat16"),
    "uniform": ("float64", "float32", "uint32", "uint64"),
}


@pytest.mark.parametrize("call", ALLOWED)
def test_every_scalar_class_of_numpy(client, call):
    """A class and its name are accepted both, or refused both."""
    for kind in {*np.sctypeDict.values()}:
        for dtype in (kind, np.dtype(kind), np.dtype(kind).name):
            arguments = {"n": 10} if call == "permute" else {"size": 10}
            if np.dtype(kind).name in ALLOWED[call]:
                assert getattr(client, call)(**arguments, seed=7, dtype=dtype).dtype == np.dtype(kind)
                continue
            with pytest.raises(shufd.Invalid, match="^dtype: .*: expected one of "):
                getattr(client, call)(**arguments, seed=7, dtype=dtype)


def test_names_of_types_with_a_module(client):
    """float has NumPy's meaning, torch.float torch's."""
    names = {"float": "f8", float: "f8", "torch.float": "f4", "torch.double": "f8", "torch.half": "f2", "np.single": "f4"}
    for name, kind in names.items():
        assert client.normal(size=3, seed=7, dtype=name).dtype == np.dtype(kind)
    assert client.permute(3, seed=7, dtype="torch.long").dtype == np.int64


def test_a_class_is_no_number(client):
    with pytest.raises(shufd.Invalid, match="^loc: <class 'numpy.float64'>: expected a number$"):
        client.normal(loc=np.float64, size=3, seed=7)


@pytest.mark.parametrize("shape", [(1,), (1000,), (1000, 3), (77, 5, 2), (5, 0)])
@pytest.mark.parametrize("dtype", ["f8", "u1", "c16", "S7", [("a", "i4"), ("b", "f8")]])
def test_shuffle(client, shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.random.default_rng(1).integers(0, 256, size, np.uint8).view(dtype).reshape(shape)
    shuffled = client.shuffle(array, 7, 3)
    assert shuffled.dtype == array.dtype
    assert shuffled.tobytes() == array[client.permute(len(array), 7, 3)].tobytes()
    assert client.unshuffle(shuffled, 7, 3).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["V0", [], "S0"])
def test_shuffle_of_items_without_bytes(client, dtype):
    array = np.empty(4, dtype)
    shuffled = client.shuffle(array, 7, 3)
    assert shuffled.dtype == array.dtype and shuffled.shape == array.shape


def forbid_file_leases():
    """F_SETLEASE fails in this thread and in its children, as on a kernel without file leases."""
    # struct sock_filter: code, jt, jf, k. It loads the number of the call, and then its second argument.
    program = b"".join(
        struct.pack("HBBI", *row)
        for row in (
            (0x20, 0, 0, 0), (0x15, 0, 3, 72), (0x20, 0, 0, 24), (0x15, 0, 1, fcntl.F_SETLEASE),
            (0x06, 0, 0, 0x00050000 | errno.EINVAL), (0x06, 0, 0, 0x7FFF0000),
        )
    )  # fmt: skip
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.create_string_buffer(filters, len(filters)), 0, 0) == 0  # PR_SET_SECCOMP


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86-64")
def test_shuffle_without_file_leases(client, tmp_path):
    """The daemon then lends no memory, so the array reaches its buffer by requests."""
    daemon = Daemon(tmp_path)

    def start():
        forbid_file_leases()
        daemon.start()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    rows = np.arange(90_000, dtype=np.int32).reshape(30_000, 3)
    with shufd.connect(daemon.socket) as other:
        assert (other.shuffle(rows, seed=7) == client.shuffle(rows, seed=7)).all()
    assert "file leases" in daemon.log.read_text()
    daemon.stop()


def test_shuffle_of_a_view(client):
    array = np.arange(600.0).reshape(100, 6)[:, ::2]
    assert (client.shuffle(array, 7) == array[client.permute(100, 7)]).all()


def test_streams(client):
    values = client.normal(3.0, 2.0, (50, 40), seed=7)
    assert values.shape == (50, 40) and values.dtype == np.float64 and not values.flags.writeable
    assert (client.normal(3.0, 2.0, 100, seed=7, offset=60) == values.ravel()[60:160]).all()
    assert client.normal(3.0, 2.0, seed=7) == values[0, 0]
    assert abs(client.normal(3.0, 2.0, 100_000, seed=7, method="box-muller").mean() - 3) < 0.05
    uniform = client.uniform(size=1000, seed=7, stream=2)
    assert (client.uniform(-1, 3, 1000, seed=7, stream=2) == -1 + 4 * uniform).all()
    assert client.uniform(size=9, seed=7, dtype="u64").dtype == np.uint64
    assert client.normal(size=9, seed=7, dtype="f16").dtype == np.float16
    assert client.normal(size=9, seed=7, dtype="bf16").dtype.itemsize == 2


def test_stream_object(client):
    stream = shufd.Stream(7)
    parts = [client.normal(size=k, generator=stream) for k in (10, 1, 29)]
    assert stream.draw == 20 and (np.concatenate(parts) == client.normal(size=40, seed=7)).all()
    stream.advance(-20)
    assert (client.normal(size=9, generator=stream) == parts[0][:9]).all() and stream.draw == 5
    for later in copy.deepcopy(stream), pickle.loads(pickle.dumps(stream)):
        assert client.normal(generator=later) == parts[0][9]
    assert client.normal(generator=shufd.Stream(7, draw=stream.draw)) == parts[1][0]  # without the rest of the draw
    children = stream.spawn(3) + stream.spawn(3)
    children += shufd.BitGenerator(7).spawn(3)
    assert len({getattr(child, "stream", None) or child.state["state"]["stream"] for child in children} | {0}) == 10
    for parent in stream, shufd.BitGenerator(7):
        for count in -3, 2.5:
            with pytest.raises(shufd.Invalid, match="^n_children: "):
                parent.spawn(count)
    assert stream.spawn(1)[0].stream not in {getattr(child, "stream", None) for child in children}
    assert repr(stream) == "shufd.Stream(seed=7, stream=0, draw=5)"


def test_a_state_without_a_field_leaves_the_place(client):
    generator = shufd.BitGenerator(9, 3, 100)
    before = generator.state
    for field in ("has_uint32", "uinteger", "spawned", "state"):
        with pytest.raises(KeyError, match=field):
            generator.state = {name: value for name, value in shufd.BitGenerator(7).state.items() if name != field}
        assert generator.state == before


def test_a_signal_handler_cannot_use_the_stream_of_the_call_that_it_interrupts(client):
    """It gets an error. Between calls it may draw, and nobody gets its numbers again."""
    stream, drawn, refused = shufd.Stream(7), [], []

    def handle(*_):
        try:
            drawn.append(client.uniform(size=3, generator=stream))
        except shufd.Invalid as error:
            refused.append(str(error))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while not refused:
            drawn.append(client.uniform(size=1000, generator=stream))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "generator: a call of this thread uses it" in refused[0]
    values = np.concatenate(drawn)
    assert len(set(values.tolist())) == len(values)


def test_states_of_a_generator_that_another_thread_uses():
    """The half of a number that is kept belongs to the place."""
    generator = np.random.Generator(shufd.BitGenerator(7))
    places, ends = [], threading.Event()

    def look():
        while not ends.is_set():
            places.append(generator.bit_generator.state)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(200_000):
        generator.integers(2**32, dtype=np.uint32)
    ends.set()
    thread.join()
    halves = {}
    for state in places:
        if state["has_uint32"]:
            assert halves.setdefault(state["state"]["offset"], state["uinteger"]) == state["uinteger"]
    raw = shufd.BitGenerator(7).random_raw(100_001)
    assert all(half == int(raw[offset - 1]) >> 32 for offset, half in halves.items()) and halves


@pytest.mark.skipif(not hasattr(np.random.BitGenerator, "seed_seq"), reason="older NumPy does not show it")
def test_a_generator_has_no_seed_sequence():
    with pytest.raises(shufd.Invalid, match="seed_seq: .* use its spawn"):
        shufd.BitGenerator(7).seed_seq.spawn(2)


def test_failed_calls_do_not_move_a_stream(client):
    stream = shufd.Stream(7)
    first = client.normal(generator=stream)
    for arguments in dict(method="x"), dict(scale=-1), dict(size=2**63), dict(size=2**61 - 1):
        with pytest.raises(shufd.Error):
            client.normal(generator=stream, **arguments)
    assert client.normal(size=2, seed=7).tolist() == [first, client.normal(generator=stream)]


def test_places_end_with_the_stream(client):
    """Both kinds of generators have the same draws, none after 2^60."""
    for make in (lambda: shufd.Stream(7, draw=2**60 + 1), lambda: shufd.Stream(7).advance(-1),
                 lambda: shufd.Stream(7, draw=2**60).advance(1), lambda: shufd.BitGenerator(7, offset=2**61 + 1),
                 lambda: shufd.BitGenerator(7).advance(-1), lambda: shufd.BitGenerator(7, 0, 2**61).advance(1)):  # fmt: skip
        with pytest.raises(shufd.Invalid, match="expected 0 to 2\\^6[01], the end of the stream"):
            make()
    bits = shufd.BitGenerator(7)
    with pytest.raises(shufd.Invalid, match="offset"):
        bits.state = {**bits.state, "state": {"seed": 7, "stream": 0, "offset": 2**61 + 1}}
    stream = shufd.Stream(7, draw=2**60 - 1)
    assert client.uniform(size=4, dtype="f32", generator=stream).size == 4
    with pytest.raises(shufd.Invalid, match="the end of the stream"):
        client.uniform(dtype="f32", generator=stream)


TYPES = [("uniform", name) for name in (None, "f64", "f32", "u32", "u64")]
TYPES += [(method, name) for method in ("table", "box-muller") for name in (None, "f64", "f32", "f16", "bf16")]
TYPES += [("exponential", name) for name in (None, "f64", "f32")] + [("bits", name) for name in ("u32", "u64")]
TYPES += [("integers", name) for name in ("u32", "u64")]


def drawing(client, law):
    """The call of a client that draws numbers of a law."""
    is_normal = law in ("table", "box-muller")
    if law == "integers":
        return functools.partial(client.integers, 2**32)
    return functools.partial(client.normal, method=law) if is_normal else getattr(client, law)


def random_bits(method, dtype, number):
    """What number `number` of a stream is made from (docs/spec.md): a 32-bit word of a draw of its method; or for a
    normal law what only the number itself may have: its number in a block, or its half of a pair of words."""
    if method == "table":
        return {number}
    wide = dtype in (None, "f64", "u64")
    if method in ("uniform", "exponential", "bits", "integers"):
        return {2 * number, 2 * number + 1} if wide else {number}
    pair, side = divmod(number, 2)
    return {(2 * pair, side), (2 * pair + 1, side)} if wide else {(pair, side)}


CALLS = st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 9)), min_size=2, max_size=12)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=CALLS)
def test_no_two_numbers_of_a_stream_share_bits(client, calls):
    stream, used, pairs = shufd.Stream(7), set(), {}
    for (method, dtype), count in calls:
        draw = drawing(client, method)
        offset = stream._take(shufd.random.kind_of(method, _dtype.NUMBERS.get(dtype, 0)), 0, lambda offset: offset)
        values = draw(size=count, generator=stream, dtype=dtype)
        assert values.tobytes() == draw(size=count, seed=7, offset=offset, dtype=dtype).tobytes()
        for number in range(offset, offset + count):
            bits = {(method, bit) for bit in random_bits(method, dtype, number)}
            assert not bits & used
            used |= bits
            if method == "box-muller":  # both halves of a pair are of one kind of types
                assert all(pairs.setdefault(pair, dtype in (None, "f64")) == (dtype in (None, "f64")) for _, (pair, _) in bits)


@pytest.mark.parametrize("first", TYPES)
def test_all_pairs_of_types_of_a_stream_differ(client, first):
    """1000 values of one type, then 1000 of another: no number comes twice."""
    for second in TYPES:
        if first == second or "16" in f"{first[1]} {second[1]}":
            continue  # 1000 values of 16 bits have equal ones by chance
        stream, found = shufd.Stream(11), []
        for method, dtype in (first, second):
            values = drawing(client, method)(size=1000, generator=stream, dtype=dtype)
            if method in ("uniform", "bits", "integers"):
                bits = 32 if method == "integers" else values.itemsize * 8
                found.append(values >> (bits - 24) if values.dtype.kind == "u" else np.floor(np.ldexp(values, 24)))
            else:
                found.append(np.rint(values.astype("f8") * 2**20))
        # By chance a millionth of a million pairs of normal numbers; 500 of them were equal in one draw.
        assert len(np.intersect1d(*(part.astype("i8") for part in found))) < 20, (first, second)


def test_bit_generator(client):
    generator = np.random.Generator(shufd.BitGenerator(7, 2))
    assert (generator.random(1001) == client.uniform(size=1001, seed=7, stream=2)).all()
    again = np.random.Generator(pickle.loads(pickle.dumps(generator.bit_generator)))
    assert (again.normal(size=10) == generator.normal(size=10)).all()
    later = copy.deepcopy(again.bit_generator)
    later = np.random.Generator(later).normal(size=10)
    raw = shufd.BitGenerator(7, 2).advance(500).random_raw(20)
    assert (raw == client.uniform(size=20, seed=7, stream=2, offset=500, dtype="u64")).all()
    for copied in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert "shufd" in repr(copied.bit_generator) and (copied.normal(size=10) == later).all()
    legacy = np.random.RandomState(shufd.BitGenerator(7, 2))
    assert pickle.loads(pickle.dumps(legacy)).randint(1 << 30) == legacy.randint(1 << 30)
    a, b = generator.spawn(2) if hasattr(generator, "spawn") else map(np.random.Generator, generator.bit_generator.spawn(2))
    assert a.integers(1 << 60) != b.integers(1 << 60)
    bits = shufd.BitGenerator(7)
    state = bits.state
    first = np.random.Generator(bits).integers(0, 100, 7, np.uint32)
    bits.state = state
    assert (np.random.Generator(bits).integers(0, 100, 7, np.uint32) == first).all()
    with pytest.raises(shufd.Invalid):
        bits.state = {"bit_generator": "PCG64"}
    with pytest.raises(shufd.Invalid, match="expected one of 'shufd.BitGenerator'"):
        bits.state = ReplacementGenerator(7).state
    kinds = (shufd.BitGenerator, ReplacementGenerator, RecordGenerator)
    assert len({int(bits) for kind in kinds for bits in kind(7, 2).random_raw(20)}) == 60
    assert {type(pickle.loads(pickle.dumps(kind(7)))) for kind in kinds} == set(kinds)


def test_bad_requests_are_refused(client, daemon):
    cases = {
        "n 0: expected 1": lambda: client.permute(0, 7),
        r"n: 18446744073709551616: expected 1 to 2\^62$": lambda: client.permute(2**64, 7),
        r"n: -1: expected 1 to 2\^62$": lambda: client.index(0, -1, 7),
        r"n: -2: expected 1 to 2\^62$": lambda: shufd.local.index(0, -2, 7),
        "seed: -9223372036854775809: expected 0 to": lambda: client.permute(10, -(2**63) - 1),
        "seed: 1.5: expected an integer": lambda: client.permute(10, 1.5),
        r"n: .*10\.5.*: expected an integer": lambda: client.permute(np.float32(10.5), 7),
        r"seed: .*7\.5.*: expected an integer": lambda: client.permute(10, np.float32(7.5)),
        r"epoch: .*3\.5.*: expected an integer": lambda: client.fingerprint(10, 7, decimal.Decimal("3.5")),
        r"algorithm: 'lcg\\x00': expected the name": lambda: client.permute(10, 7, algorithm="lcg\0"),
        "rank 4: expected less than world": lambda: client.permute(10, 7, rank=4, world=4),
        "rank: 1, world: None": lambda: client.permute(10, 7, rank=1),
        "^rank: 1, world: 2, offset: 1: expected rank,": lambda: client.permute(10, 7, rank=1, world=2, offset=1),
        "^rank: 1, stride: 3: expected rank,": lambda: client.permute(10, 7, rank=1, stride=3),
        "step 6: expected at most 5": lambda: client.permute(10, 7, rank=1, world=2, step=6),
        "count: 0: expected 1": lambda: client.permute(10, 7, rank=1, world=2, step=1, count=0),
        "^step: 1: expected rank": lambda: client.permute(10, 7, step=1),
        "^drop_last: True: expected rank": lambda: client.permute(10, 7, drop_last=True),
        "^drop_last: True, step: 1: expected rank": lambda: client.prefetch(10, 7, drop_last=True, step=1),
        "seed: None, key: None: expected one": lambda: client.permute(10),
        "seed: 7, key: 'k': expected one": lambda: client.index(1, 10, 7, key="k"),
        "key: '': expected the name": lambda: client.permute(10, key=""),
        "dtype: 'float': expected one of u32, u64, i64": lambda: client.permute(10, 7, dtype="float"),
        "dtype: <class 'float'>: expected one of u32, u64, i64$": lambda: client.permute(10, 7, dtype=float),
        "^dtype: <class 'numpy.int32'>: .* i64; did you mean int64\\?$": lambda: client.permute(10, 7, dtype=np.int32),
        r"^dtype: dtype\('int32'\): .*; did you mean int64\?$": lambda: client.permute(10, 7, dtype=np.dtype("i4")),
        "^dtype: 'torch.int32': .*; did you mean int64\\?$": lambda: client.permute(10, 7, dtype="torch.int32"),
        "^dtype: 'unit32': .*; did you mean uint32\\?$": lambda: client.permute(10, 7, dtype="unit32"),
        "^dtype: 'int64': .* u64; did you mean uint64\\?$": lambda: client.uniform(size=3, seed=1, dtype="int64"),
        "^dtype: 'float16': .*; did you mean float64\\?$": lambda: client.uniform(size=3, seed=1, dtype="float16"),
        "^dtype: 'bfloat': .*; did you mean bfloat16\\?$": lambda: client.normal(size=3, seed=1, dtype="bfloat"),
        "epoch: 5, epochs: range.0, 2.: expected one": lambda: client.permute(10, 7, 5, epochs=range(2)),
        r"^epochs: range\(0, 9, 2\): .* one epoch$": lambda: client.permute(10, 7, epochs=range(0, 9, 2)),
        r"^epochs: 3: .*; did you mean epoch=3 or epochs=range\(3\)\?$": lambda: client.permute(10, 7, epochs=3),
        r"^epoch: range\(0, 3\): .*; did you mean epochs=range\(0, 3\)\?$": lambda: client.permute(10, 7, range(3)),
        'algorithm "x": expected': lambda: client.permute(10, 7, algorithm="x"),
        "^stride 0: expected at least 1$": lambda: client.permute(10, 7, stride=0),
        r"^positions\[1\] 10: expected less than n": lambda: client.index([9, 10], 10, 7),
        r"^values\[0\] 11: expected less than n": lambda: client.inverse_index([11], 10, 7),
        r"positions\[0\]: -1: expected 0": lambda: client.index([-1], 10, 7),
        "positions: type float64": lambda: client.index([1.5], 10, 7),
        "device: 'tpu'": lambda: client.permute(10, 7, device="tpu"),
        "device: 'cuda': this daemon has the backend cpu; .* found nvcc: pip install": lambda: client.permute(10, 7, device="cuda"),
        "device: 'cuda:0': this daemon has the backend cpu": lambda: client.prefetch(10, 7, device="cuda:0"),
        "device: 0: this daemon has the backend cpu": lambda: client.normal(size=3, seed=7, device=0),
        "array: shape": lambda: client.shuffle(np.array([None]), 7),
        'algorithm "y"': lambda: client.shuffle(np.empty((0, 3)), 7, algorithm="y"),
        "^seed: None, key: None: expected one": lambda: client.shuffle(np.empty((0, 3))),
        "array: it has a mask": lambda: client.shuffle(np.ma.masked_array([1, 2], [False, True]), 7),
        "values: it has a mask": lambda: client.inverse_index(np.ma.masked_array([1, 2], [False, True]), 10, 7),
        "^offset: 11: expected at most n, which is 10$": lambda: client.permute(10, 7, offset=11),
        "^offset: 12: expected at most n, which is 10$": lambda: client.permute(10, 7, offset=12, count=1),
        "^offset: 13: expected at most n, which is 10$": lambda: client.prefetch(10, 7, offset=13),
        "^offset 10: expected less than n": lambda: client.permute(10, 7, offset=10, count=1),
        "^stride 0: ": lambda: client.permute(10, 7, offset=10, stride=0),
        r"^rank: 1\.0: expected an integer; convert": lambda: client.permute(10, 7, rank=1.0, world=2),
        "^world: '2': expected an integer; convert": lambda: client.permute(10, 7, rank=1, world="2"),
        r"algorithm: \[\]: expected the name": lambda: client.permute(10, 7, algorithm=[]),
        "seed: None, key: None, generator: None": lambda: client.normal(size=3),
        "method: 'x'": lambda: client.normal(size=3, seed=1, method="x"),
        "^scale -1: expected 2": lambda: client.normal(0, -1, 3, seed=1),
        r"^scale 0: expected 2\^-100 to 2\^100; for a constant, use numpy\.full\(\)$": lambda: client.normal(1, 0, 3, seed=7),
        r"^scale 1e-31: expected 2\^-100 \(": lambda: client.normal(1, 1e-31, 3, seed=7),
        "^scale nan: expected 2": lambda: client.normal(0, float("nan"), 3, seed=1),
        "^loc inf: expected -2": lambda: client.normal(float("inf"), 1, 3, seed=1),
        "loc 1, scale 1e.06": lambda: client.normal(1, 1e6, 3, seed=1, dtype="f16"),
        "^size 4611686018427387905: expected at most 4611686018427387904 from offset 0": lambda: client.uniform(
            size=2**62 + 1, seed=1
        ),
        r"^low: 1\.0, high: 2\.0: expected neither with dtype uint32, which draws all integers of the type; for a range, "
        r"use numpy\.random\.Generator\(shufd\.BitGenerator\(seed\)\)\.integers\(low, high\)$": lambda: client.uniform(
            1, 2, 3, seed=1, dtype="u32"
        ),
        "^high: inf: expected a finite number of type float64": lambda: client.uniform(0, np.inf, 3, seed=1),
        "^low: nan: expected a finite number": lambda: client.uniform(np.nan, 1, 3, seed=1),
        "^high: 1e.39: expected a finite number of type float32": lambda: client.uniform(
            0, 1e39, 3, seed=1, dtype="f32"
        ),
        "^high: 1e.308: expected at least low = -1e.308, and a finite difference": lambda: client.uniform(
            -1e308, 1e308, 3, seed=1
        ),
        r"^high: 0\.0: expected at least low = 1\.0": lambda: client.uniform(1, 0, 3, seed=1),
        r"^low: ndarray of shape \(3,\): expected a number": lambda: client.uniform(np.zeros(3), 1, 3, seed=1),
        r"^scale: ndarray of shape \(1,\): expected a number": lambda: client.normal(0, np.ones(1), 3, seed=1),
        "^loc: '1': expected a number$": lambda: client.normal("1", 1, 3, seed=1),
        r"^size: 3\.0: expected an integer, a shape": lambda: client.normal(size=3.0, seed=1),
        r"^size: \(2, 3\.0\): expected an integer, a shape": lambda: client.normal(size=(2, 3.0), seed=1),
        "^size: '3': expected an integer": lambda: client.normal(size="3", seed=1),
        r"^size: \(-1, -1\): expected 0 or more": lambda: client.normal(size=(-1, -1), seed=1),
        "^size: -1: expected 0 or more": lambda: client.normal(size=-1, seed=1),
        r"^generator: Generator\(.*: expected a shufd.Stream": lambda: client.normal(
            size=3, generator=np.random.default_rng(1)
        ),
        r"^generator: shufd.BitGenerator\(.*: expected a shufd.Stream": lambda: client.uniform(
            size=3, generator=shufd.BitGenerator(1)
        ),
        "^path: 5: expected the path": lambda: shufd.connect(5),
        "^path: b'/s': expected the path": lambda: shufd.connect(b"/s"),
        r"^reconnect: -1\.0: expected 0 to": lambda: shufd.connect(client.socket, reconnect=-1),
        "^reconnect: nan: expected 0 to": lambda: shufd.connect(client.socket, reconnect=float("nan")),
        "^reconnect: 'x': expected a number": lambda: shufd.connect(client.socket, reconnect="x"),
    }
    for text, call in cases.items():
        with pytest.raises(shufd.Invalid, match=text):
            call()
    with pytest.raises(shufd.Denied, match="key k: expected a key of the daemon"):
        client.permute(10, key="k")
    with pytest.raises(shufd.OutOfMemory):
        client.permute(1 << 61, 7)
    with pytest.raises(MemoryError):
        client.permute(1 << 45, 7)
    with pytest.raises(shufd.NoDaemon, match=r"directory\); start a daemon with `shufd --socket '/nonexistent/a b' &`$"):
        shufd.connect("/nonexistent/a b")
    with pytest.raises(shufd.Invalid, match="socket"):
        shufd.connect("/" + "x" * 200)
    assert client.permute(3, 7).tolist() == [0, 1, 2]
    assert lease_count(client) == 0


def test_offset_at_the_end_is_empty(client):
    """A job that resumes exactly at the end of an epoch has nothing left."""
    for n in (1, 10, 1000):
        for options in ({}, {"stride": 3}, {"dtype": "i64"}, {"algorithm": "lcg"}):
            rest = client.permute(n, 7, offset=n, **options)
            assert rest.shape == (0,) and rest.dtype == client.permute(n, 7, **options).dtype
            client.prefetch(n, 7, offset=n, **options)
    assert client.permute(10, 7, epochs=range(3), offset=10).shape == (3, 0)


def test_shuffle_of_no_rows(client):
    for shape, kind in (((0,), "i4"), ((0, 3), ">f8"), ((5, 0), "S7")):
        empty = np.empty(shape, kind)
        for call in (client.shuffle, client.unshuffle):
            result = call(empty, 7)
            assert result.shape == shape and result.dtype == empty.dtype and not result.flags.writeable


@pytest.mark.parametrize("dtype", [">i4", "<i4", ">f8", ">U3", [("a", ">i2"), ("b", "<f8")]])
def test_shuffle_keeps_the_byte_order(client, dtype):
    array = np.zeros(100, dtype)
    array[...] = np.arange(100).astype("U3") if np.dtype(dtype).kind == "U" else np.arange(100)
    shuffled = client.shuffle(array, 7)
    assert shuffled.dtype == array.dtype and (shuffled == array[client.permute(100, 7)]).all()
    assert (client.unshuffle(shuffled, 7) == array).all()


def test_prefetch_without_room_warns(tmp_path):
    daemon = Daemon(tmp_path, "--backend=cpu", "--host-memory=64Mi").start()
    n = 12_000_000
    with shufd.connect(daemon.socket) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        client.prefetch(n, 7)
        assert await_value(lambda: client.leases()[0]["ready"], True)
        client.prefetch(n, 7)  # it has its room already
        with pytest.raises(RuntimeWarning, match=r"^prefetch: n 12000000: needs 45\.8 MiB, and 48\.0 MiB of 64\.0 MiB"):
            client.prefetch(n, 7, 1)
        with pytest.raises(shufd.OutOfMemory, match="the request needs 66 MiB of host memory, the limit is 64 MiB"):
            client.prefetch(17_000_000, 7)
        client.prefetch(1000, 7)
        assert client.permute(n, 7)[0] < n
    daemon.stop()


def test_errors_of_memory_name_what_helps_in_python(tmp_path):
    """A part of the result, if the call has one; and the end of arrays, not that of leases."""
    daemon = Daemon(tmp_path, "--backend=cpu", "--host-memory=8Mi").start()
    part = r"; a part needs less memory: offset= and count=, or rank= and world=$"
    with shufd.connect(daemon.socket) as client:
        for call in (client.permute, client.prefetch):
            for n in (4_000_000, 10**10):  # small ones take a shorter way
                with pytest.raises(shufd.OutOfMemory, match="^the request needs .*" + part):
                    call(n, 7)
        with pytest.raises(shufd.OutOfMemory, match="; a part needs less memory: a smaller size, with offset= for"):
            client.uniform(size=10**8, seed=7)
        with pytest.raises(shufd.OutOfMemory, match=r"^(?!.* part)"):
            client.shuffle(np.zeros(20_000_000, np.uint8), 7)
        array = client.permute(1_500_000, 7)
        with pytest.raises(shufd.Busy, match=r"own leases and requests .*: drop an array \(del\), or wait"):
            client.permute(1_500_000, 8)
        del array
        assert client.permute(1_500_000, 8).size == 1_500_000
    daemon.stop()


def test_busy_names_prefetched_results(tmp_path):
    daemon = Daemon(tmp_path, "--backend=cpu", "--host-memory=8Mi").start()
    with shufd.connect(daemon.socket) as client:
        calls = [
            lambda: client.permute(1_500_000, 8), lambda: client.permute(1_500_000, 8, dtype="u32"),
            lambda: client.uniform(size=750_000, seed=7), lambda: client.shuffle(np.zeros(3_000_000, np.uint8), 7),
        ]  # fmt: skip
        end = (
            r" leases and requests \(host_memory\); prefetched results of this process hold 6\.0 MiB: use them \(permute\(\) "
            r"with equal arguments, then del\), or free them with Client\.drop\(\)"
        )
        client.prefetch(1_500_000, 7)
        assert await_value(lambda: client.leases()[0]["ready"], True)
        for call in calls:
            with pytest.raises(shufd.Busy, match=end + "$"):
                call()
        array = client.permute(100, 7)
        with pytest.raises(shufd.Busy, match=end + r", or drop an array \(del\)$"):
            calls[0]()
        assert client.drop()["results"] == 1
        assert calls[0]().size == 1_500_000 and len(array) == 100
    daemon.stop()


def test_advice_of_busy_is_about_arrays():
    """Each advice of the daemon about leases."""
    for advice in ("release a lease, or try again", "release leases", "give some back first"):
        error = shufd._errors.make("BUSY", f"blocks: too many; {advice}", True)
        assert isinstance(error, shufd.Busy) and "(del)" in str(error) and advice not in str(error)


def test_cpu_is_host_memory(client):
    devices = ["cpu", "cpu:0"]
    if importlib.util.find_spec("torch"):
        devices.append(__import__("torch").device("cpu"))
    for device in devices:
        client.prefetch(100, 7, device=device)
        assert (client.permute(100, 7, device=device) == client.permute(100, 7)).all()
        assert (client.normal(size=3, seed=7, device=device) == client.normal(size=3, seed=7)).all()
        assert (client.uniform(1, 2, 3, seed=7, device=device) == client.uniform(1, 2, 3, seed=7)).all()
        client.prefetch_exchange(100, 7, rank=1, world=2, device=device)
        assert isinstance(client.exchange(100, 7, rank=1, world=2, device=device).order, np.ndarray)


def failing_calls(client):
    def shuffle():
        client.shuffle(np.ones(1 << 24, np.uint8), 7, algorithm="x")

    return {
        "quick": lambda: client.permute(0, 7),
        "long": lambda: client.permute(1 << 50, 7),
        "look-up": lambda: client.index([10], 10, 7),
        "numbers": lambda: client.normal(0, -1, 3, seed=1),
        "many numbers": lambda: client.uniform(size=2**62 + 1, seed=1),
        "fingerprint": lambda: client.fingerprint(1 << 40, 7, algorithm="x"),
        "shuffle": shuffle,
        "device": lambda: client.permute(1 << 30, 7, device="cuda"),
        "socket": lambda: shufd.connect("/nonexistent/s"),
    }


@pytest.mark.parametrize("name", failing_calls(None))
def test_errors_end_without_garbage_collection(client, name):
    """A cycle between an error and a frame would keep all objects of the callers alive, such as the workers of a
    data loader."""

    def fail():
        try:
            failing_calls(client)[name]()
        except shufd.Error as error:
            return weakref.ref(error)

    gc.collect()
    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()


def integers_up_to(most):
    """Mostly numbers from 0 to `most`, and some numbers outside of every valid range."""
    return st.one_of(st.integers(0, most), st.integers(0, most), st.integers(-2, -1), st.integers(2**62 + 1, 2**65))


@settings(max_examples=300, deadline=None)
@given(n=integers_up_to(3000), seed=integers_up_to(2**64 - 1), epoch=integers_up_to(2**64 - 1),
       offset=st.none() | integers_up_to(3000), count=st.none() | integers_up_to(3000),
       stride=st.none() | integers_up_to(50),
       algorithm=st.sampled_from(["primefold", "philox24", "lcg"]))  # fmt: skip
def test_random_arguments(daemon, n, seed, epoch, offset, count, stride, algorithm):
    """A request equals NumPy's slice of the whole permutation, or fails with an error of shufd."""
    client = shufd.default_client()
    part = {"offset": offset, "count": count, "stride": stride}
    try:
        got = client.permute(n, seed, epoch, algorithm=algorithm, **part)
    except (shufd.Invalid, shufd.OutOfMemory) as error:
        assert str(error) and "\n" not in str(error)
        return
    assert -(2**63) <= seed < 2**64 and 0 <= epoch < 2**64 and n >= 1
    order = client.permute(n, seed, epoch, algorithm=algorithm)[offset or 0 :: 1 if stride is None else stride]
    assert (got == (order if count is None else order[:count])).all()
    assert count is None or len(got) == count


@settings(max_examples=100, deadline=None)
@given(n=integers_up_to(3000), seed=st.integers(0, 2**64 - 1), at=st.lists(integers_up_to(3000), max_size=5))
def test_random_look_ups(daemon, n, seed, at):
    client = shufd.default_client()
    try:
        values = client.index(at, n, seed).tolist()
    except (shufd.Invalid, OverflowError) as error:
        assert str(error) and not (1 <= n <= 2**62 and all(0 <= i < n for i in at))
        return
    assert values == shufd.local.index(at, n, seed).tolist()
    assert client.inverse_index(values, n, seed).tolist() == at


def test_closed_client_refuses_calls(daemon):
    client = shufd.connect(daemon.socket)
    array = client.permute(100_000, 7)
    before = array.copy()
    client.close()
    client.close()
    for call in (lambda: client.permute(10, 7), client.status, lambda: client.index(1, 10, 7)):
        with pytest.raises(shufd.Closed, match="call shufd.connect"):
            call()
    assert (array == before).all() and "closed" in repr(client)


def test_lease_ends_with_the_last_array(client):
    array = client.permute(1 << 20, 11)
    part = array[10:20][::2]
    assert lease_count(client) == 1
    del array
    assert lease_count(client) == 1
    del part
    assert lease_count(client) == 0


def test_nothing_leaks(daemon):
    initial = descriptor_count(), mapping_count()
    with shufd.connect(daemon.socket) as client:
        for _ in range(3):
            client.permute(3_000_000, 1)
        other_leases = lease_count(client)  # prefetches that other clients hold
        before = descriptor_count(), mapping_count()
        for epoch in range(200):
            client.permute(3_000_000 if epoch % 20 == 0 else 1000, 7, epoch)
            client.normal(size=100, seed=epoch)
            client.shuffle(np.arange(100), epoch)
            with pytest.raises(shufd.Invalid):
                client.permute(0, epoch)
        assert lease_count(client) == other_leases
        assert descriptor_count() == before[0]
        assert mapping_count() <= before[1] + 128  # libshuf keeps small blocks mapped for the next results
        small = mapping_count()
        for epoch in range(20):
            client.permute(3_000_000, 8, epoch)
        assert mapping_count() <= small
    assert (descriptor_count(), mapping_count()) == initial


def test_ten_thousand_epochs_leak_nothing(daemon):
    """The numbers of descriptors, mappings and leases do not grow, nor does the memory of this process."""
    with shufd.connect(daemon.socket) as client:
        def run(epochs):
            for epoch in epochs:
                order = client.permute(1000 + epoch % 3, 7, epoch)
                client.prefetch(1000 + (epoch + 1) % 3, 7, epoch + 1)
            return order

        run(range(1000))
        before = descriptor_count(), lease_count(client), private_bytes()
        order = run(range(1000, 11_000))
        assert (order == shufd.local.index(np.arange(len(order)), len(order), 7, 10_999)).all()
        del order
        assert (descriptor_count(), lease_count(client)) == before[:2] and mapping_count() <= 256
        assert private_bytes() < before[2] + (8 << 20)


def test_threads_have_their_own_connections(daemon):
    with shufd.connect(daemon.socket) as client:

        def work(seed):
            for epoch in range(40):
                assert client.permute(1000 + seed, seed, epoch).size == 1000 + seed
            return client.permute(5000, seed)

        arrays = run_threads(work, 8)
        assert client.status()["clients"] >= 9  # 8 threads with an array each, and this one
        for array in arrays:  # the threads have ended, but their leases are still valid
            assert (np.sort(array) == np.arange(5000)).all()
        arrays.clear()
        del array
        assert await_value(lambda: lease_count(client), 0) == 0


def test_lease_ends_in_another_thread(client):
    arrays = [client.permute(2000, 7, epoch) for epoch in range(300)]
    threads = [threading.Thread(target=lambda: [arrays.pop() for _ in range(100)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for epoch in range(300):
        client.permute(100, 8, epoch)
    for thread in threads:
        thread.join()
    assert lease_count(client) == 0


def test_prefetch(client):
    computed = client.status()["computed"]
    client.prefetch(200_000, 7, 123)
    assert await_value(lambda: client.status()["computed"], computed + 1) == computed + 1
    client.permute(200_000, 7, 123)
    assert client.status()["computed"] == computed + 1


def test_progress(client, capsys):
    pytest.importorskip("tqdm")
    assert client.permute(1000, 7, progress=True).size == 1000
    assert "permute" in capsys.readouterr().err


def test_an_unused_gpu_warns_once(daemon, monkeypatch):
    state = {"gpu_fault": "backend cuda: the NVIDIA driver 550.54.15 runs CUDA 12.4"}
    monkeypatch.setattr(shufd._daemon, "_DRIVER", "/proc/self/status")
    monkeypatch.setattr(shufd._daemon, "_has_asked", False)
    monkeypatch.setattr(shufd._daemon, "status", lambda connection: state)
    with pytest.warns(RuntimeWarning, match="the GPU is not used: backend cuda: the NVIDIA driver 550.54.15"):
        shufd.connect(daemon.socket).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shufd.connect(daemon.socket).close()


def test_progress_without_tqdm_warns(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.warns(RuntimeWarning, match="^progress=True: .*; install tqdm$"):
        assert client.permute(1000, 7, progress=True).size == 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.permute(6_000_000, 7).size == 6_000_000


def test_progress_bar_on_a_terminal(killable_daemon, monkeypatch, capsys):
    """Even without `progress`, a long call shows a bar after a while if standard error is a terminal."""
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(shufd._wait, "_PATIENCE", 0.2)
    with shufd.connect(killable_daemon.socket) as client:
        client.permute(6_000_000, 7)
        assert client.permute(6_000_000, 7, progress=False).size == 6_000_000
        os.kill(killable_daemon.process.pid, signal.SIGSTOP)
        timer = threading.Timer(1, os.kill, (killable_daemon.process.pid, signal.SIGCONT))
        timer.start()
        assert client.permute(6_000_000, 7, 1).size == 6_000_000
        timer.join()
    assert "permute" in capsys.readouterr().err


def test_scipy_uses_bit_generator(daemon):
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.Generator(shufd.BitGenerator(7))
    values = stats.norm.rvs(size=20_000, random_state=generator)
    assert stats.kstest(values, "norm").pvalue > 1e-6
    again = np.random.Generator(shufd.BitGenerator(7))
    assert (stats.norm.rvs(size=20_000, random_state=again) == values).all()


@pytest.mark.parametrize("size", [0, (0,), (3, 0), (0, 2**40)])
def test_size_zero_is_an_empty_array(client, size):
    """As in NumPy. Other arguments are still checked, and a generator does not advance."""
    expected = np.empty(size).shape
    for draw in (client.normal, client.uniform):
        values = draw(size=size, seed=1, dtype="f32")
        assert values.shape == expected and values.dtype == np.float32 and not values.flags.writeable
        with pytest.raises(shufd.Invalid, match="dtype"):
            draw(size=size, seed=1, dtype="x")
    assert client.uniform(2.0, 3.0, size, seed=1).shape == expected
    generator = shufd.Stream(1)
    assert client.normal(size=size, generator=generator).shape == expected and generator.draw == 0
    end = shufd.Stream(1, draw=2**60)
    for draw, dtype in itertools.product((client.uniform, shufd.local.uniform), ("f64", "f32")):
        assert draw(size=size, dtype=dtype, generator=end).shape == expected
    with pytest.raises(shufd.Invalid, match="^scale"):
        client.normal(scale=-1.0, size=size, seed=1)


def test_fingerprint(client):
    assert client.fingerprint(1000, 7) == client.fingerprint(1000, 7) != client.fingerprint(1000, 8)
    assert shufd.verify(n=1000, seed=7, client=client) == client.fingerprint(1000, 7)
    assert re.fullmatch("0x[0-9a-f]{16}", client.fingerprint(1000, 7))


def test_reprs(client):
    assert "open" in repr(client) and client.socket in repr(client)
    assert repr(shufd.local.Permutation(5, 1)) == "shufd.local.Permutation(n=5, seed=1, epoch=0)"
    assert "offset=0" in repr(shufd.BitGenerator(1))


def test_errors_derive_from_error():
    for name in shufd.__all__:
        value = getattr(shufd, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, shufd.Error) and value.__doc__
    assert issubclass(shufd.DaemonLost, shufd.NoDaemon)


def test_names_of_other_libraries_are_explained():
    with pytest.raises(AttributeError, match="^module 'shufd' has no attribute 'gauss'; did you mean shufd.normal\\?$"):
        shufd.gauss
    with pytest.raises(AttributeError, match="^module 'shufd' has no attribute 'x'$"):
        shufd.x
    for name, end in {
        "randint": "; did you mean shufd.integers?",
        "choice": "; did you mean numpy.random.Generator(shufd.BitGenerator(seed)).choice?",
        "DistributedSampler": "; did you mean shufd.torch.DistributedSampler?",
    }.items():
        with pytest.raises(AttributeError, match=f"^module 'shufd' has no attribute '{name}'{re.escape(end)}$"):
            getattr(shufd, name)


def test_arguments_of_other_libraries_are_explained(client):
    for call, name in itertools.product(
        (client.permute, client.prefetch, client.exchange, client.prefetch_exchange), ("num_replicas", "world_size")
    ):
        with pytest.raises(TypeError, match=f"argument '{name}'; did you mean world=\\?$"):
            call(10, 7, rank=0, **{name: 4})
    for options, meant in ({"mean": 1}, "loc"), ({"std": 2}, "scale"), ({"shape": 3}, "size"), ({"sed": 7}, "seed"):
        with pytest.raises(TypeError, match=f"did you mean {meant}=\\?$"):
            client.normal(**options)
    with pytest.raises(TypeError, match="argument 'x'$"):
        client.permute(10, 7, x=4)
    generator = np.random.Generator(shufd.BitGenerator(7))
    for meant in shufd._OTHERS.values():
        *parents, name = meant.split(".")
        if parents == ["shufd"]:
            assert name in shufd.__all__
        elif parents[0] == "numpy":
            assert callable(getattr(generator, name))
        else:
            source = pathlib.Path(shufd.__file__).with_name(f"{parents[1]}.py").read_text()
            assert f'"{name}"' in re.search(r"^__all__ = \[([^]]*)\]", source, re.MULTILINE)[1]


def test_dir_has_only_public_names():
    assert set(shufd.__all__) <= set(dir(shufd))
    others = {name for name in dir(shufd) if not name.startswith("__")} - set(shufd.__all__)
    assert others == set()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("low, high", [(1000, 1001), (-1.0, 1.0), (0.0, 0.1), (1e6, 1e6 + 1), (-1e-3, 1e9), (3.0, 3.0)])
def test_uniform_is_below_high(client, dtype, low, high):
    """The last values before 1, which are multiples of 2^-24 in f32, round to `high` in a narrow interval."""
    values = client.uniform(low, high, size=1_000_000, seed=7, dtype=dtype)
    kind = values.dtype.type
    assert values.dtype == np.dtype(dtype.replace("f", "float"))
    assert (values >= kind(low)).all() and ((values < kind(high)).all() if low < high else (values == low).all())
    plain = client.uniform(size=1_000_000, seed=7, dtype=dtype)
    assert (plain < 1).all()
    sums = kind(low) + plain * kind(high - low)
    assert (values[sums < kind(high)] == sums[sums < kind(high)]).all()
    if dtype == "f32" and low == 1000:
        assert sums[20263] == 1001 and values[20263] == np.nextafter(kind(1001), kind(0))
    one = client.uniform(low, high, seed=7, dtype=dtype)
    assert one == values[0] and np.shape(one) == ()
