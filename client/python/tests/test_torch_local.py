# SPDX-License-Identifier: MIT
"""Tensors of torch that this process fills: shufd.torch.randperm() and its neighbours, on the CPU. They have the bits of
shufd.local, whose tests compare these with the daemon and the golden tables. Weighted draws are tested on a GPU, too."""

import copy
import functools
import gc
import io
import pickle
import signal
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import golden
import shufd
import shufd.torch as shuftorch
from conftest import run_in_child, run_threads
from shufd import local
from shufd.torch import WeightTable, weighted_sample

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
NORMALS = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
UNIFORMS = {torch.float64: "f64", torch.float32: "f32"}
SEEDS = st.integers(-(2**63), 2**64 - 1)
NUMBERS = st.integers(0, 2**64 - 1)
ALGORITHMS = ("primefold", "philox24", "lcg")


def bits(values):
    """The bits of a tensor, or of an array of NumPy, as an array of integers."""
    if isinstance(values, torch.Tensor):
        values = values.detach().contiguous().view(BITS[values.element_size()]).numpy()
    return values.view({2: np.int16, 4: np.int32, 8: np.int64}[values.itemsize])


def same(tensor, array):
    assert tuple(tensor.shape) == array.shape and (bits(tensor) == bits(array)).all()
    return True


# ---- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_golden_orders(algorithm):
    for row in golden.orders(100_000):
        if row.algorithm == algorithm:
            order = shuftorch.randperm(row.n, seed=row.seed, epoch=row.epoch, algorithm=algorithm)
            shown = order if row.n <= 40 else torch.cat([order[:8], order[-4:]])
            assert shown.tolist() == row.values and local.fingerprint(order.numpy()) == row.fingerprint


def of_mean(tensor, mean, **place):
    """exponential_() takes the rate, and the means of the table are those of their rates."""
    assert 1 / (1 / mean) == mean
    return shuftorch.exponential_(tensor, 1 / mean, **place)


def test_golden_numbers():
    types = {name: of for of, name in NORMALS.items()} | {"u32": torch.int32, "u64": torch.int64}
    for row in golden.numbers():
        if row.distribution == "uniform" and row.dtype in ("u32", "u64"):
            continue
        tensor = torch.empty(row.count, dtype=types[row.dtype])
        place = {"seed": row.seed, "stream": row.stream, "offset": row.offset}
        if row.distribution == "integers" and row.mean > 2 ** (8 * tensor.element_size() - 1):
            continue
        calls = (shuftorch.normal_, shuftorch.uniform_, of_mean, shuftorch.bits_, shuftorch.integers_)
        row.draw(*(functools.partial(call, tensor) for call in calls), **place)
        first = bits(tensor[:8]).astype(np.int64).tolist()
        assert [value % 2 ** (8 * tensor.element_size()) for value in first] == row.values, row
        assert local.fingerprint(bits(tensor)) == row.fingerprint, row


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 3000), seed=SEEDS, epoch=NUMBERS, offset=st.integers(0, 40), stride=st.integers(1, 9),
    dtype=st.sampled_from([torch.int64, torch.int32]), algorithm=st.sampled_from(ALGORITHMS),
)  # fmt: skip
def test_randperm(n, seed, epoch, offset, stride, dtype, algorithm):
    offset = min(offset, n)
    options = {"offset": offset, "stride": stride, "algorithm": algorithm}
    expected = local.permute(n, seed, epoch, dtype="i64" if dtype is torch.int64 else "u32", **options)
    tensor = shuftorch.randperm(n, seed=seed, epoch=epoch, dtype=dtype, **options)
    assert tensor.dtype is dtype and same(tensor, expected)
    out = torch.zeros(2 * len(expected), dtype=dtype)
    assert same(shuftorch.randperm(n, seed=seed, epoch=epoch, out=out[::2], **options), expected)
    assert (out[1::2] == 0).all()
    if len(expected) > 1:
        part = shuftorch.randperm(n, seed=seed, epoch=epoch, dtype=dtype, count=len(expected) - 1, **options)
        assert same(part, expected[:-1])


def test_randperm_of_nothing_and_of_the_most():
    assert shuftorch.randperm(0, seed=7).shape == (0,)
    assert shuftorch.randperm(5, seed=7, offset=5).shape == (0,)
    few = shuftorch.randperm(2**62, seed=7, offset=2**61, stride=2**40, count=100)
    assert same(few, local.permute(2**62, 7, offset=2**61, stride=2**40, count=100, dtype="i64"))


@pytest.mark.parametrize("name", ["uint32", "uint64"])
def test_unsigned_types(name):
    if not hasattr(torch, name):
        pytest.skip("without unsigned types")
    tensor = shuftorch.randperm(1000, seed=7, dtype=getattr(torch, name))
    assert (tensor.numpy() == local.permute(1000, 7, dtype=name)).all() and tensor.dtype is getattr(torch, name)


