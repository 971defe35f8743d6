# SPDX-License-Identifier: MIT
"""The index sampler in Grain's DataLoader, and permutations and random numbers as JAX arrays."""

import concurrent.futures
import functools
import os
import pathlib
import pickle
import shutil
import subprocess

import numpy as np
import pytest

import shufd
import shufd.jax
from conftest import await_value, lease_count
from shufd import _jax_random

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the daemon of the tests may use the same GPU


def test_permutation(client):
    pytest.importorskip("jax")
    import jax

    leases_before = lease_count(client)
    order = client.permute(1_000_003, 7, 3)
    array = shufd.jax.permutation(1_000_003, 7, 3, client=client)
    assert isinstance(array, jax.Array) and array.dtype == np.uint32
    assert array.unsafe_buffer_pointer() == order.ctypes.data
    assert (np.asarray(array) == order).all()
    del order
    assert lease_count(client) == leases_before + 1  # JAX holds a lease
    del array
    assert await_value(lambda: lease_count(client), leases_before) == leases_before
    assert shufd.jax.permutation(10, 7, rank=1, world=4, client=client).tolist() == [0, 9, 3]


def test_permutation_of_64_bits(client):
    jax = pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match="dtype: uint64: expected u32; set jax_enable_x64"):
        shufd.jax.permutation(10, 7, dtype="u64", client=client)
    jax.config.update("jax_enable_x64", True)
    try:
        assert shufd.jax.permutation(10, 7, dtype="i64", client=client).dtype == np.int64
    finally:
        jax.config.update("jax_enable_x64", False)


# ---- In this process -----------------------------------------------------------------------------


@pytest.fixture(params=["cpu", "cuda"])
def jax_device(request):
    """A platform of JAX for a test. That of CUDA needs the CUDA library of the package."""
    jax = pytest.importorskip("jax")
    try:
        device = jax.devices(request.param)[0]
    except RuntimeError:
        pytest.skip(f"JAX has no platform {request.param}")
    if request.param == "cuda" and "cuda" not in _jax_random._platforms().names:
        pytest.skip("XLA cannot call libshuf on CUDA: see the warning")
    with jax.default_device(device):
        yield request.param


@pytest.fixture
def x64():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def platforms(monkeypatch):
    """A function that sets the platforms on which XLA calls libshuf, and the workspace that a GPU would need."""
    pytest.importorskip("jax.ffi")
    _jax_random._platforms()  # registers the handlers

    def set_platforms(names, has_others, workspace=lambda request: 0):
        monkeypatch.setattr(_jax_random, "_platforms", lambda: _jax_random.Platforms(frozenset(names), has_others))
        monkeypatch.setattr(_jax_random, "workspace_bytes", workspace)
        _jax_random._program.cache_clear()

    yield set_platforms
    _jax_random._program.cache_clear()


def same(array, expected):
    array = np.asarray(array)
    assert array.dtype == expected.dtype and array.shape == expected.shape
    assert array.tobytes() == np.ascontiguousarray(expected).tobytes()


def law_cases(normal_types, uniform_types):
    for dtype in normal_types:
        for method in ("table", "box-muller"):
            more = {"stream": 3, "offset": 2**40, "dtype": dtype, "method": method}
            yield (functools.partial(shufd.jax.normal, (3, 5), loc=1.0, scale=2.0, **more),
                   functools.partial(shufd.local.normal, 1.0, 2.0, (3, 5), **more))  # fmt: skip
    for dtype in uniform_types:
        more = {"stream": 3, "offset": 5, "dtype": dtype}
        yield functools.partial(shufd.jax.uniform, 7, **more), functools.partial(shufd.local.uniform, size=7, **more)


def check_values(jax, cases, seed):
    """Eagerly, with a seed that a program fixes, and with one that it takes."""
    taken = np.uint64(seed % 2**64) if jax.config.jax_enable_x64 else seed
    for draw, expected in cases:
        values = expected(seed=seed)
        same(draw(seed=seed), values)
        same(jax.jit(lambda: draw(seed=seed))(), values)
        if -(2**31) <= seed < 2**31 or jax.config.jax_enable_x64:
            same(jax.jit(lambda seed: draw(seed=seed))(taken), values)


