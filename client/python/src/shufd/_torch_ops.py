# SPDX-License-Identifier: MIT
"""The operators torch.ops.shufd.*, by which torch.compile, fake tensors and the modes of torch see a call as one step. They
write to their first argument and are private. Eager calls go to _torch_fill directly.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from . import _torch_fill
from ._arguments import integer, u64
from ._errors import Invalid

_NAMESPACE = "shufd"
_2_63, _2_64 = 2**63, 2**64


def _check(is_right: Any, out: Any, expected: Any) -> None:
    if not is_right:
        raise Invalid(f"out: {out.dtype}, shape {tuple(out.shape)}, {out.device}: expected {expected}")


def _check_alike(out: Any, other: Any) -> None:
    _check(
        out.shape == other.shape and out.dtype == other.dtype and out.device == other.device, out,
        f"{other.dtype}, shape {tuple(other.shape)}, {other.device}",
    )  # fmt: skip


# ---- Checks of the operators: callers may be any code, and a kernel would write past the end. -----------------------


def _check_order(out: Any, n: int, seed: int, epoch: int, offset: int, count: int, stride: int, algorithm: str) -> None:
    _torch_fill.named(out.dtype, _torch_fill.ORDERS)
    _check(out.dim() == 1 and out.shape[0] == count, out, f"shape ({count},)")


def _check_numbers(
    out: Any, law: str, first: float, second: float, seed: int, stream: int, offset: int, bound: int = 0
) -> None:
    _torch_fill.check_type(law, out.dtype)


def _check_shuffle(out: Any, rows: Any, seed: int, epoch: int, inverse: bool, algorithm: str) -> None:
    if rows.dim() == 0:
        raise Invalid("tensor: shape (): expected at least one dimension")
    _check_alike(out, rows)


def _check_look_up(out: Any, at: Any, n: int, seed: int, epoch: int, inverse: bool) -> None:
    _check(out.dtype == torch.int64, out, "torch.int64")
    _check_alike(out, at)


# ---- Their work ----------------------------------------------------------------------------------


def _order(out: Any, n: int, seed: int, epoch: int, offset: int, count: int, stride: int, algorithm: str) -> None:
    _torch_fill.check_part(n, offset, count, stride)
    _torch_fill.order(out, n, seed % _2_64, epoch % _2_64, offset, stride, algorithm)


def _numbers(
    out: Any, law: str, first: float, second: float, seed: int, stream: int, offset: int, bound: int = 0
) -> None:
    _torch_fill.check_law(law, first, second)
    _torch_fill.numbers(out, law, first, second, seed % _2_64, stream % _2_64, u64("offset", offset), bound % _2_64)


def _shuffle(out: Any, rows: Any, seed: int, epoch: int, inverse: bool, algorithm: str) -> None:
    _torch_fill.shuffle(out, rows, seed % _2_64, epoch % _2_64, inverse, algorithm)


def _look_up(out: Any, at: Any, n: int, seed: int, epoch: int, inverse: bool) -> None:
    _torch_fill.look_up(out, at, u64("n", n), seed % _2_64, epoch % _2_64, inverse)


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
    library = torch.library.Library(_NAMESPACE, "DEF")
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


# ---- Which way a call goes ---------------------------------------------------------------------------

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


def is_traced() -> bool:
    """Whether torch.jit.trace() records the calls."""
    return _trace() is not None


def is_exported() -> bool:
    """Whether torch.export() or make_fx() records the calls."""
    recorder = sys.modules.get("torch.fx.experimental.proxy_tensor")
    mode = getattr(recorder, "get_proxy_mode", None) or getattr(recorder, "get_innermost_proxy_mode", None)
    return mode is not None and mode() is not None


def recorder() -> str:
    """What records the calls, or ""."""
    return "torch.jit.trace()" if is_traced() else "torch.export() or make_fx()" if is_exported() else ""


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