@settings(max_examples=100, deadline=None)
@given(
    shape=st.lists(st.integers(0, 20), max_size=3).map(tuple), seed=SEEDS, stream=NUMBERS, offset=st.integers(0, 2**61),
    dtype=st.sampled_from([*NORMALS]), method=st.sampled_from(["table", "box-muller"]),
    mean=st.floats(-99, 99), std=st.floats(0.01, 99),
)  # fmt: skip
def test_normal(shape, seed, stream, offset, dtype, method, mean, std):
    expected = local.normal(
        mean, std, shape, seed=seed, stream=stream, offset=offset, dtype=NORMALS[dtype], method=method
    )
    tensor = torch.empty(shape, dtype=dtype)
    place = {"seed": seed, "stream": stream, "offset": offset, "method": method}
    assert shuftorch.normal_(tensor, mean, std, **place) is tensor
    if shape:
        same(tensor, expected)
    if len(shape) > 1:  # the numbers are in the order of the indices, not of the memory
        turned = torch.empty(shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))
        assert same(shuftorch.normal_(turned, mean, std, **place), expected)


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(0, 3000), seed=SEEDS, offset=st.integers(0, 2**61), dtype=st.sampled_from([*UNIFORMS]),
    low=st.floats(-1e30, 1e30), width=st.one_of(st.just(0.0), st.floats(1e-30, 1e30)),
)  # fmt: skip
def test_uniform_rounds_as_numpy(size, seed, offset, dtype, low, width):
    place = {"seed": seed, "offset": offset}
    expected = local.uniform(low, low + width, size, dtype=UNIFORMS[dtype], **place)
    tensor = shuftorch.uniform_(torch.empty(size, dtype=dtype), low, low + width, **place)
    assert same(tensor, expected)


@settings(max_examples=100, deadline=None)
@given(
    shape=st.lists(st.integers(0, 20), min_size=1, max_size=3).map(tuple), seed=SEEDS, epoch=NUMBERS,
    algorithm=st.sampled_from(ALGORITHMS),
    dtype=st.sampled_from([torch.uint8, torch.bool, torch.int64, torch.bfloat16, torch.complex64]),
)  # fmt: skip
def test_shuffle(shape, seed, epoch, algorithm, dtype):
    tensor = torch.arange(int(np.prod(shape))).reshape(shape).to(dtype)
    place = {"seed": seed, "epoch": epoch, "algorithm": algorithm}
    shuffled = shuftorch.shuffle(tensor, **place)
    order = shuftorch.randperm(shape[0], **place)
    assert torch.equal(shuffled, tensor[order]) and shuffled.dtype is dtype
    out = torch.empty_like(tensor)
    assert shuftorch.shuffle(shuffled, inverse=True, out=out, **place) is out and torch.equal(out, tensor)
    turned = tensor.transpose(0, -1)
    assert torch.equal(shuftorch.shuffle(turned, **place), turned[shuftorch.randperm(turned.shape[0], **place)])


def test_shuffle_of_conjugates():
    tensor = torch.tensor([1 + 2j, 3 + 4j, 5 + 6j])
    expected = tensor[shuftorch.randperm(3, seed=7)]
    assert torch.equal(shuftorch.shuffle(tensor.conj(), seed=7), expected.conj())
    out = torch.zeros(3, dtype=torch.complex64)
    shuftorch.shuffle(tensor, seed=7, out=out.conj())
    assert torch.equal(out, expected.conj())
    shuftorch.normal_(out.conj().imag, seed=7)
    assert torch.equal(out.imag, -shuftorch.normal_(torch.empty(3), seed=7))


def test_special_tensors_are_refused():
    quantized = torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.qint8)
    with pytest.raises(shufd.Invalid, match="^tensor: quantized, device cpu: expected a dense tensor"):
        shuftorch.shuffle(quantized, seed=7)
    for dtype in (torch.quint8, torch.quint4x2, torch.quint2x4):  # of a view, which is_quantized does not show
        with pytest.raises(shufd.Invalid, match="^tensor: quantized, device cpu: expected a dense tensor"):
            shuftorch.shuffle(torch.ones(64, dtype=torch.uint8).view(dtype), seed=7)
    if hasattr(torch, "nested"):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        with pytest.raises(shufd.Invalid, match="^tensor: nested, device cpu: expected a dense tensor"):
            shuftorch.shuffle(nested, seed=7)