@pytest.mark.parametrize("seed", [7, -7, 2**64 - 1])
def test_values_in_this_process(jax_device, seed):
    import jax

    check_values(jax, law_cases(("f32", "f16", "bf16"), ("f32", "u32")), seed)
    for n in (1, 2, 1000, 100_003):
        for algorithm in ("primefold", "philox24", "lcg"):
            more = {"epoch": 2**40, "algorithm": algorithm}
            order = functools.partial(shufd.local.permute, n, **more)
            check_values(jax, [(functools.partial(shufd.jax.randperm, n, **more), order)], seed)
    assert shufd.jax.normal((0, 3), seed).shape == (0, 3) and shufd.jax.uniform((), seed).shape == ()


def test_large_results(jax_device):
    for count in (2**20, 3_000_001):
        same(shufd.jax.normal(count, 7), shufd.local.normal(size=count, seed=7, dtype="f32"))
        same(shufd.jax.randperm(count, 7, 3), shufd.local.permute(count, 7, 3))


@pytest.mark.parametrize("seed", [7, -7, 2**63 + 1])
def test_64_bits(jax_device, x64, seed):
    import jax

    check_values(jax, law_cases(("f64", "f32"), ("f64", "u64", "f32")), seed)
    for dtype in ("i64", "u64", "u32"):
        order = functools.partial(shufd.local.permute, 1000, dtype=dtype)
        check_values(jax, [(functools.partial(shufd.jax.randperm, 1000, dtype=dtype), order)], seed)


def test_64_bits_need_a_setting():
    pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match="^dtype: float64: expected a type of at most 32 bits; set jax_enable_x64"):
        shufd.jax.normal(3, 7, dtype="f64")


def check_jit_and_vmap(jax):
    orders = jax.jit(lambda seed, epoch: shufd.jax.randperm(100, seed, epoch))
    for seed, epoch in ((7, 3), (-7, 2**31 - 1)):
        same(orders(seed, epoch), shufd.local.permute(100, seed, epoch))
    same(orders(np.uint32(2**32 - 1), 0), shufd.local.permute(100, 2**32 - 1))
    epochs = np.arange(6).reshape(2, 3)
    each = jax.jit(jax.vmap(jax.vmap(lambda epoch: shufd.jax.randperm(10, 7, epoch))))(epochs)
    same(each, np.stack([[shufd.local.permute(10, 7, int(epoch)) for epoch in row] for row in epochs]))
    noisy = jax.vmap(lambda x, step: x + shufd.jax.normal(4, 7, offset=4 * step))(np.zeros((3, 4), np.float32), np.arange(3))
    same(noisy, shufd.local.normal(size=(3, 4), seed=7, dtype="f32"))
    same(jax.jit(lambda step: shufd.jax.uniform((2, 2), 7, stream=step))(5), shufd.local.uniform(size=(2, 2), seed=7, stream=5, dtype="f32"))


def test_jit_and_vmap(jax_device):
    import jax

    check_jit_and_vmap(jax)


@pytest.mark.parametrize("algorithm", ["primefold", "philox24", "lcg"])
def test_batches_of_permutations(jax_device, algorithm):
    import jax

    seeds, epochs = np.arange(5) - 2, np.arange(3)
    draw = functools.partial(shufd.jax.randperm, 1001, algorithm=algorithm)
    each = jax.jit(jax.vmap(jax.vmap(draw, (None, 0)), (0, None)))(seeds, epochs)
    same(each, np.stack([[shufd.local.permute(1001, int(seed), int(epoch), algorithm=algorithm) for epoch in epochs]
                         for seed in seeds]))  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 5, 8, 1001])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_rows_of_batches(jax_device, count, dtype):
    """The rows of a batch are those of a loop, also if their length is no multiple of a vector."""
    import jax

    seeds, steps = np.arange(5) - 2, np.arange(5) * 7
    draw = jax.vmap(lambda seed, step: shufd.jax.normal(count, seed, stream=1, offset=step, dtype=dtype))
    rows = [shufd.local.normal(size=count, seed=int(seed), stream=1, offset=int(step), dtype=dtype)
            for seed, step in zip(seeds, steps)]  # fmt: skip
    same(draw(seeds, steps), np.stack(rows))
    same(jax.jit(jax.vmap(lambda seed: shufd.jax.randperm(count, seed), out_axes=1))(seeds),
         np.stack([shufd.local.permute(count, int(seed)) for seed in seeds], 1))  # fmt: skip
    assert draw(seeds[:0], steps[:0]).shape == (0, count)
    fixed = jax.vmap(lambda x: x + shufd.jax.normal(count, 7))(np.zeros((3, 1), np.float32))
    same(fixed, np.stack([shufd.local.normal(size=count, seed=7, dtype="f32")] * 3))


