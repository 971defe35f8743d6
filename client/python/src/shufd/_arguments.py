# SPDX-License-Identifier: MIT
"""Arguments of Python: their types, and their text in messages. libshuf checks the ranges of numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._errors import Invalid, OutOfMemory

_MOST_SHOWN = 80  # characters
_RANGES = {"n": "1 to 2^62", "offset": "0 to 2^62 - 1"}  # of u64(); others have all 64 bits


def _shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, () for anything else. The shape of a class such as numpy.int32 is no tuple."""
    shape = getattr(value, "shape", ())
    return tuple(shape) if isinstance(shape, tuple) else ()


def shown(value: Any) -> str:
    """A value in a message, which is one line."""
    if shape := _shape_of(value):
        return f"{type(value).__name__} of shape {shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def counted(count: int, noun: str) -> str:
    """A number of things in a message: "1 row", "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def integer(name: str, value: Any) -> int:
    """The value as a plain integer of any size. The caller's object may be a boolean or a tensor that changes."""
    try:
        return int(operator.index(value))
    except TypeError:
        convert = "; convert it with int()" if isinstance(value, (str, float)) else ""
        raise Invalid(f"{name}: {shown(value)}: expected an integer{convert}") from None


def optional(name: str, value: Any) -> int | None:
    """The value as a plain integer, or None."""
    return None if value is None else integer(name, value)


def u64(name: str, value: Any) -> int:
    """The value as an integer that fits 64 bits."""
    number = integer(name, value)
    if not 0 <= number < 2**64:
        raise Invalid(f"{name}: {number}: expected {_RANGES.get(name, '0 to 2^64 - 1')}")
    return number


def seed_of(value: Any) -> int:
    """A seed as an integer of 0 to 2^64 - 1. A negative one, from -2^63 on, has the same 64 bits, as in torch."""
    number = integer("seed", value)
    if not -(2**63) <= number < 2**64:
        raise Invalid(f"seed: {number}: expected 0 to 2^64 - 1, or a negative number from -2^63 on")
    return number % 2**64


def flag(name: str, value: Any) -> bool:
    """The value as a boolean."""
    if not isinstance(value, (bool, np.bool_)):
        raise Invalid(f"{name}: {shown(value)}: expected True or False")
    return bool(value)


def real(name: str, value: Any) -> float:
    """The value as a number. Arrays are refused, because all values of a call have one law."""
    if _shape_of(value):
        raise Invalid(f"{name}: {shown(value)}: expected a number; apply an array to the result")
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Invalid(f"{name}: {shown(value)}: expected a number") from None


def shape(size: Any) -> tuple[int, ...]:
    """The shape of a result: () for None."""
    if size is None:
        return ()
    lengths = _lengths(size)
    if any(length < 0 for length in lengths):
        raise Invalid(f"size: {shown(size)}: expected 0 or more")
    return lengths


def _lengths(size: Any) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, size)) if np.iterable(size) else (operator.index(size),)
    except TypeError:
        raise Invalid(f"size: {shown(size)}: expected an integer, a shape of integers, or None") from None


def no_room(name: str, value: Any) -> OutOfMemory:
    given = shown(value) if _shape_of(value) else type(value).__name__
    return OutOfMemory(f"{name}: {given}: a copy does not fit the memory of this process")


def array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """The value as an array of NumPy. An array with a mask is refused, because the mask would be lost."""
    if isinstance(value, np.ma.MaskedArray):
        raise Invalid(f"{name}: it has a mask; expected an array without one: pass {name}.data and {name}.mask")
    try:
        return np.asarray(value)
    except MemoryError:
        raise no_room(name, value) from None
    except (TypeError, ValueError, RuntimeError) as error:  # a tensor on a GPU, with a gradient, or of bfloat16
        raise Invalid(f"{name}: {type(value).__name__}: expected an array that NumPy takes: {error}") from None


def contiguous(name: str, array: np.ndarray[Any, Any], kind: Any = None) -> np.ndarray[Any, Any]:
    """The array, or a copy that is C-contiguous and of this type."""
    try:
        return np.ascontiguousarray(array, kind).reshape(array.shape)
    except MemoryError:
        raise no_room(name, array) from None


def copied(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of the array."""
    try:
        return array.copy()
    except MemoryError:
        raise no_room(name, array) from None


def is_below(value: Any, end: int) -> bool:
    """Whether a value is one of the integers 0, 1, ..., end - 1."""
    try:
        return bool(0 <= value < end) and bool(value == int(value))
    except (TypeError, ValueError):
        return False