def test_shuffle_has_a_gradient():
    if not hasattr(torch.autograd.Function, "setup_context"):
        with pytest.raises(shufd.Invalid, match="^tensor: requires a gradient"):
            shuftorch.shuffle(torch.zeros(3, requires_grad=True), seed=7)
        return
    tensor = torch.arange(50.0, dtype=torch.float64).reshape(10, 5).requires_grad_()
    weights = torch.arange(50.0, dtype=torch.float64).reshape(10, 5)
    for inverse in (False, True):
        (shuftorch.shuffle(tensor, seed=7, inverse=inverse) * weights).sum().backward()
        assert torch.equal(tensor.grad, shuftorch.shuffle(weights, seed=7, inverse=not inverse))
        tensor.grad = None
    assert torch.autograd.gradgradcheck(lambda t: shuftorch.shuffle(t * t, seed=7), tensor)


def test_index():
    at = torch.randint(0, 10**12, (30, 40))
    values = shuftorch.index(at, 10**12, seed=7, epoch=3)
    assert (values.numpy() == local.index(at.numpy(), 10**12, 7, 3).astype(np.int64)).all() and values.dtype is torch.int64
    assert torch.equal(shuftorch.index(values, 10**12, seed=7, epoch=3, inverse=True), at)
    assert torch.equal(shuftorch.index(at.T, 10**12, seed=7, epoch=3), values.T)
    small = torch.arange(100, dtype=torch.uint8)
    assert torch.equal(shuftorch.index(small, 100, seed=7), shuftorch.randperm(100, seed=7))
    assert shuftorch.index(torch.empty(0, dtype=torch.int64), 100, seed=7).shape == (0,)


# ---- Autograd ------------------------------------------------------------------------------------


def test_a_leaf_is_refused_as_by_torch():
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        shuftorch.normal_(leaf, seed=7)
    assert (leaf == 0).all()
    with torch.no_grad():
        shuftorch.normal_(leaf, seed=7)
    assert leaf.requires_grad and same(leaf, local.normal(size=3, seed=7, dtype="f32"))
    inner = leaf * 1
    shuftorch.uniform_(inner, seed=7)
    inner.sum().backward()
    assert (leaf.grad == 0).all()


def test_autograd_sees_the_change():
    leaf = torch.ones(3, requires_grad=True)
    for change in (
        lambda tensor: shuftorch.normal_(tensor, seed=7),
        lambda tensor: shuftorch.uniform_(tensor, -1, 1, seed=7),
        lambda tensor: shuftorch.Generator(7).normal_(tensor),
        lambda tensor: shuftorch.randperm(3, seed=7, out=tensor.view(torch.int32), dtype=torch.int32),
        lambda tensor: shuftorch.shuffle(torch.zeros(3), seed=7, out=tensor),
    ):
        inner = leaf * 1
        square = inner * inner
        change(inner.detach())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()


def test_inference_mode():
    with torch.inference_mode():
        tensor, order = torch.empty(3), torch.empty(3, dtype=torch.int64)
        same(shuftorch.normal_(tensor, seed=7), local.normal(size=3, seed=7, dtype="f32"))
    for call, name in (
        (lambda: shuftorch.normal_(tensor, seed=7), "tensor"),
        (lambda: shuftorch.Generator(7).uniform_(tensor), "tensor"),
        (lambda: shuftorch.shuffle(torch.ones(3), seed=7, out=tensor), "out"),
        (lambda: shuftorch.randperm(3, seed=7, out=order), "out"),
    ):
        with pytest.raises(shufd.Invalid, match=rf"^{name}: of torch.inference_mode\(\): expected another tensor"):
            call()