def test_grad_and_scan(jax_device):
    import jax

    noise = shufd.local.normal(size=3, seed=7, dtype="f32")
    same(jax.jit(jax.grad(lambda x: (x * shufd.jax.normal(3, 7)).sum()))(np.zeros(3, np.float32)), noise)
    _, rows = jax.lax.scan(lambda step, _: (step + 1, shufd.jax.randperm(10, 7, step)), 0, None, length=4)
    same(rows, np.stack([shufd.local.permute(10, 7, epoch) for epoch in range(4)]))


def test_several_calls_and_donated_arrays(jax_device):
    import jax

    def step(x, seed, i):
        return x + shufd.jax.normal(1000, seed, offset=1000 * i), seed + 1, shufd.jax.randperm(1000, seed), shufd.jax.randperm(1000, 7)

    step = jax.jit(step, donate_argnums=(0, 1))
    x, seed, expected = jax.numpy.zeros(1000), jax.numpy.int32(5), np.zeros(1000, np.float32)
    for i in range(20):
        x, seed, order, fixed = step(x, seed, i)
        expected += shufd.local.normal(size=1000, seed=5 + i, offset=1000 * i, dtype="f32")
        same(order, shufd.local.permute(1000, 5 + i))
        same(fixed, shufd.local.permute(1000, 7))
    same(x, expected)


def test_result_of_work_before_selects_the_values(jax_device):
    """On a GPU the seed is the result of work that still runs when the program is called."""
    import jax

    big = jax.numpy.ones((2000, 2000), np.float32)

    @jax.jit
    def draw(x):
        return shufd.jax.randperm(1000, (x @ x)[0, 0].astype(np.int32), (x @ x.T)[1, 1].astype(np.int32))

    expected = shufd.local.permute(1000, 2000, 2000)
    for _ in range(3):
        same(draw(big), expected)


def test_threads(jax_device):
    import jax

    device = jax.devices(jax_device)[0]
    draw = jax.jit(lambda seed: (shufd.jax.normal(5001, seed), shufd.jax.randperm(5001, seed)))

    def work(thread):
        with jax.default_device(device):
            for i in range(50):
                seed = 1000 * thread + i
                noise, order = draw(seed)
                same(noise, shufd.local.normal(size=5001, seed=seed, dtype="f32"))
                same(order, shufd.local.permute(5001, seed))
                same(shufd.jax.uniform(thread + 1, seed), shufd.local.uniform(size=thread + 1, seed=seed, dtype="f32"))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_xla_calls_libshuf_without_python(jax_device):
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax.ffi")
    for draw in (lambda seed: shufd.jax.normal(5, seed), lambda seed: shufd.jax.randperm(5, 7)):
        text = jax.jit(draw).lower(7).as_text()
        assert "shufd_fill" in text and "callback" not in text


@pytest.mark.parametrize("names, has_others", [((), True), (("cpu",), True), (("cpu", "cuda"), False)])
def test_ways_of_platforms(platforms, names, has_others):
    """By callbacks; by a choice for each platform; and as on a GPU, with attributes and rows of whole vectors."""
    import jax

    platforms(names, has_others)
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        text = jax.jit(lambda: shufd.jax.normal(3, 7)).lower().as_text()
        assert ("words = " in text) == ("cuda" in names)
        check_values(jax, law_cases(("f32", "f16", "bf16"), ("f32", "u32")), -7)
        check_values(jax, [(functools.partial(shufd.jax.randperm, 1001), functools.partial(shufd.local.permute, 1001))], 7)
        check_jit_and_vmap(jax)
        check_batch(jax, "lcg")


