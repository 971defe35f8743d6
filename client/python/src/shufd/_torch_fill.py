# SPDX-License-Identifier: MIT
"""Fills tensors of torch in this process: host memory by the CPU's kernels, CUDA memory by a GPU's, in torch's current
stream. The values do not depend on the device, nor on the strides of the tensor: they are in the order of its indices.

These functions do not use torch's dispatcher for a contiguous tensor, because a dispatch takes longer than a small result.
torch.compile, fake tensors and the modes of torch see a call as one step: an operator of torch.ops.shufd.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import torch

from . import _in_process, _process, _request
from ._arguments import integer, seed_of, u64
from ._dtype import BY_NUMBER, NUMBERS
from ._errors import Invalid, renamed
from ._in_process import check, check_shuffle, workspace_bytes
from ._shuf import ffi, lib

_NAMES = {
    "i64": "int64", "u32": "uint32", "u64": "uint64", "f64": "float64", "f32": "float32", "f16": "float16",
    "bf16": "bfloat16",
}  # fmt: skip
_TYPES = {getattr(torch, name): NUMBERS[short] for short, name in _NAMES.items() if hasattr(torch, name)}
ORDERS = {of: _TYPES[of] for of in _TYPES if _TYPES[of] <= NUMBERS["i64"]} | {torch.int32: NUMBERS["u32"]}
NORMALS = {of: _TYPES[of] for of in _TYPES if _TYPES[of] >= NUMBERS["f64"]}
UNIFORMS = {of: NORMALS[of] for of in (torch.float64, torch.float32)}
WORDS = {of: _TYPES[of] for of in _TYPES if _TYPES[of] <= NUMBERS["u64"]} | {
    torch.int32: NUMBERS["u32"], torch.int64: NUMBERS["u64"],
}  # fmt: skip
TYPES = {  # of a law
    "uniform": UNIFORMS, "table": NORMALS, "box-muller": NORMALS, "exponential": UNIFORMS, "bits": WORDS, "integers": WORDS,
}  # fmt: skip

_MANY = 65_536  # values; fewer are computed by the calling thread alone
_ALIGNMENT = 16  # bytes, of CUDA memory
_2_63, _2_64 = 2**63, 2**64
MOST = 2**62  # values of a permutation

_empty, _threads = torch.empty, torch.get_num_threads


def _raw_stream() -> Any:
    """The function that returns the address of torch's current stream on a device."""
    fast = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda device: torch.cuda.current_stream(device).cuda_stream)


_stream = _raw_stream()


def named(kind: Any, allowed: Any) -> int:
    """The number of a type of torch."""
    number = allowed.get(kind)
    if number is None:
        names = ", ".join(str(of).removeprefix("torch.") for of in allowed)
        raise Invalid(f"dtype: {kind}: expected one of {names}")
    return int(number)


def _fits(tensor: Any) -> bool:
    """Whether the kernels can write to the tensor itself."""
    return bool(
        tensor.is_contiguous() and (tensor.is_cpu or tensor.data_ptr() % _ALIGNMENT == 0) and not tensor.is_neg()
    )


def _fresh(tensor: Any) -> Any:
    """A tensor that the kernels can write to, for a copy to or from this one."""
    return _empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _readable(tensor: Any) -> Any:
    """The tensor, or a copy that the kernels can read."""
    return tensor if _fits(tensor) else _fresh(tensor).copy_(tensor)


def _refuse_device(tensor: Any) -> Any:
    raise Invalid(f"device: {tensor.device}: expected cpu or cuda")


def _place_of(seed: Any, epoch: Any, name: str = "epoch") -> tuple[int, int]:
    """A seed and an epoch, or the number of a stream, as libshuf takes them."""
    if type(seed) is int and type(epoch) is int and 0 <= seed < _2_64 and 0 <= epoch < _2_64:
        return seed, epoch
    return seed_of(seed), u64(name, epoch)


def _alone(tensor: Any) -> Any:
    """The threads for a tensor in host memory."""
    return 1 if tensor.numel() < _MANY else _threads()


