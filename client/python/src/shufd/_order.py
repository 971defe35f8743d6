# SPDX-License-Identifier: MIT
"""Orders: sequences of records that are computed from their arguments. Samplers take any of them."""

from __future__ import annotations

import abc
import operator
from typing import Any, Iterator, TypeVar

import numpy as np
import numpy.typing as npt

from ._arguments import u64
from ._errors import Invalid

Integers = npt.NDArray[np.int64]
_Order = TypeVar("_Order", bound="Order")

END = 1 << 62  # positions of an order without end
_CHUNK = 8192  # records that an iteration computes at once


class Order(abc.ABC):
    """A read-only sequence of records that computes its elements: Permutation, its subset(), Weighted and Mixture.

    n        all records are integers below n
    seed, epoch
             select one of the orders with the same other arguments
    length   the number of positions, as len(). None: 2^62 positions, and len() fails

    order[i] is the record at position i, and order[a:b:c] an int64 array. Any position comes at once, so rank r of w reads
    order[r::w], or from position p on order.range(p + r, count, w). Orders are values: immutable, equal to orders of the same
    arguments, and pickled with these. Any number of threads may use one.

    A Permutation and its subset() also have inverse_index(), the position of a record. A Mixture is one run, and has only
    epoch 0. The states of samplers name `algorithm`, so a subclass with other records sets another one. Errors: Invalid;
    IndexError for a single position; OutOfMemory.
    """

    n: int
    seed: int
    epoch: int
    length: int | None
    algorithm: str
    chunk: Any = None
    window: int | None = None

    @abc.abstractmethod
    def range(self, offset: int, count: int, stride: int = 1) -> npt.NDArray[Any]:
        """The records at the positions offset, offset + stride, ..., `count` of them, as a new int64 array. After its end, a
        permutation or subset begins again; other orders fail with Invalid."""

    def with_epoch(self: _Order, epoch: int) -> _Order:
        """The same order in another epoch."""
        return self._with(epoch=u64("epoch", epoch))

    def chunks(self, offset: int, count: int, stride: int = 1) -> npt.NDArray[Any]:
        """The numbers of the chunks that hold the records of range(offset, count, stride), up to the end of the order, without
        repetition, in the order in which a reader first needs them. Only of a windowed order."""
        if self.chunk is None:
            raise Invalid("chunk: None: expected a windowed order")
        first, number, step = u64("offset", offset), u64("count", count), u64("stride", stride)
        if step == 0:
            raise Invalid("stride: 0: expected 1 or more")
        return self._needed(first, min(number, max(0, -((first - self._end) // step))), step)

    def _needed(self, offset: int, count: int, stride: int) -> npt.NDArray[Any]:
        """chunks() of positions below the end."""
        raise NotImplementedError

    def _details(self) -> dict[str, Any]:
        """Plain values that tell the order from others of its algorithm, n, seed, chunk, window and epoch."""
        return {}

    def _with(self: _Order, **changes: Any) -> _Order:
        """A copy with other attributes, without the checks of the constructor."""
        other = object.__new__(type(self))
        vars(other).update({**vars(self), **changes})
        return other

    @property
    def _end(self) -> int:
        return END if self.length is None else self.length

    def _checked(self, offset: int, count: int, stride: int) -> tuple[int, int, int]:
        """Arguments of range() of an order that does not begin again behind its end."""
        first, number, step = u64("offset", offset), u64("count", count), u64("stride", stride)
        if number and (step == 0 or first >= self._end or number - 1 > (self._end - 1 - first) // step):
            raise Invalid(
                f"offset: {first}, count {number}, stride {step}: expected positions below {self._end}, and a stride of 1 or more"
            )
        return first, number, step

    # ---- A sequence ----

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("an order without end has no len(); pass length=")
        return self.length

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, position: Any) -> Any:
        if not isinstance(position, slice):
            place = operator.index(position)
            if not -self._end <= place < self._end:
                raise IndexError(f"position {place}: expected less than the length, which is {self._end}")
            return int(self.range(place % self._end, 1)[0])
        at = range(*position.indices(self._end))
        if len(at) < 2:  # a step of any size
            return self.range(at[0] if at else 0, len(at))
        if at.step < 0:
            return self.range(at[-1], len(at), -at.step)[::-1].copy()
        return self.range(at.start, len(at), at.step)

    def __iter__(self) -> Iterator[int]:
        for first in range(0, self._end, _CHUNK):
            values: Any = self.range(first, min(_CHUNK, self._end - first))
            yield from values.tolist()

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype)

    def __copy__(self: _Order) -> _Order:
        return self

    def __deepcopy__(self: _Order, memo: Any) -> _Order:
        return self