def check_batch(jax, algorithm):
    same(jax.jit(jax.vmap(lambda seed: shufd.jax.randperm(5, seed, algorithm=algorithm)))(np.arange(3)),
         np.stack([shufd.local.permute(5, seed, algorithm=algorithm) for seed in range(3)]))  # fmt: skip


def test_workspace_of_a_gpu(platforms):
    """A call has it as a second result; the CPU does not use it. If no GPU can compute an order, the host does."""
    import jax

    def refuse(request):
        raise shufd.Invalid("too large")

    with jax.default_device(jax.devices("cpu")[0]):
        platforms(("cpu", "cuda"), False, lambda request: 1000)
        check_batch(jax, "philox24")
        assert "tensor<4x64xui32>" in jax.jit(lambda: shufd.jax.randperm(5, 7, algorithm="lcg")).lower().as_text()
        platforms(("cpu", "cuda"), False, refuse)
        check_batch(jax, "philox24")


def test_unknown_version_of_the_interface(platforms, monkeypatch):
    """A JAX whose interface has another major version gets callbacks."""
    version = _jax_random._version()
    make = _jax_random._platforms
    monkeypatch.setattr(_jax_random, "_version", lambda: (version[0] + 1, 0))
    try:
        with pytest.warns(RuntimeWarning, match=r"its foreign function interface has version 1\.0, expected 0\.1 or a later"):
            names, has_others = make.__wrapped__()
    finally:
        assert shufd._shuf.lib.shufpy_xla_set_version(*version)
    assert names == frozenset() and has_others


