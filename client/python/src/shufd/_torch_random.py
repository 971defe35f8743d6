# SPDX-License-Identifier: MIT
"""Permutations, shuffles, random numbers and weighted draws as tensors of torch, computed in this process; shufd.torch
exports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _request, _torch_fill as fill
from ._arguments import flag, integer, real, shown, u64
from ._errors import Invalid
from ._names import advise_arguments
from ._torch_fill import (
    has_tangent, is_compiling, is_plain, is_transformed, must_dispatch, ops, recorder, refuse_batched, refuse_vmap,
    signed,
)  # fmt: skip

_MOST = fill.MOST
_empty = torch.empty
_grad_enabled, _STRIDED = torch.is_grad_enabled, torch.strided
_QUANTIZED = frozenset({torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4})


# ---- The tensors of a call -----------------------------------------------------------------------


def _increment_version() -> Callable[[Any], Any]:
    """A function that tells autograd about a change of a tensor that no operator has made."""
    fast: Any = getattr(torch._C, "_increment_version", None)
    if fast is None:  # before torch 2.1: an operator on no value of the same memory
        return lambda tensor: tensor.detach().reshape(-1)[:0].zero_()
    try:
        fast([])
    except TypeError:  # before torch 2.6: a single tensor
        return lambda tensor: fast(tensor)
    return lambda tensor: fast([tensor])


_changed = _increment_version()


def _is_followed(tensor: Any, name: str = "out") -> bool:
    """Whether autograd counts the changes of a tensor. As torch, refuses one of the inference mode elsewhere."""
    if not tensor.is_inference():
        return True
    if not torch.is_inference_mode_enabled():
        raise Invalid(f"{name}: of torch.inference_mode(): expected another tensor, or a call in that mode")
    return False


def check_tensor(name: str, tensor: Any) -> None:
    if is_plain(tensor) and (tensor.is_cpu or tensor.is_cuda) and not _is_special(tensor):
        return
    if not isinstance(tensor, torch.Tensor):
        raise Invalid(f"{name}: {shown(tensor)}: expected a tensor")
    if type(tensor).__module__.startswith("torch.distributed"):
        raise Invalid(f"{name}: {type(tensor).__name__}: expected a tensor of this process; use its to_local()")
    if _is_special(tensor) or tensor.device.type not in ("cpu", "cuda"):
        is_quantized = tensor.is_quantized or tensor.dtype in _QUANTIZED
        kind = "nested" if tensor.is_nested else "quantized" if is_quantized else tensor.layout
        raise Invalid(f"{name}: {kind}, device {tensor.device}: expected a dense tensor on cpu or cuda")


def _is_special(tensor: Any) -> bool:
    """Whether the values of a tensor are more than an array of its shape."""
    return tensor.layout is not _STRIDED or tensor.is_nested or tensor.is_quantized or tensor.dtype in _QUANTIZED


def _check_out(out: Any, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
    check_tensor("out", out)
    if out.dtype is not dtype or tuple(out.shape) != shape:
        raise Invalid(f"out: {out.dtype}, shape {tuple(out.shape)}: expected {dtype}, shape {shape}")
    if device is not None and device != out.device and torch.empty(0, device=device).device != out.device:
        raise Invalid(f"out: on {out.device}: expected {device}")
    if _needs_gradient(out):
        raise Invalid("out: requires a gradient: expected a tensor that does not, or torch.no_grad()")


def _needs_gradient(tensor: Any) -> bool:
    """Whether autograd follows a tensor, backwards or forwards."""
    return (tensor.requires_grad and _grad_enabled()) or has_tangent(tensor)


def _made(count: int, dtype: Any, device: Any) -> Any:
    out = _empty(count, dtype=dtype) if device is None else _empty(count, dtype=dtype, device=device)
    if not (out.is_cpu or out.is_cuda):
        raise Invalid(f"device: {out.device}: expected cpu or cuda")
    return out


# ---- Permutations --------------------------------------------------------------------------------


@advise_arguments
def randperm(
    n: int,
    seed: int,
    epoch: int = 0,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    out: torch.Tensor | None = None,
    offset: int = 0,
    count: int | None = None,
    stride: int = 1,
    algorithm: str = "primefold",
) -> torch.Tensor:
    """The permutation of [0, n) that algorithm, seed and epoch select, as torch.randperm() returns one. The values are those
    of shufd.permute(), with the same bits on the CPU and on any GPU.

    n         0 to 2^62; 0 gives an empty tensor
    seed      -2^63 to 2^64 - 1; a negative seed selects the same as seed + 2^64
    epoch     0 to 2^64 - 1; each pair of seed and epoch selects its own permutation
    dtype     int64, or int32 (n <= 2^31), uint32 (n <= 2^32), uint64; by default that of `out`, or int64
    device    of the result; by default that of `out`, or torch's default device
    out       a tensor of `count` values of the type, which the call fills and returns
    offset, count, stride
              only the `count` values at offset, offset + stride, ...; by default all from `offset` on
    algorithm "primefold", "philox24" or "lcg"

    Needs no daemon. On a GPU the call queues the work in torch's current stream and returns. It may be captured in a CUDA
    graph and compiled by torch.compile. Any number of threads may call it. Errors: Invalid; DeviceError without the CUDA
    library of shufd, or if its driver is too old; IOFailure; those of torch for memory.
    """
    if type(n) is not int or n < 0 or n > _MOST or offset != 0 or stride != 1 or count is not None:
        n, offset, count, stride = _part(n, offset, count, stride)
    else:
        count = n
    dispatches, is_followed = must_dispatch(), False
    if out is None:
        if dtype is None:
            dtype = torch.int64
        elif dtype not in fill.ORDERS:
            fill.named(dtype, fill.ORDERS)
        out = _made(count, dtype, device)
    else:
        dtype = getattr(out, "dtype", torch.int64) if dtype is None else dtype
        _check_out(out, (count,), dtype, device)
        fill.named(dtype, fill.ORDERS)
        is_followed = not is_compiling() and _is_followed(out)
    if dispatches or not is_plain(out):
        if not is_compiling():  # a fake tensor has no values, and its call checks nothing later
            fill.check_algorithm(algorithm)
        ops.order(out, n, signed("seed", seed), signed("epoch", epoch), offset, count, stride, algorithm)
        return out
    fill.order(out, n, seed, epoch, offset, stride, algorithm)
    if is_followed:
        _changed(out)
    return out


def _part(n: Any, offset: Any, count: Any, stride: Any) -> tuple[int, int, int, int]:
    """Checks the arguments of a slice, and counts its values."""
    if not is_compiling():
        n, offset, stride = integer("n", n), integer("offset", offset), integer("stride", stride)
        count = None if count is None else integer("count", count)
    return n, offset, fill.check_part(n, offset, count, stride), stride


@advise_arguments
def index(
    positions: torch.Tensor, n: int, seed: int, epoch: int = 0, *, inverse: bool = False
) -> torch.Tensor:
    """The values at single positions of the permutation that randperm(n, seed=seed, epoch=epoch) returns, without computing
    the others. With `inverse`, the positions of values.

    positions  integers below n, of any shape. On a GPU the call cannot see them: for one out of range, it returns -1
    n          1 to 2^62
    Returns a tensor of int64 of the same shape on the same device. Errors: those of randperm(), and on the CPU Invalid
    for a position out of range.
    """
    dispatches = must_dispatch()
    check_tensor("positions", positions)
    if not is_compiling():
        n = u64("n", n)
    if type(inverse) is not bool:
        inverse = flag("inverse", inverse)
    if positions.dtype.is_floating_point or positions.dtype.is_complex or positions.dtype is torch.bool:
        raise Invalid(f"positions: {positions.dtype}: expected integers")
    if dispatches or not is_plain(positions):
        out = torch.empty_like(positions, dtype=torch.int64)
        ops.look_up(out, positions.to(torch.int64), n, signed("seed", seed), signed("epoch", epoch), inverse)
        return out
    places = positions if positions.dtype is torch.int64 else positions.to(torch.int64)
    out = _empty(places.shape, dtype=torch.int64, device=places.device)
    fill.look_up(out, places, n, seed, epoch, inverse, positions.dtype.is_signed)
    return out


_HAS_SETUP_CONTEXT = hasattr(torch.autograd.Function, "setup_context")  # torch.compile of 2.11 cannot ask


class _Shuffle(torch.autograd.Function):
    """The gradient of a shuffle is the inverse shuffle of the gradient."""

    @staticmethod
    def forward(tensor: Any, seed: Any, epoch: Any, inverse: bool, algorithm: str) -> Any:
        return _shuffled(tensor, seed, epoch, inverse, algorithm)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.arguments = inputs[1:]

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        seed, epoch, inverse, algorithm = ctx.arguments
        return shuffle(gradient, seed=seed, epoch=epoch, inverse=not inverse, algorithm=algorithm), None, None, None, None

    @staticmethod
    def vmap(*_: Any) -> Any:
        refuse_vmap()


class _ShuffleForwards(_Shuffle):
    """The tangent of a shuffle is the shuffle of the tangent. torch.compile takes no class that has this method."""

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        seed, epoch, inverse, algorithm = ctx.arguments
        return shuffle(tangent, seed=seed, epoch=epoch, inverse=inverse, algorithm=algorithm)


def _differentiable(tensor: Any, seed: Any, epoch: Any, inverse: bool, algorithm: str) -> Any:
    if not _HAS_SETUP_CONTEXT:
        raise Invalid(f"tensor: requires a gradient: expected one that does not with torch {torch.__version__}, or torch 2.0")
    if has_tangent(tensor):
        if is_compiling():
            raise Invalid("tensor: has a tangent of forward-mode differentiation: expected one without under torch.compile")
        return _ShuffleForwards.apply(tensor, seed, epoch, inverse, algorithm)
    return _Shuffle.apply(tensor, seed, epoch, inverse, algorithm)


def _shuffled(tensor: Any, seed: Any, epoch: Any, inverse: bool, algorithm: str) -> Any:
    out = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    _write_shuffle(out, tensor, seed, epoch, inverse, algorithm)
    return out


def _write_shuffle(out: Any, tensor: Any, seed: Any, epoch: Any, inverse: bool, algorithm: str) -> None:
    if must_dispatch() or not (is_plain(out) and is_plain(tensor)):
        if not is_compiling():
            fill.check_algorithm(algorithm)
        ops.shuffle(out, tensor, signed("seed", seed), signed("epoch", epoch), inverse, algorithm)
    else:
        refuse_batched(tensor)
        fill.shuffle(out, tensor, seed, epoch, inverse, algorithm)


@advise_arguments
def shuffle(
    tensor: torch.Tensor,
    seed: int,
    epoch: int = 0,
    *,
    inverse: bool = False,
    out: torch.Tensor | None = None,
    algorithm: str = "primefold",
) -> torch.Tensor:
    """The rows of a tensor in the order of a permutation: tensor[randperm(len(tensor), seed=seed, epoch=epoch)], in less
    time. With `inverse`, undoes this.

    tensor    of at least one dimension, of any type, also with no rows
    out       a tensor of the same shape, type and device without common memory, which the call fills and returns; the
              tensor may then not need a gradient
    The other arguments and the errors are those of randperm(). With torch 2.0 it is differentiable.
    """
    if not is_compiling():  # which traces no such checks in a gradient, and the operator makes its own
        check_tensor("tensor", tensor)
    if type(inverse) is not bool:
        inverse = flag("inverse", inverse)
    if tensor.dim() == 0:
        raise Invalid("tensor: shape (): expected at least one dimension")
    needs_gradient = _needs_gradient(tensor)
    if out is tensor:
        raise Invalid("tensor and out overlap: expected two tensors; a shuffle cannot be in place")
    if out is None:
        if needs_gradient:
            return _differentiable(tensor, seed, epoch, inverse, algorithm)
        return _shuffled(tensor, seed, epoch, inverse, algorithm)
    _check_out(out, tuple(tensor.shape), tensor.dtype, tensor.device)
    if needs_gradient:
        raise Invalid("out: the tensor requires a gradient: expected None, or torch.no_grad()")
    is_followed = not is_compiling() and _is_followed(out)
    _write_shuffle(out, tensor, seed, epoch, inverse, algorithm)
    if is_followed:
        _changed(out)
    return out


# ---- Random numbers ------------------------------------------------------------------------------


@advise_arguments
def normal_(
    tensor: torch.Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    seed: int,
    stream: int = 0,
    offset: int = 0,
    method: str = "table",
) -> torch.Tensor:
    """Fills a tensor with normal random numbers, as tensor.normal_(mean, std), and returns it. The numbers are those of
    shufd.normal(), in the order of the tensor's indices, with the same bits on the CPU and on any GPU.

    tensor    of float64, float32, float16 or bfloat16, on the CPU or on a GPU
    mean      a number, -2^100 to 2^100
    std       a number, 2^-100 to 2^100; with float16, |mean| + 16 std is at most 65504
    seed, stream, offset
              select the numbers: number offset, offset + 1, ... of a stream. Types and offsets share random bits, as
              shufd.normal() describes: a shufd.torch.Generator avoids this
    method    "table", faster on a GPU, or "box-muller"

    As for torch's own, a leaf that requires a gradient is refused outside torch.no_grad(). Needs no daemon. Streams, graphs,
    torch.compile, threads and errors: as in randperm().
    """
    _request.check_method(method)
    return _draw(tensor, method, ("mean", "std"), mean, std, seed, stream, offset)


@advise_arguments
def uniform_(
    tensor: torch.Tensor,
    low: float = 0.0,
    high: float = 1.0,
    *,
    seed: int,
    stream: int = 0,
    offset: int = 0,
) -> torch.Tensor:
    """Fills a tensor with uniform random numbers of [low, high), as tensor.uniform_(low, high), and returns it. The numbers
    are those of shufd.uniform().

    tensor    of float64 or float32
    low, high finite numbers, low <= high, whose difference is finite too, in the type of the tensor
    The other arguments and the errors are those of normal_(). Value i of float64 has the bits of values 2 i and 2 i + 1 of
    float32.
    """
    return _draw(tensor, "uniform", ("low", "high"), low, high, seed, stream, offset)


@advise_arguments
def exponential_(
    tensor: torch.Tensor, lambd: float = 1.0, *, seed: int, stream: int = 0, offset: int = 0
) -> torch.Tensor:
    """Fills a tensor with exponential random numbers, as tensor.exponential_(lambd), and returns it. The numbers are those
    of shufd.exponential(1 / lambd).

    tensor    of float64 or float32
    lambd     the rate, which is 1 / mean: 2^-100 to 2^100
    The other arguments and the errors are those of normal_(). Values 2 m and 2 m + 1 of float64 have the bits of values 4 m
    to 4 m + 3 of float32.
    """
    return _draw(tensor, "exponential", ("lambd", ""), lambd, 0.0, seed, stream, offset)


@advise_arguments
def bits_(tensor: torch.Tensor, p: float = 0.5, *, seed: int, stream: int = 0, offset: int = 0) -> torch.Tensor:
    """Fills each bit of a tensor independently, with a 1 with probability `p`, and returns the tensor: a mask in an eighth of
    the memory of one of torch.bool. The integers are those of shufd.bits().

    tensor    of int32 or int64, or uint32 or uint64; the first bit of each integer is the lowest
    p         0 to 1
    The other arguments and the errors are those of normal_(); `offset` counts integers. A bit that is 1 for one p is 1 for every
    larger p. Integer i of 64 bits has the bits of integers 2 i and 2 i + 1 of 32 bits.
    """
    return _draw(tensor, "bits", ("p", ""), p, 0.0, seed, stream, offset)


@advise_arguments
def integers_(tensor: torch.Tensor, bound: int, *, seed: int, stream: int = 0, offset: int = 0) -> torch.Tensor:
    """Fills a tensor with random integers from 0 to bound - 1, all exactly equally likely, as tensor.random_(bound), and
    returns it. The integers are those of shufd.integers().

    tensor    of int32 or int64, or uint32 or uint64
    bound     1 to 2^31, 2^63, 2^32 or 2^64 - 1, in the order of these types
    The other arguments and the errors are those of normal_(). Number i of 64 bits has the random bits of numbers 2 i and
    2 i + 1 of 32 bits, for all bounds.
    """
    return _draw(tensor, "integers", ("", ""), 0.0, 0.0, seed, stream, offset, bound)


def _number(name: str, value: Any) -> float:
    return value if type(value) is float else real(name, value)


def _draw(
    tensor: Any, law: str, names: tuple[str, str], first: Any, second: Any, seed: Any, stream: Any, offset: Any,
    bound: Any = 0,
) -> Any:  # fmt: skip
    dispatches, allowed = must_dispatch(), fill.TYPES[law]
    compiles = dispatches and is_compiling()
    if not compiles:  # else the operator checks the law
        first, second = _number(names[0], first), _number(names[1], second)
        fill.check_law(law, first, second)
    if dispatches or not is_plain(tensor) or tensor.dtype not in allowed or tensor.layout is not _STRIDED or not (
        tensor.is_cpu or tensor.is_cuda
    ):
        check_tensor("tensor", tensor)
        fill.named(tensor.dtype, allowed)
    if (tensor.requires_grad and _grad_enabled()) or has_tangent(tensor):
        tensor.zero_()  # torch refuses a leaf, and records that the values have no gradient and no tangent
    is_followed = not compiles and _is_followed(tensor, "tensor")
    if not compiles and (type(offset) is not int or not 0 <= offset <= _MOST):
        offset = u64("offset", offset)
    if not compiles and (type(bound) is not int or not 0 <= bound < 2**64):
        bound = u64("bound", bound)
    if dispatches or not is_plain(tensor):
        if not compiles:
            fill.check_numbers(law, first, second, tensor.dtype, bound)
        ops.numbers(
            tensor, law, first, second, signed("seed", seed), signed("stream", stream), offset, signed("bound", bound)
        )
        return tensor
    fill.numbers(tensor, law, first, second, seed, stream, offset, bound)
    if is_followed:
        _changed(tensor)
    return tensor


# ---- Weighted draws and samples ------------------------------------------------------------------


def _refuse_recorders() -> None:
    """Refuses what sees only the new memory of a result, and not the call that fills it: a replay would not fill it."""
    if by := recorder() or ("a transform of torch.func" if is_transformed() else ""):
        raise Invalid(f"weights: {by} cannot see weighted draws: make them before, and pass the indices in")


def _weights_of(weights: Any) -> torch.Tensor:
    """The weights as float64, float32, or integers of 64 bits that are not negative."""
    _refuse_recorders()
    check_tensor("weights", weights)
    values = weights.detach()
    if values.dim() != 1 or values.numel() == 0:
        raise Invalid(f"weights: shape {tuple(values.shape)}: expected one dimension with at least one number")
    if values.is_complex():
        raise Invalid(f"weights: {values.dtype}: expected numbers")
    if values.is_floating_point():
        return values if values.dtype in (torch.float64, torch.float32) else values.to(torch.float32)
    numbers = values.to(torch.int64)
    least = int(numbers.min())
    if least < 0:
        raise Invalid(f"weights: {least}: expected numbers of 0 or more, below 2^63 as integers")
    return numbers


class WeightTable:
    """Weighted draws with replacement as tensors, on the CPU or a GPU, with the same bits: those of shufd.local.Weighted.

    weights  a tensor of one dimension, with finite numbers of 0 or more, not all 0; on a GPU at most 2^30 of them.
             Their ratios give the probabilities; weights with nearly equal ratios give other draws. A weight of 0 is never
             drawn

    The table is made at once, on the device of the weights, and does not change with them. It has 8 bytes for each weight,
    with their number rounded up to a power of two; while a GPU makes it, it takes twice that more, and waits for the current stream.
    Each probability is off by less than 2^-60. docs/spec.md, "Weighted draws", defines the draws.

    The calls are no operators of torch. torch.jit.trace(), torch.export(), make_fx(), torch.func and torch.compile() fail: make
    the draws outside, or for torch.compile() in a function with torch.compiler.disable().

    n, device  the number of weights, and their device
    Errors: Invalid; OutOfMemory; DeviceError without libshuf-cuda or a GPU; those of torch for memory.
    """

    @advise_arguments
    def __init__(self, weights: torch.Tensor) -> None:
        values = _weights_of(weights)
        self.n, self.device = values.numel(), values.device
        self._table = fill.weight_table(values)

    @advise_arguments
    def draw(self, count: int, seed: int, epoch: int = 0, *, offset: int = 0, stride: int = 1) -> torch.Tensor:
        """The draws number offset, offset + stride, ... of a seed and an epoch, as a tensor of int64 on the table's device.
        Any draw can be the first. On a GPU the work is queued in the current stream, and a CUDA graph can capture it.

        count           of draws; all numbers of draws are below 2^62
        offset, stride  a rank of several takes offset=rank, stride=world
        """
        _refuse_recorders()
        number, first, step = u64("count", count), u64("offset", offset), u64("stride", stride)
        if number > fill.MOST:
            raise Invalid(f"count: {number}: expected at most 2^62")
        return fill.draws(self._table, self.n, self.device, seed, epoch, first, number, step)

    def __repr__(self) -> str:
        return f"shufd.torch.WeightTable(n={self.n}, device={str(self.device)!r})"


@advise_arguments
def weighted_sample(weights: torch.Tensor, count: int, seed: int, epoch: int = 0) -> torch.Tensor:
    """`count` different indices, in the order in which successive draws without replacement give them: those of
    shufd.local.weighted_sample(), as a tensor of int64 on the device of the weights.

    weights  as in WeightTable
    count    at most the number of weights above 0

    A GPU sorts a key for each weight. This takes 24 bytes for each, and waits for the current stream. docs/spec.md,
    "Weighted samples", defines the sample. Recorders, transforms and errors: as in WeightTable.
    """
    values = _weights_of(weights)
    number = u64("count", count)
    if number > values.numel():
        raise Invalid(f"count: {number}: expected at most {values.numel()}, the weights")
    return fill.weighted_sample(values, number, seed, epoch)