# ---- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shuftorch.randperm(-1, seed=7), r"n: -1: expected 0 to 2\^62"),
        (lambda: shuftorch.randperm(1.5, seed=7), "n: 1.5: expected an integer"),
        (lambda: shuftorch.randperm(2**62 + 1, seed=7, count=1), "n: .*: expected 0 to"),
        (lambda: shuftorch.randperm(5, seed=2**64), "seed: 18446744073709551616: expected 0 to"),
        (lambda: shuftorch.randperm(5, seed="a"), "seed: 'a': expected an integer"),
        (lambda: shuftorch.randperm(5, seed=7, epoch=-1), "epoch: -1: expected 0 to"),
        (lambda: shuftorch.randperm(5, seed=7, offset=6), "offset: 6: expected 0 to n, which is 5"),
        (lambda: shuftorch.randperm(5, seed=7, offset=2, stride=2, count=3), "count: 3: expected 0 to 2"),
        (lambda: shuftorch.randperm(5, seed=7, stride=0), "stride: 0: expected 1 to 2.62"),
        (lambda: shuftorch.randperm(5, seed=7, stride=2**64), "stride: 18446744073709551616: expected 1 to 2.62"),
        (lambda: shuftorch.randperm(5, seed=7, dtype=torch.float32), "dtype: torch.float32: expected one of "),
        (lambda: shuftorch.randperm(5, seed=7, out=torch.empty(4, dtype=torch.int64)), r"out: torch.int64, shape \(4,\)"),
        (lambda: shuftorch.randperm(5, seed=7, out=torch.empty(5)), "dtype: torch.float32: expected one of"),
        (lambda: shuftorch.randperm(5, seed=7, dtype=torch.int64, out=torch.empty(5, dtype=torch.int32)), "out: torch.int32"),
        (lambda: shuftorch.randperm(5, seed=7, out=np.empty(5, np.int64)), "out: ndarray of shape .*: expected a tensor"),
        (lambda: shuftorch.randperm(5, seed=7, algorithm="fast"), 'algorithm "fast": expected primefold'),
        (lambda: shuftorch.randperm(5, seed=7, device="meta"), "device: meta: expected cpu or cuda"),
        (lambda: shuftorch.randperm(2**31 + 1, seed=7, count=1, dtype=torch.int32), r"n: 2147483649: expected at most 2\^31"),
        (lambda: shuftorch.normal_(torch.empty(3, device="meta"), seed=7), "tensor: .*, device meta: expected a dense"),
        (lambda: shuftorch.normal_(torch.eye(3).to_sparse(), seed=7), "tensor: torch.sparse_coo, device cpu: expected a dense"),
        (lambda: shuftorch.normal_(torch.empty(3, dtype=torch.int64), seed=7), "dtype: torch.int64: expected one of float64"),
        (lambda: shuftorch.uniform_(torch.empty(3).half(), seed=7), "dtype: torch.float16: expected one of float64, float32"),
        (lambda: shuftorch.normal_([1.0], seed=7), r"tensor: \[1.0\]: expected a tensor"),
        (lambda: shuftorch.normal_(torch.empty(3), std=0, seed=7), "mean: 0.0, std: 0.0: expected"),
        (lambda: shuftorch.normal_(torch.empty(3), std=-1, seed=7), "std"),
        (lambda: shuftorch.normal_(torch.empty(3), mean=float("nan"), seed=7), "mean: nan, std: 1.0: expected finite"),
        (lambda: shuftorch.normal_(torch.empty(3), method="zig", seed=7), "method: 'zig': expected one of table, box-muller"),
        (lambda: shuftorch.normal_(torch.empty(3), method=["table"], seed=7), r"method: \['table'\]: expected one of table"),
        (lambda: shuftorch.normal_(torch.empty(3), method="uniform", seed=7), "method: 'uniform': expected one of table"),
        (lambda: shuftorch.normal_(torch.empty(3), seed=7, offset=-1), "offset: -1: expected 0 to"),
        (lambda: shuftorch.normal_(torch.empty(3), seed=7, offset=2**62), "offset"),
        (lambda: shuftorch.normal_(torch.empty(0), seed=7, offset=2**63), "offset"),
        (lambda: shuftorch.normal_(torch.empty(3), seed=7, stream=2**64), "stream: 18446744073709551616: expected"),
        (lambda: shuftorch.exponential_(torch.empty(3), 0, seed=7), r"lambd: 0.0: expected 2\^-100"),
        (lambda: shuftorch.exponential_(torch.empty(3).half(), seed=7), "dtype: torch.float16: expected one of float64, float32"),
        (lambda: shuftorch.bits_(torch.empty(3, dtype=torch.int32), 1.5, seed=7), "p: 1.5: expected 0 to 1"),
        (lambda: shuftorch.bits_(torch.empty(3), 0.5, seed=7), "dtype: torch.float32: expected one of "),
        (lambda: shuftorch.integers_(torch.empty(3), 9, seed=7), "dtype: torch.float32: expected one of "),
        (lambda: shuftorch.integers_(torch.empty(3).int(), 0, seed=7), r"bound 0: expected 1 to 2\^32"),
        (lambda: shuftorch.integers_(torch.empty(3).int(), 2**31 + 1, seed=7), r"bound: 2147483649: expected 1 to 2\^31 with dtype torch.int32"),
        (lambda: shuftorch.integers_(torch.empty(3).long(), 2**63 + 1, seed=7), r"bound: 9223372036854775809: expected 1 to 2\^63"),
        (lambda: shuftorch.integers_(torch.empty(3).long(), -1, seed=7), "bound: -1: expected 0 to"),
        (lambda: shuftorch.integers_(torch.empty(3).long(), 1.5, seed=7), "bound: 1.5: expected an integer"),
        (lambda: shuftorch.uniform_(torch.empty(3), 2, 1, seed=7), "high: 1.0: expected at least low = 2.0"),
        (lambda: shuftorch.uniform_(torch.empty(3), 0, 1e39, seed=7), "high: 1e.39: expected a finite number"),
        (lambda: shuftorch.shuffle(torch.tensor(1), seed=7), r"tensor: shape \(\): expected at least one dimension"),
        (lambda: shuftorch.shuffle(torch.ones(3), seed=7, out=torch.ones(4)), r"out: torch.float32, shape \(4,\): expected"),
        (lambda: shuftorch.shuffle(torch.ones(3), seed=7, inverse=1), "inverse: 1: expected True or False"),
        (lambda: shuftorch.shuffle(torch.ones(0), seed=7, epoch=-1), "epoch: -1"),
        (lambda: shuftorch.index(torch.ones(3), 10, seed=7), "positions: torch.float32: expected integers"),
        (lambda: shuftorch.index(torch.tensor([1, 10]), 10, seed=7), r"positions\[1\] 10: expected less than n = 10"),
        (lambda: shuftorch.index(torch.tensor([1, -1]), 10, seed=7), "positions: -1: expected 0 to n - 1, which is 9"),
        (lambda: shuftorch.index(torch.tensor([10]), 10, seed=7, inverse=True), r"values\[0\] 10: expected less than n"),
        (lambda: shuftorch.randperm(0, seed=7, algorithm="x"), 'algorithm "x": expected primefold'),
        (lambda: shuftorch.randperm(5, seed=7, count=0, algorithm="x"), 'algorithm "x": expected primefold'),
        (lambda: shuftorch.index([1], 10, seed=7), r"positions: \[1\]: expected a tensor"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


def test_a_shuffle_may_not_overlap():
    tensor = torch.arange(10)
    with pytest.raises(shufd.Invalid, match="^tensor and out overlap: .*; a shuffle cannot be in place$"):
        shuftorch.shuffle(tensor, seed=7, out=tensor)
    both = torch.arange(20)
    with pytest.raises(shufd.Invalid, match="^tensor and out overlap: expected two .* of 80 bytes; a shuffle cannot be in place$"):
        shuftorch.shuffle(both[:10], seed=7, out=both[5:15])
    assert torch.equal(shuftorch.shuffle(both[:10], seed=7, out=both[10:]), both[:10][shuftorch.randperm(10, seed=7)])


@pytest.mark.skipif(not hasattr(torch, "uint64"), reason="needs torch 2.3")
def test_large_unsigned_positions_are_shown():
    for inverse, name in ((False, "positions"), (True, "values")):
        with pytest.raises(shufd.Invalid, match=rf"^{name}\[1\] 18446744073709551615: expected less than n = 10"):
            shuftorch.index(torch.tensor([1, 2**64 - 1], dtype=torch.uint64), 10, seed=7, inverse=inverse)


def test_arrays_and_tensors_are_told_apart():
    for call in (
        lambda: local.normal(seed=7, out=torch.empty(3)),
        lambda: local.permute(3, 7, out=torch.empty(3, dtype=torch.int32)),
        lambda: local.index([1], 3, 7, out=torch.empty(1, dtype=torch.int64)),
        lambda: local.shuffle(np.arange(3), 7, out=torch.empty(3, dtype=torch.int64)),
    ):
        with pytest.raises(shufd.Invalid, match="^out: a tensor of torch: expected .*; for tensors, use shufd.torch$"):
            call()
    for generator in (torch.Generator(), shuftorch.Generator(7)):
        with pytest.raises(shufd.Invalid, match="^generator: .*: expected a shufd.Stream; for tensors, use shufd.torch.Gen"):
            local.normal(size=3, generator=generator)


def test_an_expanded_tensor_is_refused():
    with pytest.raises(RuntimeError, match="single memory location"):
        shuftorch.normal_(torch.empty(1).expand(3), seed=7)


# ---- Generator -----------------------------------------------------------------------------------


def numbers_of(calls, draw):
    """The numbers that draw(name, size, dtype, method) gives for a list of calls."""
    return [draw(*call) for call in calls]


@settings(max_examples=60, deadline=None)
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(["normal", "uniform", "exponential", "bits", "integers"]), st.integers(0, 9),
                  st.sampled_from([*UNIFORMS]), st.sampled_from(["table", "box-muller"])), max_size=8,
    ),
    seed=SEEDS, stream=NUMBERS,
)  # fmt: skip
def test_a_generator_gives_the_numbers_of_a_stream(calls, seed, stream):
    generator, place = shuftorch.Generator(seed, stream), shufd.Stream(seed, stream)
    for name, size, dtype, method in calls:
        if name == "normal":
            expected = local.normal(1.0, 2.0, size, generator=place, dtype=NORMALS[dtype], method=method)
            same(generator.normal_(torch.empty(size, dtype=dtype), 1.0, 2.0, method=method), expected)
        elif name == "exponential":
            expected = local.exponential(0.5, size, generator=place, dtype=UNIFORMS[dtype])
            same(generator.exponential_(torch.empty(size, dtype=dtype), 2.0), expected)
        elif name in ("bits", "integers"):
            of = torch.int32 if dtype is torch.float32 else torch.int64
            parameter = 0.3 if name == "bits" else 2**31
            words = getattr(generator, f"{name}_")(torch.empty(size, dtype=of), parameter).numpy()
            assert (words.view("u4" if of is torch.int32 else "u8") == getattr(local, name)(
                parameter, size, generator=place, dtype="u32" if of is torch.int32 else "u64"
            )).all()  # fmt: skip
        else:
            expected = local.uniform(-1.0, 2.0, size, generator=place, dtype=UNIFORMS[dtype])
            same(generator.uniform_(torch.empty(size, dtype=dtype), -1.0, 2.0), expected)
        assert generator.draw == place.draw