def test_handler_refuses_other_calls():
    """Such as those of a program that another version has compiled."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax.ffi")
    with jax.default_device(jax.devices("cpu")[0]):
        shufd.jax.normal(3, 7)
        words = np.zeros((3, 2), np.uint32)
        form, law = np.array([0, 1, 5, 0, 3], np.uint64), np.array([0.0, 1.0])
        law_alone = {"law": law, "algorithm": ""}
        rest, other = {"form": form, **law_alone}, "shufd: the call has other arguments"
        for arguments, attributes, length, expected in (
            ((), rest, 3, other),
            ((words,), law_alone, 3, other),
            ((words,), {"form": form, "algorithm": ""}, 3, other),
            ((words,), {"form": form, "law": law}, 3, other),
            ((words,), {**rest, "algorithm": "a" * 16}, 3, other),
            ((words,), {**rest, "algorithm": form}, 3, other),
            ((words,), {"form": form[:4], **law_alone}, 3, other),
            ((words,), {"form": form.astype(np.float64), **law_alone}, 3, other),
            ((words[:2],), rest, 3, other),
            ((words.astype(np.float32),), rest, 3, other),
            ((words, words), rest, 3, other),
            ((words,), rest, 2, "bytes 8: expected at least 12 for "),
            ((np.zeros((6, 2), np.uint32),), rest, 4, "bytes 8: expected at least 12 for "),
        ):
            call = jax.ffi.ffi_call("shufd_fill", jax.ShapeDtypeStruct((length,), np.float32))
            with pytest.raises(Exception, match=expected):
                np.asarray(call(*arguments, **attributes))


def test_errors_of_the_computation(jax_device, x64):
    """JAX reports them as its own: the class depends on the time when it learns of them."""
    import jax

    message = r"offset 4611686018427387904: expected less than 2\^62"
    with pytest.raises((ValueError, RuntimeError), match=message):
        np.asarray(jax.jit(lambda offset: shufd.jax.normal(3, 7, offset=offset))(np.uint64(2**62)))
    same(shufd.jax.randperm(10, 7), shufd.local.permute(10, 7))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shufd.jax.randperm(0, 7), r"n 0: expected 1 to 2\^62"),
        (lambda: shufd.jax.randperm(10, np.zeros(3, np.int32)), r"seed: int32, shape \(3,\): expected a single integer"),
        (lambda: shufd.jax.randperm(10, 1.5), "seed: 1.5: expected an integer"),
        (lambda: shufd.jax.randperm(10, 7, algorithm="philox"), 'algorithm "philox": expected primefold, philox24 or lcg'),
        (lambda: shufd.jax.normal(3, 7, scale=0), "scale 0: expected"),
        (lambda: shufd.jax.normal(-1, 7), "size: -1: expected 0 or more"),
        (lambda: shufd.jax.normal(3, 7, offset=2**62), r"offset 4611686018427387904: expected less than 2\^62"),
        (lambda: shufd.jax.uniform((0, 3), 7, offset=2**62), "offset 4611686018427387904: expected"),
        (lambda: shufd.jax.uniform((2**31, 2**31), 7, offset=1), "size 4611686018427387904"),
        (lambda: shufd.jax.normal((0, 3), 2**64), "seed: 18446744073709551616: expected 0 to"),
        (lambda: shufd.jax.uniform(0, 7, stream=-1), "stream: -1: expected 0 to"),
        (lambda: shufd.jax.randperm(10, 7, np.array(-1)), "epoch: -1: expected 0 to"),
        (lambda: shufd.jax.normal(3, 7, stream=np.array(-1)), "stream: -1: expected 0 to"),
        (lambda: shufd.jax.uniform(3, 7, dtype="f16"), "dtype: 'f16': expected one of"),
    ],
)
def test_refusals_in_this_process(call, message):
    pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


STRUCTURES = {  # of xla_ffi.h; "-": a field that no code uses
    "xla_extension": ("__typeof__(*((XLA_FFI_CallFrame *)0)->extension_start)", "struct_size type next"),
    "xla_version": ("XLA_FFI_Api_Version", "struct_size extension_start major_version minor_version"),
    "xla_metadata": ("XLA_FFI_Metadata", "struct_size api_version traits"),
    "xla_metadata_extension": ("XLA_FFI_Metadata_Extension", "extension_base metadata"),
    "xla_new_error": ("XLA_FFI_Error_Create_Args", "struct_size extension_start message errc"),
    "xla_get_stream": ("XLA_FFI_Stream_Get_Args", "struct_size extension_start ctx stream"),
    "xla_api": ("XLA_FFI_Api",
                "struct_size extension_start api_version - XLA_FFI_Error_Create - - - XLA_FFI_Stream_Get"),
    "xla_buffer": ("XLA_FFI_Buffer", "struct_size extension_start dtype data rank dims"),
    "xla_array": ("XLA_FFI_Array", "dtype size data"),
    "xla_text": ("XLA_FFI_ByteSpan", "ptr len"),
    "xla_buffers": ("XLA_FFI_Args", "struct_size extension_start size types args"),
    "xla_attributes": ("XLA_FFI_Attrs", "struct_size extension_start size types names attrs"),
    "xla_call": ("XLA_FFI_CallFrame", "struct_size extension_start api ctx stage args rets attrs"),
}  # fmt: skip
NUMBERS = {
    "XLA_MAJOR": "API_MAJOR", "XLA_METADATA": "Extension_Metadata", "XLA_BUFFER": "ArgType_BUFFER",
    "XLA_ATTRIBUTE_ARRAY": "AttrType_ARRAY", "XLA_ATTRIBUTE_TEXT": "AttrType_STRING", "XLA_S64": "DataType_S64", "XLA_U32": "DataType_U32", "XLA_U64": "DataType_U64",
    "XLA_F16": "DataType_F16", "XLA_F32": "DataType_F32", "XLA_F64": "DataType_F64", "XLA_BF16": "DataType_BF16",
    "XLA_INVALID_ARGUMENT": "Error_Code_INVALID_ARGUMENT", "XLA_RESOURCE_EXHAUSTED": "Error_Code_RESOURCE_EXHAUSTED",
    "XLA_INTERNAL": "Error_Code_INTERNAL",
}  # fmt: skip


def fields_of(header, name):
    """The fields of a structure in xla_ffi.h, in their order."""
    body = header.rpartition(f"}} {name};")[0].rpartition("typedef struct")[2].partition("{")[2]
    names = []
    for line in body.split(";")[:-1]:
        line = line.rpartition("*/")[2]
        pointer = line.partition("(*")[2].partition(")")[0]
        names += [pointer] if pointer else [part.split()[-1].lstrip("*") for part in line.split(",")]
    return names


def test_structures_are_those_of_jaxlib(tmp_path):
    """A compiler compares xla_ffi.h with the header of the JAX that is installed."""
    ffi = pytest.importorskip("jax.ffi")
    compiler = shutil.which("cc")
    ours = pathlib.Path(__file__).parent.parent / "ffi" / "xla_ffi.h"
    if compiler is None:
        pytest.skip("no C compiler")
    text = ours.read_text()
    lines = ["#include <stddef.h>", f'#include "{ours}"', '#include "xla/ffi/api/c_api.h"',
             "#define WIDTH(type, field) sizeof(((type *)0)->field)"]  # fmt: skip
    for name, (theirs, fields) in STRUCTURES.items():
        assert len(fields_of(text, name)) == len(fields.split()), name
        for own, field in zip(fields_of(text, name), fields.split()):
            if field != "-":
                lines.append(f'_Static_assert(offsetof({name}, {own}) == offsetof({theirs}, {field}), "{name}: {own}");')
                lines.append(f'_Static_assert(WIDTH({name}, {own}) == WIDTH({theirs}, {field}), "{name}: {own}");')
    lines += [f'_Static_assert((int){own} == (int)XLA_FFI_{theirs}, "{own}");' for own, theirs in NUMBERS.items()]
    source = tmp_path / "compare.c"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run([compiler, "-std=gnu11", "-fsyntax-only", f"-I{ffi.include_dir()}", source], check=True)


# ---- Grain ---------------------------------------------------------------------------------------


class Source:
    """A source with random access for Grain. Each record is its own key."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, key):
        return key

    def __repr__(self):
        return f"Source({self.n})"


