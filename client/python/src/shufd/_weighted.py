# SPDX-License-Identifier: MIT
"""Weighted draws, a function from numbers of draws to indices, and weighted samples without replacement."""

from __future__ import annotations

import copy
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _out
from ._arguments import seed_of, shown, u64
from ._dtype import NUMBERS, as_u64
from ._errors import Invalid
from ._in_process import check
from ._names import advise_arguments
from ._shuf import ffi, lib

Integers = npt.NDArray[np.int64]

_END = 1 << 62  # of the numbers of draws
_MOST = 1 << 32  # weights


def weight_array(weights: Any) -> npt.NDArray[Any]:
    """The weights as a new read-only array of float32, float64 or uint64. libshuf checks their values."""
    given = _arguments.array("weights", weights)
    if given.ndim != 1 or not 1 <= given.size <= _MOST:
        raise Invalid(f"weights: {shown(weights)}: expected one dimension with 1 to 2^32 numbers")
    if given.dtype.kind == "f":
        values = given.astype(np.float32 if given.itemsize <= 4 else np.float64, order="C")
    elif given.dtype.kind in "iub":
        values = as_u64("weights", given.astype(np.uint8) if given.dtype.kind == "b" else given)
        values = values.copy() if np.may_share_memory(values, given) else values
    else:
        raise Invalid(f"weights: type {given.dtype}: expected numbers")
    values.flags.writeable = False
    return values


def _type_of(values: npt.NDArray[Any]) -> int:
    """The type of such an array as libshuf takes it."""
    return NUMBERS[{4: "f32", 8: "f64"}[values.itemsize] if values.dtype.kind == "f" else "u64"]


class Weighted:
    """Weighted draws with replacement: a read-only sequence of indices that computes its values. Draw i is the index j with
    a probability in proportion to weights[j]. Immutable; pickles; any number of threads may use it.

    weights      1 to 2^32 finite numbers of 0 or more, not all 0; of these only the ratios matter. They are copied, as
                 float32, float64 or uint64. A weight of 0 is never drawn
    seed, epoch  each epoch has other draws

    weighted[i] is draw i, for i from 0 to 2^62 - 1, and weighted[a:b:c] an int64 array. There is no len(). A draw of a slice
    takes some nanoseconds, at any place. The table of the draws has 8 bytes for each weight, with their number rounded up to
    a power of two, beside the copy of the weights; a weight takes some tens of nanoseconds.

    With a weight for each class and a label for each record, pass class_weights[labels]. To draw each class c with the
    probability p[c], pass (p / numpy.bincount(labels))[labels].

    Each probability is off by less than 2^-60. Equal draws of two objects with one seed and epoch come from the same random
    word, so they are not independent. docs/spec.md, "Weighted draws", defines them. Errors: Invalid; OutOfMemory.
    """

    @advise_arguments
    def __init__(self, weights: Any, seed: int, epoch: int = 0) -> None:
        self.seed, self.epoch = seed_of(seed), u64("epoch", epoch)
        self.weights = weight_array(weights)
        out = ffi.new("shuf_weights **")
        check(lib.shufpy_weights_make(self.weights.ctypes.data, _type_of(self.weights), self.weights.size, out))
        self._table = ffi.gc(out[0], lib.shuf_weights_free)

    def with_epoch(self, epoch: int) -> Weighted:
        """The draws of another epoch, from the same table."""
        other = copy.copy(self)
        other.epoch = u64("epoch", epoch)
        return other

    def draw(self, offset: int, count: int, stride: int = 1, *, threads: int = 1) -> Integers:
        """The draws with the numbers offset, offset + stride, ..., `count` of them, as a new array."""
        first, number, step = u64("offset", offset), u64("count", count), u64("stride", stride)
        out: Integers = _out.new((number,), np.dtype(np.int64))
        check(lib.shufpy_weights_draw(
            self._table, self.seed, self.epoch, first, number, step, _out.threads_of(threads), out.ctypes.data
        ))  # fmt: skip
        return out

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            draws = range(*number.indices(_END))
            if draws.step < 0:
                return self.draw(draws[-1] if draws else 0, len(draws), -draws.step)[::-1].copy()
            return self.draw(draws.start, len(draws), draws.step)
        place = operator.index(number)
        if not -_END <= place < _END:
            raise IndexError(f"draw {place}: expected less than 2^62")
        return int(self.draw(place % _END, 1)[0])

    def __copy__(self) -> Weighted:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: Any) -> Weighted:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.weights, self.seed, self.epoch)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weighted):
            return NotImplemented
        return (self.seed, self.epoch) == (other.seed, other.epoch) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.seed, self.epoch, self.weights.size))

    def __repr__(self) -> str:
        weights = shown(self.weights.tolist() if self.weights.size < 100 else self.weights)
        return f"shufd.local.Weighted(weights={weights}, seed={self.seed}, epoch={self.epoch})"


def sample_of(weights: npt.NDArray[Any], count: int, seed: int, epoch: int) -> Integers:
    """weighted_sample() of a weight_array()."""
    out: Integers = _out.new((count,), np.dtype(np.int64))
    check(lib.shufpy_weights_sample(
        weights.ctypes.data, _type_of(weights), weights.size, seed, epoch, count, out.ctypes.data
    ))  # fmt: skip
    return out


@advise_arguments
def weighted_sample(weights: Any, count: int, seed: int, epoch: int = 0) -> Integers:
    """`count` different indices, in the order in which successive draws without replacement give them: each draw is one of
    the indices that are left, with a probability in proportion to its weight. A larger sample begins with the same indices.

    weights      as in Weighted
    count        at most the number of weights above 0; all of them is a weighted permutation
    seed, epoch  each epoch has another sample

    Returns an int64 array. Takes some tens of nanoseconds for each weight, and memory of 32 bytes for each index of the
    sample, beside a copy of the weights. docs/spec.md, "Weighted samples", defines it. Errors: Invalid; OutOfMemory.
    """
    return sample_of(weight_array(weights), u64("count", count), seed_of(seed), u64("epoch", epoch))