# ---- Permutations --------------------------------------------------------------------------------


def check_part(n: int, offset: int, count: int | None, stride: int) -> int:
    """The number of the values of a part of a permutation, by default of all from `offset` on."""
    if not 0 <= n <= MOST:
        raise Invalid(f"n: {n}: expected 0 to 2^62")
    if not 0 <= offset <= n:
        raise Invalid(f"offset: {offset}: expected 0 to n, which is {n}")
    if not 1 <= stride <= MOST:
        raise Invalid(f"stride: {stride}: expected 1 to 2^62")
    most = -((offset - n) // stride)
    count = most if count is None else count
    if not 0 <= count <= most:
        raise Invalid(f"count: {count}: expected 0 to {most}, the values of n {n} from offset {offset} with stride {stride}")
    return count


def order(
    out: Any, n: int, seed: Any, epoch: Any, offset: int = 0, stride: int = 1, algorithm: str = "primefold"
) -> None:
    """Writes the values of a permutation of [0, n) at offset, offset + stride, ... to a tensor."""
    dtype = ORDERS[out.dtype]
    if out.dtype is torch.int32 and n > 2**31:
        raise Invalid(f"n: {n}: expected at most 2^31 with dtype int32")
    seed, epoch = _place_of(seed, epoch)
    if not _fits(out):
        values = _fresh(out)
        order(values, n, seed, epoch, offset, stride, algorithm)
        out.copy_(values)
        return
    count = out.numel()
    if algorithm != "primefold":
        _order_by_request(out, n, seed, epoch, (offset, count, stride), algorithm)
    elif count == 0:
        return
    elif out.is_cpu:
        check(lib.shufpy_host_slice(
            n, seed, epoch, 0, 0, offset, count, stride, dtype, 1 if count < _MANY else _threads(), out.data_ptr(), count * out.element_size()
        ))  # fmt: skip
    elif out.is_cuda:
        check(lib.shufpy_cuda_slice(
            n, seed, epoch, offset, count, stride, dtype, _stream(out.get_device()), out.data_ptr(), count * out.element_size()
        ))  # fmt: skip
    else:
        _refuse_device(out)


def _order_by_request(out: Any, n: int, seed: int, epoch: int, part: tuple[int, int, int], algorithm: str) -> None:
    if out.numel() == 0:
        check_algorithm(algorithm)
        return
    whole = part == (0, n, 1)
    request = _request.permutation(
        max(n, 1), seed, None, epoch, None, _request._NO_SHARD, _request._NO_PART if whole else part, None, algorithm
    )
    request.permutation.dtype = ORDERS[out.dtype]
    size = out.numel() * out.element_size()
    if out.is_cpu:
        check(lib.shufpy_host_fill(request, _alone(out), out.data_ptr(), size))
    elif out.is_cuda:
        workspace = _workspace(request, out)
        check(lib.shufpy_cuda_fill(
            request, out.data_ptr(), size, workspace.data_ptr(), workspace.numel(), _stream(out.get_device())
        ))  # fmt: skip
    else:
        _refuse_device(out)


def _workspace(request: Any, out: Any) -> Any:
    """Device memory for the work of a request. torch gives it only to later work of the same stream."""
    return _empty(workspace_bytes(request), dtype=torch.uint8, device=out.device)


def check_algorithm(algorithm: str) -> None:
    _request.bytes_of(_request.whole(1, 0, None, 0, algorithm))


def look_up(out: Any, at: Any, n: int, seed: Any, epoch: Any, inverse: bool, is_signed: bool = True) -> None:
    """Writes the values at positions, or with `inverse` the positions of values, of a permutation by primefold. Both
    tensors are of int64, of one shape, on one device. Negative numbers are 2^63 or more if they are not signed."""
    seed, epoch = _place_of(seed, epoch)
    places, count = _readable(at), at.numel()
    result = out if _fits(out) else _fresh(out)
    if out.is_cpu:
        try:
            check(lib.shufpy_host_index(
                n, seed, epoch, 0, 0, inverse, _alone(out), places.data_ptr(), count, result.data_ptr()
            ))  # fmt: skip
        except Invalid as error:
            name = "values" if inverse else "positions"
            if is_signed and count and int(places.min()) < 0:
                raise Invalid(f"{name}: {int(places.min())}: expected 0 to n - 1, which is {n - 1}") from None
            raise renamed(error, at=name) from None
    elif out.is_cuda:
        check(lib.shufpy_cuda_index(
            n, seed, epoch, inverse, NUMBERS["u64"], _stream(out.get_device()), places.data_ptr(), count,
            result.data_ptr(),
        ))  # fmt: skip
    else:
        _refuse_device(out)
    if result is not out:
        out.copy_(result)


def shuffle(out: Any, rows: Any, seed: Any, epoch: Any, inverse: bool, algorithm: str = "primefold") -> None:
    """Writes the rows of a tensor in the order of a permutation to a tensor of the same shape, type and device."""
    seed, epoch = _place_of(seed, epoch)
    count, size = len(rows), rows.numel() * rows.element_size()
    if size == 0:
        _request.bytes_of(_request.whole(1, seed, None, epoch, algorithm))  # checks the arguments
        return
    request = _request.records(count, size // count, seed, None, epoch, inverse, algorithm)
    source, result = _readable(rows.resolve_conj()), out if _fits(out) and not out.is_conj() else _fresh(out)
    records = ffi.addressof(request, "records")
    if out.is_cpu:
        threads = 1 if size < 8 * _MANY else _threads()
        check_shuffle("tensor", lib.shufpy_host_shuffle(records, threads, source.data_ptr(), result.data_ptr(), size))
    elif out.is_cuda:
        workspace = _workspace(request, out)
        check_shuffle("tensor", lib.shufpy_cuda_shuffle(
            records, source.data_ptr(), result.data_ptr(), size, workspace.data_ptr(), workspace.numel(),
            _stream(out.get_device()),
        ))  # fmt: skip
    else:
        _refuse_device(out)
    if result is not out:
        out.copy_(result)


# ---- Random numbers ------------------------------------------------------------------------------


def numbers(
    out: Any, law: str, first: float, second: float, seed: Any, stream: Any, offset: Any, bound: int = 0
) -> None:
    """Writes the numbers offset, offset + 1, ... of a stream to a tensor. `law` is the method of a normal law with the
    mean `first` and the standard deviation `second`, "uniform" for the interval [first, second), "exponential" with the
    rate `first`, "bits" with the probability `first`, or "integers" below `bound`."""
    seed, stream = _place_of(seed, stream, "stream")
    if not _fits(out):
        values = _fresh(out)
        numbers(values, law, first, second, seed, stream, offset, bound)
        out.copy_(values)
        return
    count, dtype = out.numel(), TYPES[law][out.dtype]
    distribution, method = _request.LAWS[law][:2]
    mean, std = _moments(law, first, second)
    if law == "integers":
        _check_bound(bound, out.dtype)
    to = interval(first, second, out.dtype) if law == "uniform" and (first != 0.0 or second != 1.0) else None
    if count == 0:
        _request.bytes_of(_request.numbers(law, seed, None, stream, offset, 1, dtype, mean, std, bound))
    elif out.is_cpu:
        check(lib.shufpy_host_numbers(
            distribution, seed, stream, offset, count, mean, std, bound, dtype, method,
            1 if count < _MANY else _threads(), out.data_ptr(), count * out.element_size(),
        ))  # fmt: skip
    elif out.is_cuda:
        check(lib.shufpy_cuda_numbers(
            distribution, seed, stream, offset, count, mean, std, bound, dtype, method, _stream(out.get_device()),
            out.data_ptr(), count * out.element_size(),
        ))  # fmt: skip
    else:
        _refuse_device(out)
    if to is not None:
        _scale(out.detach(), to)


def _moments(law: str, first: float, second: float) -> tuple[float, float]:
    """The mean and the standard deviation of a request."""
    if law == "uniform":
        return 0.0, 0.0
    return (1.0 / first if law == "exponential" else first), second


def _check_bound(bound: int, kind: Any) -> None:
    """Fails with Invalid if a signed type does not hold all integers below a bound."""
    bits = {torch.int32: 31, torch.int64: 63}.get(kind)
    if bits is not None and bound > 2**bits:
        raise Invalid(f"bound: {bound}: expected 1 to 2^{bits} with dtype {kind}")


@functools.lru_cache(maxsize=256)
def interval(low: float, high: float, kind: Any) -> Any:
    """The interval for a type of torch, as NumPy rounds it."""
    return _in_process.interval(low, high, BY_NUMBER[UNIFORMS[kind]])


def _scale(values: Any, to: Any) -> None:
    """As _in_process.scale(): the same operations, each with one rounding. In a child of fork(), torch's own operators would
    wait for a team of threads of the parent."""
    if values.is_cpu and _process.generation:
        _in_process.scale(values.numpy(), to)
        return
    values.mul_(to.width).add_(to.low).clamp_(max=to.last)


def check_numbers(law: str, first: float, second: float, kind: Any, bound: int) -> None:
    """Checks a law for a type of torch as numbers() does, without a tensor."""
    if law == "uniform":
        interval(first, second, kind)
    else:
        mean, std = _moments(law, first, second)
        _check_bound(bound, kind)
        _request.bytes_of(_request.numbers(law, 0, None, 0, 0, 1, TYPES[law][kind], mean, std, bound))


def check_law(law: str, first: float, second: float) -> None:
    """Fails with Invalid for arguments whose names libshuf does not know."""
    if law == "exponential":
        if not 2.0**-100 <= first <= 2.0**100:
            raise Invalid(f"lambd: {first}: expected 2^-100 to 2^100")
    elif law == "bits":
        if not 0.0 <= first <= 1.0:
            raise Invalid(f"p: {first}: expected 0 to 1")
    elif law not in ("uniform", "integers") and (second == 0.0 or not math.isfinite(first + second)):
        raise Invalid(f"mean: {first}, std: {second}: expected finite numbers, and a std of 2^-100 to 2^100")


def check_type(law: str, kind: Any) -> None:
    """Fails with Invalid if a law is unknown, or does not have numbers of a type of torch."""
    if law not in TYPES:
        raise Invalid(f"law: {law!r}: expected one of {', '.join(TYPES)}")
    named(kind, TYPES[law])


# ---- Weighted draws ------------------------------------------------------------------------------


def _weight_type(weights: Any) -> int:
    """The type of a tensor of float64, float32 or int64, which has no negative number, as libshuf takes it."""
    return {torch.float64: NUMBERS["f64"], torch.float32: NUMBERS["f32"]}.get(weights.dtype, NUMBERS["u64"])


def _room(size_of: Any, weights: Any) -> Any:
    """Device memory for the work on weights."""
    size = ffi.new("size_t *")
    with torch.cuda.device(weights.device):
        check(size_of(weights.numel(), size))
    return _empty(size[0], dtype=torch.uint8, device=weights.device)


def weight_table(weights: Any) -> Any:
    """The table of weighted draws: for CUDA memory a tensor, else an object of libshuf."""
    values = _readable(weights)
    count, kind = values.numel(), _weight_type(values)
    if values.is_cpu:
        made = ffi.new("shuf_weights **")
        check(lib.shufpy_weights_make(values.data_ptr(), kind, count, made))
        return ffi.gc(made[0], lib.shuf_weights_free)
    room = _room(lib.shufpy_cuda_weights_workspace, values)
    table = _empty(1 << (count - 1).bit_length(), dtype=torch.int64, device=values.device)
    check(lib.shufpy_cuda_weights_make(
        values.data_ptr(), kind, count, table.data_ptr(), 8 * table.numel(), room.data_ptr(), room.numel(),
        _stream(values.get_device()),
    ))  # fmt: skip
    return table


def draws(
    table: Any, weights: int, device: Any, seed: Any, epoch: Any, offset: int, count: int, stride: int
) -> Any:
    """The draws number offset, offset + stride, ... from a table of so many weights."""
    place = *_place_of(seed, epoch), offset, count, stride
    out = _empty(max(count, 1), dtype=torch.int64, device=device)  # libshuf takes no null pointer
    if out.is_cpu:
        check(lib.shufpy_weights_draw(table, *place, _alone(out), out.data_ptr()))
    else:
        check(lib.shufpy_cuda_weights_draw(
            table.data_ptr(), weights, *place, out.data_ptr(), _stream(out.get_device())
        ))  # fmt: skip
    return out[:count]


def weighted_sample(weights: Any, count: int, seed: Any, epoch: Any) -> Any:
    """`count` indices without replacement."""
    seed, epoch = _place_of(seed, epoch)
    values = _readable(weights)
    out = _empty(max(count, 1), dtype=torch.int64, device=values.device)  # libshuf takes no null pointer
    place = values.data_ptr(), _weight_type(values), values.numel(), seed, epoch, count, out.data_ptr()
    if values.is_cpu:
        check(lib.shufpy_weights_sample(*place))
    else:
        room = _room(lib.shufpy_cuda_weights_sample_workspace, values)
        check(lib.shufpy_cuda_weights_sample(*place, room.data_ptr(), room.numel(), _stream(values.get_device())))
    return out[:count]


# ---- Operators, which write to their first argument and are private ------------------------------


def _check(is_right: Any, out: Any, expected: Any) -> None:
    if not is_right:
        raise Invalid(f"out: {out.dtype}, shape {tuple(out.shape)}, {out.device}: expected {expected}")


def _check_alike(out: Any, other: Any) -> None:
    _check(
        out.shape == other.shape and out.dtype == other.dtype and out.device == other.device, out,
        f"{other.dtype}, shape {tuple(other.shape)}, {other.device}",
    )  # fmt: skip


# Callers may be any code, and a kernel would write past the end.
def _check_order(out: Any, n: int, seed: int, epoch: int, offset: int, count: int, stride: int, algorithm: str) -> None:
    named(out.dtype, ORDERS)
    _check(out.dim() == 1 and out.shape[0] == count, out, f"shape ({count},)")


def _check_numbers(
    out: Any, law: str, first: float, second: float, seed: int, stream: int, offset: int, bound: int = 0
) -> None:
    check_type(law, out.dtype)


def _check_shuffle(out: Any, rows: Any, seed: int, epoch: int, inverse: bool, algorithm: str) -> None:
    if rows.dim() == 0:
        raise Invalid("tensor: shape (): expected at least one dimension")
    _check_alike(out, rows)


def _check_look_up(out: Any, at: Any, n: int, seed: int, epoch: int, inverse: bool) -> None:
    _check(out.dtype == torch.int64, out, "torch.int64")
    _check_alike(out, at)


def _order(out: Any, n: int, seed: int, epoch: int, offset: int, count: int, stride: int, algorithm: str) -> None:
    check_part(n, offset, count, stride)
    order(out, n, seed % _2_64, epoch % _2_64, offset, stride, algorithm)


def _numbers(
    out: Any, law: str, first: float, second: float, seed: int, stream: int, offset: int, bound: int = 0
) -> None:
    check_law(law, first, second)
    numbers(out, law, first, second, seed % _2_64, stream % _2_64, u64("offset", offset), bound % _2_64)


def _shuffle(out: Any, rows: Any, seed: int, epoch: int, inverse: bool, algorithm: str) -> None:
    shuffle(out, rows, seed % _2_64, epoch % _2_64, inverse, algorithm)


def _look_up(out: Any, at: Any, n: int, seed: int, epoch: int, inverse: bool) -> None:
    look_up(out, at, u64("n", n), seed % _2_64, epoch % _2_64, inverse)


_OPERATORS = (  # the schema, the check, the work
    (
        "order(Tensor(a!) out, SymInt n, SymInt seed, SymInt epoch, SymInt offset, SymInt count, SymInt stride, "
        "str algorithm) -> ()", _check_order, _order,
    ),
    (
        "numbers(Tensor(a!) out, str law, float first, float second, SymInt seed, SymInt stream, SymInt offset, "
        "SymInt bound=0) -> ()", _check_numbers, _numbers,
    ),
    (
        "shuffle(Tensor(a!) out, Tensor rows, SymInt seed, SymInt epoch, bool inverse, str algorithm) -> ()",
        _check_shuffle, _shuffle,
    ),
    (
        "look_up(Tensor(a!) out, Tensor at, SymInt n, SymInt seed, SymInt epoch, bool inverse) -> ()",
        _check_look_up, _look_up,
    ),
)  # fmt: skip


def _checked(check: Any, work: Any) -> Any:
    def operator(*arguments: Any) -> None:
        check(*arguments)
        work(*arguments)

    return operator


def _register() -> Any:
    library = torch.library.Library("shufd", "DEF")
    for schema, check, work in _OPERATORS:
        name = schema.partition("(")[0]
        library.define(schema)
        for key in ("CPU", "CUDA"):
            library.impl(name, _checked(check, work), key)
        library.impl(name, check, "Meta")
    return library


_library = _register()
ops: Any = torch.ops.shufd


_symbol: Any = getattr(torch, "SymInt", int)


def signed(name: str, number: Any) -> Any:
    """A number of 64 bits as an operator takes it. torch.compile may trace it, so its type is not checked then."""
    if type(number) is not int and not is_compiling() and not isinstance(number, _symbol):
        number = integer(name, number)
    if not (0 <= number < _2_64 or (name == "seed" and -_2_63 <= number < 0)):
        raise Invalid(f"{name}: {number}: expected 0 to 2^64 - 1")
    return number if number < _2_63 else number - _2_64


# ---- Which way a call goes -----------------------------------------------------------------------

_functorch: Any = getattr(torch._C, "_functorch", None)


def _none() -> Any:
    """In place of a function that this version of torch lacks, with the feature."""
    return None


is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", _none)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", _none)
_transform = getattr(_functorch, "peek_interpreter_stack", _none)
_trace = getattr(torch._C, "_get_tracing_state", _none)
_forward_ad: Any = getattr(torch.autograd, "forward_ad", None)


def must_dispatch() -> bool:
    """Whether torch.compile, torch.jit.trace(), a mode such as FakeTensorMode, or a transform of torch.func has to see the
    call. Fails with Invalid under vmap."""
    if is_compiling():
        return True
    if _transform() is not None:
        _check_transforms()
        return True
    return bool(_modes()) or _trace() is not None


def recorder() -> str:
    """What records the calls, or ""."""
    if _trace() is not None:
        return "torch.jit.trace()"
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
    mode = getattr(proxies, "get_proxy_mode", None) or getattr(proxies, "get_innermost_proxy_mode", None)
    return "torch.export() or make_fx()" if mode is not None and mode() is not None else ""


def is_transformed() -> bool:
    """Whether a transform of torch.func follows the calls."""
    return _transform() is not None


def has_tangent(tensor: Any) -> bool:
    """Whether forward-mode differentiation follows a tensor, or may follow it under torch.compile and torch.func."""
    if _forward_ad is None or _forward_ad._current_level < 0:
        return False
    return is_compiling() or _transform() is not None or _forward_ad.unpack_dual(tensor).tangent is not None


def _check_transforms() -> None:
    if any(level.key() == _functorch.TransformType.Vmap for level in _functorch.get_interpreter_stack()):
        refuse_vmap()


def refuse_vmap() -> None:
    raise Invalid(
        "vmap: a call with a seed would give each element of the batch the same numbers; make them before vmap and pass "
        "them in; jacrev(), jacfwd() and jacobian(vectorize=True) use vmap, too: instead of a shuffle, index by an order that "
        "randperm() made before"
    )


_is_batched: Any = getattr(_functorch, "is_legacy_batchedtensor", None)


def refuse_batched(tensor: Any) -> None:
    """The gradients of jacobian(vectorize=True) are batched without a transform of torch.func."""
    if _is_batched is not None and _is_batched(tensor):
        refuse_vmap()


def is_plain(tensor: Any) -> bool:
    """Whether a tensor has memory of its own, which a kernel can write to."""
    return type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