def test_generator_makes_tensors():
    generator = shuftorch.Generator(7)
    same(generator.randn(2, 3), local.normal(size=(2, 3), seed=7, dtype="f32"))
    assert generator.draw == 3
    same(generator.rand((4,), dtype=torch.float64), local.uniform(size=4, seed=7, offset=6))
    assert torch.equal(generator.randperm(100), shuftorch.randperm(100, seed=7, epoch=5))
    assert torch.equal(generator.randperm(100, dtype=torch.int32), shuftorch.randperm(100, seed=7, epoch=6).int())
    assert generator.draw == 7
    other = shuftorch.Generator(7, stream=1)
    assert not torch.equal(other.randperm(100), shuftorch.randperm(100, seed=7))


def test_a_failure_does_not_move_a_generator():
    generator = shuftorch.Generator(7)
    generator.randn(3)
    before = generator.state_dict()
    for call in (
        lambda: generator.normal_(torch.empty(3), std=-1.0),
        lambda: generator.normal_(torch.empty(3, dtype=torch.int64)),
        lambda: generator.uniform_(torch.empty(3), 2, 1),
        lambda: generator.randperm(-1),
        lambda: generator.normal_([1.0]),
    ):
        with pytest.raises(shufd.Invalid):
            call()
        assert generator.state_dict() == before


