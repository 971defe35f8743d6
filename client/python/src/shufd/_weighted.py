# SPDX-License-Identifier: MIT
"""Weighted draws, with and without replacement."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _in_process
from ._arguments import flag, optional, seed_of, shown, u64
from ._dtype import NUMBERS, as_u64
from ._errors import Invalid
from ._in_process import check, fingerprint
from ._names import advise_arguments
from ._order import END, Integers, Order
from ._shuf import ffi, lib

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


def sample_of(weights: npt.NDArray[Any], count: int, seed: int, epoch: int) -> Integers:
    """weighted_sample() of a weight_array()."""
    out: Integers = _in_process.new((count,), np.dtype(np.int64))
    check(lib.shufpy_weights_sample(
        weights.ctypes.data, _type_of(weights), weights.size, seed, epoch, count, out.ctypes.data
    ))  # fmt: skip
    return out


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Weighted(Order):
    """Weighted draws: an order, as Order describes it. Draw i is the index j with a probability in proportion to weights[j].

    weights      1 to 2^32 finite numbers of 0 or more, not all 0. Their ratios give the probabilities; weights
                 with nearly equal ratios, as after another rounding, give other draws. They are copied, as float32, float64
                 or uint64. A weight of 0 is never drawn
    seed, epoch  each epoch has other draws
    length       the number of draws; None: without end, or without replacement one for each weight above 0
    replacement  False: the draws are different indices, those of weighted_sample(). Then the first read computes all of them

    With replacement, a draw of a slice takes some nanoseconds, at any place. The table of the draws has 8 bytes for each weight,
    with their number rounded up to a power of two, beside the copy of the weights; a weight takes some tens of nanoseconds.

    With a weight for each class and a label for each record, pass class_weights[labels]. To draw each class c with the
    probability p[c], pass (p / numpy.bincount(labels))[labels].

    Each probability is off by less than 2^-60. Equal draws of two objects with one seed and epoch come from the same random
    word, so they are not independent. docs/spec.md, "Weighted draws", defines them. Errors: Invalid; OutOfMemory.
    """

    weights: npt.NDArray[Any]
    seed: int
    epoch: int
    length: int | None
    replacement: bool
    _fingerprint: str  # of the weights
    _table: Any  # with replacement
    _sample: Integers | None  # without, once it is computed
    algorithm = "weighted"
    __contains__ = None  # no look-up tells whether an index is drawn

    @advise_arguments
    def __init__(
        self, weights: Any, seed: int, epoch: int = 0, *, length: int | None = None, replacement: bool = True
    ) -> None:
        own = vars(self)
        own.update(seed=seed_of(seed), epoch=u64("epoch", epoch), replacement=flag("replacement", replacement))
        own.update(weights=weight_array(weights), length=optional("length", length), _table=None, _sample=None)
        own.update(n=self.weights.size, _fingerprint=fingerprint(self.weights))
        if self.replacement:
            own["_table"] = self._make_table()
        if self.length is not None and not 1 <= self.length < END:
            raise Invalid(f"length: {self.length}: expected 1 to 2^62 - 1")
        if not self.replacement:
            self._check_length()

    def _make_table(self) -> Any:
        out = ffi.new("shuf_weights **")
        check(lib.shufpy_weights_make(self.weights.ctypes.data, _type_of(self.weights), self.weights.size, out))
        return ffi.gc(out[0], lib.shuf_weights_free)

    def _check_length(self) -> None:
        """Checks the weights and the length without replacement."""
        sample_of(self.weights, 0, self.seed, 0)
        bits = self.weights.view(f"u{self.weights.itemsize}")  # a thread may flush subnormal floats
        most = int(np.count_nonzero(bits << 1 if self.weights.dtype.kind == "f" else bits))  # without the sign of -0
        if self.length is None:
            vars(self)["length"] = most
        elif self.length > most:
            raise Invalid(f"length: {self.length}: expected at most {most}, the weights above 0, without replacement")

    def with_epoch(self, epoch: int) -> Weighted:
        """The draws of another epoch, from the same table."""
        return self._with(epoch=u64("epoch", epoch), _sample=None)

    def range(self, offset: int, count: int, stride: int = 1, *, threads: int = 1) -> Integers:
        """As Order.range()."""
        first, number, step = self._checked(offset, count, stride)
        if not self.replacement:
            return self._drawn()[first:][: number * step : step or 1].copy()
        out: Integers = _in_process.new((number,), np.dtype(np.int64))
        team = _in_process.threads_of(threads)
        check(lib.shufpy_weights_draw(
            self._table, self.seed, self.epoch, first if number else 0, number, step or 1, team, out.ctypes.data
        ))  # fmt: skip
        return out

    def _drawn(self) -> Integers:
        drawn = self._sample
        if drawn is None:
            drawn = sample_of(self.weights, len(self), self.seed, self.epoch)
            vars(self)["_sample"] = drawn
        return drawn

    def _details(self) -> dict[str, Any]:
        return {**self._options(), "weights": self._fingerprint}

    def _options(self) -> dict[str, Any]:
        return {"length": self.length, "replacement": self.replacement}

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), **self._options()), (self.weights, self.seed, self.epoch)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weighted) or type(other) is not type(self):
            return NotImplemented
        mine, others = ((order.seed, order.epoch, order._options()) for order in (self, other))
        return mine == others and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.seed, self.epoch, self.n))

    def __repr__(self) -> str:
        weights = shown(self.weights.tolist() if self.n < 100 else self.weights)
        usual = {"length": None, "replacement": True}
        more = "".join(f", {name}={value}" for name, value in self._options().items() if value != usual[name])
        return f"shufd.local.Weighted(weights={weights}, seed={self.seed}, epoch={self.epoch}{more})"


@advise_arguments
def weighted_sample(weights: Any, count: int, seed: int, epoch: int = 0) -> Integers:
    """`count` different indices, in the order in which successive draws without replacement give them: each draw is one of
    the indices that are left, with a probability in proportion to its weight. A larger sample begins with the same indices.

    weights      as in Weighted; those below 2^-1000 of the largest count as equal, and some below 2^-999 too
    count        at most the number of weights above 0; all of them is a weighted permutation
    seed, epoch  each epoch has another sample. Samples of two sets of weights with one seed and epoch come from the same
                 random words, so they have many indices in common: take another seed for each

    Returns an int64 array. Takes some tens of nanoseconds for each weight, and memory of 32 bytes for each index of the
    sample, beside a copy of the weights. docs/spec.md, "Weighted samples", defines it. Errors: Invalid; OutOfMemory.
    """
    return sample_of(weight_array(weights), u64("count", count), seed_of(seed), u64("epoch", epoch))
