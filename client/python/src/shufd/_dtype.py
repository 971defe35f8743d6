# SPDX-License-Identifier: MIT
"""The types of values: names of libshuf, NumPy's types, numbers of shuf_dtype.h."""

from __future__ import annotations

import difflib
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments
from ._errors import Invalid


@functools.cache
def _bfloat16() -> Any:
    """NumPy has no bfloat16. ml_dtypes, which JAX installs, adds it; else the bits are uint16."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


NUMBERS = {"u32": 1, "u64": 2, "i64": 3, "f64": 4, "f32": 5, "f16": 6, "bf16": 7}
_TYPES: dict[str, Any] = {
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "i64": np.dtype(np.int64),
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
}
BY_NUMBER: dict[int, Any] = {NUMBERS[name]: dtype for name, dtype in _TYPES.items()}
_ALIASES: dict[Any, int] = {"bf16": 7, "bfloat16": 7, "fp64": 4, "fp32": 5, "fp16": 6}
# Texts with a module, such as "torch.float". "float" alone has NumPy's meaning, f64, and so needs no row.
_ALIASES |= {"torch.float": 5, "single": 5, "double": 4, "half": 6, "long": 3}
for _name, _dtype in _TYPES.items():
    for _alias in (_name, _dtype, _dtype.name, _dtype.type):
        _ALIASES[_alias] = NUMBERS[_name]


PERMUTATION = ("u32", "u64", "i64")
OF_64_BITS = (0, NUMBERS["f64"], NUMBERS["u64"])  # 0: no dtype is given, which means f64


def _find(dtype: Any) -> int:
    """The number of a type, 0 for one that is not in the table."""
    try:
        return _ALIASES[dtype]
    except (KeyError, TypeError):
        pass
    name = str(dtype).rpartition(".")[2]  # torch.int64
    try:
        return _ALIASES.get(name) or _ALIASES[np.dtype(dtype)]
    except (KeyError, TypeError):
        return 0


def _meant(dtype: Any, allowed: tuple[str, ...]) -> str:
    """A question about the allowed type with a similar name; "" if there is none."""
    given = dtype.__name__ if isinstance(dtype, type) else str(dtype).rpartition(".")[2]
    names = ["bfloat16" if name == "bf16" else _TYPES[name].name for name in allowed]
    if given == "int32" and "i64" in allowed:  # signed, and torch takes it
        return "; did you mean int64?"
    similar = difflib.get_close_matches(given, names, 1, 0.82)
    return f"; did you mean {similar[0]}?" if similar else ""


def number_of(dtype: Any, allowed: tuple[str, ...]) -> int:
    """The number of a type; 0, which selects the default, for None. Accepts names ("u32", "uint32"),
    NumPy's types and torch's (`torch.int64`)."""
    if dtype is None:
        return 0
    number = _find(dtype)
    if number not in (NUMBERS[name] for name in allowed):
        raise Invalid(f"dtype: {_arguments.shown(dtype)}: expected one of {', '.join(allowed)}{_meant(dtype, allowed)}")
    return number


def number_of_out(out: Any, default: str | None, allowed: tuple[str, ...]) -> int:
    """The number of the type of the values if the caller gives none: that of `out`, or the default."""
    kind = getattr(out, "dtype", None)
    if kind is None:
        return number_of(default, allowed)
    number = _find(kind)
    if number not in (NUMBERS[name] for name in allowed):
        names = ["bfloat16" if name == "bf16" else str(_TYPES[name]) for name in allowed]
        raise Invalid(f"out: type {kind}: expected {', '.join(names[:-1])} or {names[-1]} in native byte order")
    return number


def numpy_of(number: int) -> Any:
    """NumPy's type of a stream; 0 is f64. bf16 is ml_dtypes' type, or uint16 without ml_dtypes."""
    return BY_NUMBER[number or NUMBERS["f64"]] if number != NUMBERS["bf16"] else _bfloat16()


def as_u64(name: str, values: npt.ArrayLike, expected: str = "0 or more") -> npt.NDArray[np.uint64]:
    """Integers of any type as a contiguous uint64 array. Fails with Invalid for anything else."""
    array = _arguments.array(name, values)
    if array.size == 0:
        return np.empty(array.shape, np.uint64)
    if array.dtype.kind not in "iu":
        raise Invalid(f"{name}: type {array.dtype}: expected integers")
    if array.dtype.kind == "i" and array.min() < 0:
        place = ", ".join(str(i) for i in np.unravel_index(int(np.argmax(array < 0)), array.shape))
        raise Invalid(f"{name}{f'[{place}]' if place else ''}: {array[array < 0][0]}: expected {expected}")
    return _arguments.contiguous(name, array, np.uint64)