def test_generator_copies_and_states():
    generator = shuftorch.Generator(2**64 - 1, 2**63)
    generator.normal_(torch.empty(3), method="box-muller")
    generator.spawn(2)
    file = io.BytesIO()
    torch.save(generator.state_dict(), file)
    file.seek(0)
    loaded = shuftorch.Generator(1)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    copies = [copy.copy(generator), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), loaded]
    assert len({repr(each) for each in copies}) == 1
    expected = generator.normal_(torch.empty(5), method="box-muller")
    children = [child.stream for child in generator.spawn(2)]
    for each in copies:
        assert torch.equal(each.normal_(torch.empty(5), method="box-muller"), expected)
        assert [child.stream for child in each.spawn(2)] == children and each.state_dict() == generator.state_dict()


@pytest.mark.parametrize(
    "change", [{"used": 2}, {"used": -1}, {"numbers_of_draw": 3}, {"method": "zig"}, {"seed": "a"}, {"draw": 2**61}, {"spawned": -1},
               {"method": ["table"]}],
)  # fmt: skip
def test_a_wrong_state_is_refused(change):
    generator = shuftorch.Generator(7)
    generator.randn(3)
    before = generator.state_dict()
    with pytest.raises(shufd.Invalid):
        generator.load_state_dict({**before, **change})
    with pytest.raises(shufd.Invalid, match="^state_dict: {}"):
        generator.load_state_dict({})
    assert generator.state_dict() == before


@pytest.mark.parametrize("state", [None, [1], "state", torch.ones(7), np.ones(7), 5])
def test_a_state_of_another_type_is_refused(state):
    generator = shuftorch.Generator(7)
    for load in (generator.load_state_dict, generator.__setstate__):
        with pytest.raises(shufd.Invalid, match="^state_dict: .*: expected one of shufd.torch.Generator.state_dict"):
            load(state)


def test_a_seed_by_position():
    rows = torch.arange(30)
    assert torch.equal(shuftorch.randperm(30, 7, 3), shuftorch.randperm(30, seed=7, epoch=3))
    assert torch.equal(shuftorch.shuffle(rows, 7, 3), shuftorch.shuffle(rows, seed=7, epoch=3))
    assert torch.equal(shuftorch.index(rows, 30, 7, 3), shuftorch.randperm(30, 7, 3))
    weights = torch.ones(30)
    assert torch.equal(weighted_sample(weights, 9, 7, 3), weighted_sample(weights, 9, seed=7, epoch=3))
    assert torch.equal(WeightTable(weights).draw(9, 7, 3), WeightTable(weights).draw(9, seed=7, epoch=3))