def sharding(index=0, count=1, drop_remainder=False):
    grain = pytest.importorskip("grain")
    return grain.sharding.ShardOptions(index, count, drop_remainder)


def sampler_of(client, n, shards=None, epochs=1, seed=7, **options):
    pytest.importorskip("grain")
    return shufd.jax.IndexSampler(n, shards, True, epochs, seed, client=client, **options)


def test_random_access(client):
    sampler = sampler_of(client, 1000, epochs=3)
    assert len(sampler) == 3000
    orders = np.concatenate([client.permute(1000, 7, epoch) for epoch in range(3)])
    for i in np.random.default_rng(1).permutation(3000).tolist():
        metadata = sampler[i]
        assert (metadata.index, metadata.record_key) == (i, orders[i]) and type(metadata.record_key) is int
    for i in (3000, 3001, -1, 1 << 70):
        with pytest.raises(IndexError, match=f"index {i}: expected less than 3000"):
            sampler[i]


def test_each_record_has_a_generator(client):
    sampler = sampler_of(client, 1000)
    again = sampler_of(client, 1000)
    draws = [sampler[i].rng.random() for i in range(100)]
    assert draws == [again[i].rng.random() for i in range(100)] and len(set(draws)) == 100
    plain = shufd.jax.IndexSampler(1000, num_epochs=1, client=client)
    assert plain[5].record_key == 5 and plain[5].rng is None


def test_pickled_sampler_is_equal(client):
    sampler = sampler_of(client, 1000, sharding(1, 2), None)
    sampler[10]
    copy = pickle.loads(pickle.dumps(sampler))
    assert repr(copy) == repr(sampler) and copy[10**9].record_key == sampler[10**9].record_key
    assert repr(sampler) == (
        "shufd.jax.IndexSampler(num_records=1000, shard_options=ShardOptions(shard_index=1, shard_count=2, "
        "drop_remainder=False), shuffle=True, num_epochs=None, seed=7, algorithm='primefold')"
    )


