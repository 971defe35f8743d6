# SPDX-License-Identifier: MIT
"""Uniform numbers of an interval [low, high): low + u (high - low) for u in [0, 1), with the same rounding in NumPy and
torch, on any device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._errors import Invalid


class Interval(NamedTuple):
    """Numbers of the type of the values. `last` is the number before `high`, or `low` if they are equal: the sum
    for the last u before 1 may round to `high`."""

    low: float
    width: float
    last: float


def interval(low: float, high: float, kind: np.dtype[Any]) -> Interval | None:
    """The interval for a type of NumPy; None for [0, 1). Fails with Invalid for a type of integers, and for limits that
    the type cannot hold."""
    if low == 0.0 and high == 1.0:
        return None
    if kind.kind == "u":
        raise Invalid(
            f"low: {low}, high: {high}: expected neither with dtype {kind}, which draws all integers of the type; "
            "for a range, use numpy.random.Generator(shufd.BitGenerator(seed)).integers(low, high)"
        )
    most = float(np.finfo(kind).max)
    for name, value in (("low", low), ("high", high)):
        if not -most <= value <= most:
            raise Invalid(f"{name}: {value}: expected a finite number of type {kind}")
    if not 0 <= high - low <= most:
        raise Invalid(f"high: {high}: expected at least low = {low}, and a finite difference of type {kind}")
    of = kind.type
    # The sum makes 0 of -0: the minimum of the two may be either.
    return Interval(float(of(low)) + 0.0, float(of(high - low)), float(np.nextafter(of(high), of(low))) + 0.0)


def scale(values: Any, to: Interval) -> None:
    """Moves numbers of [0, 1) in an array of NumPy or CuPy to the interval, in place."""
    kind = values.dtype.type
    values *= kind(to.width)
    values += kind(to.low)
    values.clip(None, kind(to.last), out=values)