FILLS = (shuftorch.normal_, shuftorch.uniform_, shuftorch.exponential_, shuftorch.bits_, shuftorch.integers_)


def test_advice_about_arguments():
    tensor = torch.empty(3)
    calls = [functools.partial(shuftorch.randperm, 3), functools.partial(shuftorch.index, tensor.long(), 3)]
    calls += [functools.partial(call, tensor) for call in (*FILLS, shuftorch.shuffle)]
    for call in calls:
        with pytest.raises(TypeError, match="'key'; a named key never leaves its daemon; use the function of shufd or of a Client$"):
            call(key="training")
    with pytest.raises(TypeError, match=r"'loc'; did you mean mean=\?$"):
        shuftorch.normal_(tensor, loc=1.0, seed=7)
    with pytest.raises(TypeError, match=r"'epoc'; did you mean epoch=\?$"):
        shuftorch.randperm(3, 7, epoc=3)


def test_a_generator_advances():
    generator, place = shuftorch.Generator(7), shufd.Stream(7)
    generator.randn(3)
    place.advance(2)
    for draws in (0, 5, -6):
        assert generator.advance(draws) is generator and generator.draw == place.advance(draws).draw
        same(generator.rand(3), local.uniform(size=3, generator=place, dtype="f32"))
    with pytest.raises(shufd.Invalid, match="^draw: -[0-9]+: expected 0 to"):
        generator.advance(-(2**61))
    with pytest.raises(shufd.Invalid, match="^draws: 1.5: expected an integer"):
        generator.advance(1.5)


def test_a_sampler_takes_no_generator_of_shufd():
    with pytest.raises(shufd.Invalid, match=r"^generator: .*: expected a torch.Generator, or seed=generator.seed instead$"):
        shuftorch.RandomSampler(range(9), generator=shuftorch.Generator(7))


class Noisy:
    """A data set that draws twice, and says how often its generator warned."""

    def __init__(self, generator):
        self.generator = generator

    def __len__(self):
        return 2

    def __getitem__(self, number):
        generator = shuftorch.Generator(7) if self.generator is None else self.generator
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            generator.randn(3)
            generator.randperm(3)
        return len([w for w in caught if "each worker of the DataLoader has a copy" in str(w.message)])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_generator_in_a_worker_that_has_not_made_it(method):
    def warned(generator, workers=1):
        options = {"multiprocessing_context": method} if workers else {}
        loader = torch.utils.data.DataLoader(Noisy(generator), batch_size=None, num_workers=workers, **options)
        return [int(count) for count in loader]

    assert warned(shuftorch.Generator(7)) == [1, 0]
    assert warned(shuftorch.Generator(7).spawn(1)[0]) == [0, 0]
    assert warned(None) == [0, 0]
    assert warned(shuftorch.Generator(7), workers=0) == [0, 0]


def test_spawned_generators_differ():
    first, second = shuftorch.Generator(7).spawn(2)
    assert not torch.equal(first.randn(8), second.randn(8)) and first.seed == second.seed == 7


# ---- Threads and processes -----------------------------------------------------------------------


def test_eight_threads():
    """Large and small calls, also with teams, and one generator whose numbers no two threads get."""
    order = shuftorch.randperm(300_000, seed=7)
    generator, drawn = shuftorch.Generator(7), []

    def run(_):
        for _ in range(5):
            assert torch.equal(shuftorch.randperm(300_000, seed=7), order)
            for _ in range(20):
                drawn.append(generator.rand(4, dtype=torch.float64))

    run_threads(run, 8)
    assert generator.draw == 2 * len(drawn) == 1600
    expected = local.uniform(size=3200, seed=7)
    assert sorted(torch.cat(drawn).tolist()) == sorted(expected.tolist())


def test_child_of_a_process_with_a_team():
    """The child compares with NumPy, because torch's own team would wait for ever there."""
    expected = shuftorch.randperm(300_000, seed=7).numpy()

    def child():
        assert (shuftorch.randperm(300_000, seed=7).numpy() == expected).all()

    run_in_child(child)


def test_interval_in_a_child_of_a_process_with_a_team():
    torch.set_num_threads(2)
    torch.ones(2**21).mul_(2)  # torch's own team
    expected = shuftorch.uniform_(torch.empty(2**20), 1, 3, seed=7).numpy()

    def child():
        signal.alarm(20)
        assert (shuftorch.uniform_(torch.empty(2**20), 1, 3, seed=7).numpy() == expected).all()
        assert shuftorch.Generator(7).uniform_(torch.empty(2**20), 1, 3).numpy()[-1] == expected[-1]

    run_in_child(child)


