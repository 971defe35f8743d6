# SPDX-License-Identifier: MIT
"""The operators torch.ops.shufd.*, by which torch.compile, fake tensors and the modes of torch see a call as one step. They
write to their first argument and are private. Eager calls go to _torch_fill directly.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _torch_fill
from ._errors import Invalid

_NAMESPACE = "shufd"
_2_63, _2_64 = 2**63, 2**64


def _order(out: Any, n: int, seed: int, epoch: int, offset: int, stride: int, algorithm: str) -> None:
    _torch_fill.order(out, n, seed % _2_64, epoch % _2_64, offset, stride, algorithm)


def _numbers(out: Any, law: str, first: float, second: float, seed: int, stream: int, offset: int) -> None:
    _torch_fill.numbers(out, law, first, second, seed % _2_64, stream % _2_64, offset)


def _shuffle(out: Any, rows: Any, seed: int, epoch: int, inverse: bool, algorithm: str) -> None:
    _torch_fill.shuffle(out, rows, seed % _2_64, epoch % _2_64, inverse, algorithm)


def _look_up(out: Any, at: Any, n: int, seed: int, epoch: int, inverse: bool) -> None:
    _torch_fill.look_up(out, at, n, seed % _2_64, epoch % _2_64, inverse)


def _fake(*_: Any) -> None:
    """The shape and the type of the result are those of the tensor that the operator writes to."""


_OPERATORS = {
    "order(Tensor(a!) out, SymInt n, SymInt seed, SymInt epoch, SymInt offset, SymInt stride, str algorithm) -> ()": _order,
    "numbers(Tensor(a!) out, str law, float first, float second, SymInt seed, SymInt stream, SymInt offset) -> ()": _numbers,
    "shuffle(Tensor(a!) out, Tensor rows, SymInt seed, SymInt epoch, bool inverse, str algorithm) -> ()": _shuffle,
    "look_up(Tensor(a!) out, Tensor at, SymInt n, SymInt seed, SymInt epoch, bool inverse) -> ()": _look_up,
}


def _register() -> Any:
    library = torch.library.Library(_NAMESPACE, "DEF")
    for schema, function in _OPERATORS.items():
        library.define(schema)
        for key in ("CPU", "CUDA"):
            library.impl(schema.partition("(")[0], function, key)
        library.impl(schema.partition("(")[0], _fake, "Meta")
    return library


_library = _register()
ops: Any = torch.ops.shufd


def signed(name: str, number: Any) -> Any:
    """A number of 64 bits as an operator takes it. torch.compile may trace it, so its type is not checked here."""
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


def _check_transforms() -> None:
    if any(level.key() == _functorch.TransformType.Vmap for level in _functorch.get_interpreter_stack()):
        raise Invalid(
            "vmap: a call with a seed would give each element of the batch the same numbers; make them before vmap and pass "
            "them in"
        )


def is_plain(tensor: Any) -> bool:
    """Whether a tensor has memory of its own, which a kernel can write to."""
    return type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