@pytest.mark.parametrize("of", [np.int64, np.uint8, bool], ids=repr)
def test_integers_of_other_types_are_plain(client, of):
    """Grain compares the text of samplers."""
    one, other = (sampler_of(client, n(1), epochs=n(1), seed=n(1), chunk=n(1), window=n(1)) for n in (int, of))
    assert repr(other) == repr(one) and type(other.chunk) is type(other.window) is int
    with pytest.raises(shufd.Invalid, match=r"^chunk: 1\.5: expected an integer"):
        sampler_of(client, 10, chunk=1.5, window=1)
    with pytest.raises(shufd.Invalid, match="^shuffle: 1: expected True or False"):
        shufd.jax.IndexSampler(10, shuffle=1, seed=7)
    assert repr(shufd.jax.IndexSampler(10, shuffle=np.True_, seed=7)) == repr(shufd.jax.IndexSampler(10, None, True, seed=7))


def test_sizes_of_chunks(client):
    """Grain compares the text of samplers, so it names the sizes."""
    sizes = [30, 1, 500, 77]
    sampler = sampler_of(client, 608, epochs=2, chunk=sizes, window=2)
    for epoch in range(2):
        order = shufd.local.Permutation(seed=7, epoch=epoch, chunk=sizes, window=2)
        assert [sampler[608 * epoch + i].record_key for i in range(0, 608, 50)] == [order[i] for i in range(0, 608, 50)]
    assert repr(sampler) != repr(sampler_of(client, 608, epochs=2, chunk=sizes[::-1], window=2))
    assert repr(sampler) == repr(sampler_of(client, 608, epochs=2, chunk=np.array(sizes), window=2))


def test_bad_arguments_are_refused(client):
    for arguments, text in (
        ((0,), "num_records: 0"), ((10, None, False, 0), "num_epochs: 0"),
        ((10, None, True), "seed: None"), ((10, None, True, 1, 2**64), "seed: 18446744073709551616"),
        ((3, sharding(0, 4, True)), "num_records: 3: expected 4 or more"),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=text):
            shufd.jax.IndexSampler(*arguments)


def loader_of(sampler, workers=0):
    grain = pytest.importorskip("grain")
    return grain.DataLoader(data_source=Source(sampler.num_records), sampler=sampler, worker_count=workers)


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_data_loader(client, count, drop_remainder):
    """Together, the shards read each epoch once, in the order of the permutation."""
    columns = [
        list(loader_of(sampler_of(client, 1000, sharding(i, count, drop_remainder), 2))) for i in range(count)
    ]
    used = 1000 // count * count if drop_remainder else 1000
    expected = np.concatenate([client.permute(1000, 7, epoch)[:used] for epoch in (0, 1)])
    assert np.stack(columns, 1).ravel().tolist() == expected[: 2 * used // count * count].tolist()


def test_data_loader_with_workers(daemon):
    """Workers are new processes. They find the daemon by an environment variable."""
    pytest.importorskip("grain")
    from absl import flags

    flags.FLAGS.mark_as_parsed()
    got = list(loader_of(sampler_of(None, 200, epochs=2), workers=2))
    both = [shufd.permute(200, 7, epoch).tolist() for epoch in (0, 1)]
    assert sorted(got) == sorted(both[0] + both[1]) and got[:10] == both[0][:10]


def test_checkpoint(client):
    loader = loader_of(sampler_of(client, 500, epochs=2))
    whole = list(loader)
    iterator = iter(loader)
    for _ in range(321):
        next(iterator)
    state = iterator.get_state()
    resumed = iter(loader_of(sampler_of(client, 500, epochs=2)))
    resumed.set_state(state)
    assert list(resumed) == whole[321:]
    for options in ({"seed": 8}, {"chunk": 10, "window": 4}):
        other = iter(loader_of(sampler_of(client, 500, epochs=2, **options)))
        with pytest.raises(ValueError, match="[Ss]ampler"):
            other.set_state(state)


def test_order_above_memory_limit(client):
    """If an order does not fit into memory, this process computes single values itself."""

    class ClientWithoutMemory:
        def permute(self, *arguments, **options):
            raise shufd.OutOfMemory("n: too large here")

        _prefetch = permute

    sampler = sampler_of(ClientWithoutMemory(), 1 << 40)
    at = [0, 12345, (1 << 40) - 1]
    assert [sampler[i].record_key for i in at] == client.index(at, 1 << 40, 7).tolist()