def test_nothing_leaks():
    tensor = torch.empty(1000)
    for _ in range(3):
        shuftorch.normal_(tensor, seed=7)
        shuftorch.Generator(7).randperm(100)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        shuftorch.normal_(tensor, seed=7)
        shuftorch.Generator(7).randperm(100)
        shuftorch.shuffle(tensor, seed=7)
    gc.collect()
    assert len(gc.get_objects()) <= before + 5


# ---- WeightTable and weighted_sample() -----------------------------------------------------------

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
WEIGHTS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


def same_draws(tensor, expected):
    assert tensor.dtype is torch.int64
    np.testing.assert_array_equal(tensor.cpu().numpy(), expected)


def some_weights(count, kind, seed=1):
    numbers = np.random.default_rng(seed).integers(0, 100, count)
    numbers[0] = 1
    return torch.from_numpy(numbers).to(kind)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weighted_draws(device, kind):
    for count in (1, 2, 1000, 70_001):
        weights = some_weights(count, kind)
        expected = shufd.local.Weighted(weights.to(torch.float64).numpy(), 7, 3)
        table = WeightTable(weights.to(device))
        drawn = table.draw(100_000, seed=7, epoch=3)
        assert drawn.device == table.device and table.device.type == device
        same_draws(drawn, expected.range(0, 100_000))
        same_draws(table.draw(1001, seed=7, epoch=3, offset=10**18, stride=17), expected.range(10**18, 1001, 17))
        same_draws(table.draw(0, seed=7), [])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weighted_samples(device, kind):
    for count in (1, 2, 1000, 70_001):
        weights = some_weights(count, kind)
        most = int((weights != 0).sum())
        for size in {0, 1, most // 2, most}:
            sample = weighted_sample(weights.to(device), size, seed=7, epoch=3)
            same_draws(sample, shufd.local.weighted_sample(weights.to(torch.float64).numpy(), size, 7, 3))
        with pytest.raises(shufd.Invalid, match=f"expected at most {most}"):
            weighted_sample(weights.to(device), most + 1, seed=7)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_of_any_stride_that_change_later(device):
    memory = torch.arange(3001, dtype=torch.float64, device=device, requires_grad=True)
    weights = memory[1::3]
    table, expected = WeightTable(weights), shufd.local.Weighted(weights.detach().cpu().numpy(), 7)
    sample = weighted_sample(weights, 10, seed=7)
    same_draws(sample, shufd.local.weighted_sample(weights.detach().cpu().numpy(), 10, 7))
    memory.detach().zero_()
    same_draws(table.draw(1000, seed=7), expected.range(0, 1000))


@pytest.mark.parametrize("device", DEVICES)
def test_refusals_of_weights(device):
    def refused(weights, words):
        for call in (WeightTable, lambda values: weighted_sample(values, 1, seed=7)):
            with pytest.raises(shufd.Invalid, match=words):
                call(torch.tensor(weights, device=device))

    refused([], "weights: shape .0,.: expected one dimension")
    refused([[1.0]], "weights: shape .1, 1.: expected one dimension")
    refused([0.0, 0.0], "weights: all are 0")
    refused([1.0, -2.0], r"weights\[1\] -2: expected a finite number")
    refused([1.0, float("nan")], r"weights\[1\] nan: expected a finite number")
    refused([3, -2], "weights: -2: expected numbers of 0 or more")
    refused([1j], "weights: torch.complex64: expected numbers")
    table = WeightTable(torch.ones(5, device=device))
    with pytest.raises(shufd.Invalid, match="below 2.62"):
        table.draw(2, seed=7, offset=2**62 - 1)
    with pytest.raises(shufd.Invalid, match="stride 0"):
        table.draw(2, seed=7, stride=0)
    with pytest.raises(shufd.Invalid, match="count: -1"):
        table.draw(-1, seed=7)
    with pytest.raises(shufd.Invalid, match=f"^count: {2**63}: expected at most 2.62$"):
        table.draw(2**63, seed=7)
    with pytest.raises(shufd.Invalid, match="expected a tensor"):
        WeightTable([1.0, 2.0])
    assert repr(table).startswith("shufd.torch.WeightTable(n=5, device='" + device)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_graphs_and_streams_of_weighted_draws():
    weights = some_weights(1000, torch.float32).cuda()
    table, expected = WeightTable(weights), shufd.local.Weighted(weights.cpu().numpy(), 7)
    graph = torch.cuda.CUDAGraph()
    table.draw(1000, seed=7)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out = table.draw(1000, seed=7)
    out.zero_()
    graph.replay()
    same_draws(out, expected.range(0, 1000))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        mine = table.draw(1000, seed=7)
        assert not stream.query()
    stream.synchronize()
    same_draws(mine, expected.range(0, 1000))
