# SPDX-License-Identifier: MIT
"""The order of some records of a permutation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _arguments
from ._arguments import shown
from ._dtype import as_u64
from ._errors import Invalid
from ._in_process import fingerprint
from ._order import Order

if TYPE_CHECKING:
    from .local import Permutation


_CHUNKS = 1 << 24  # of an order with sizes of its own
_BLOCK = 1 << 16  # records that are looked up at once, without an array of all


def _kept_records(kept: Any, n: int) -> npt.NDArray[Any]:
    """Ascending records below n, from themselves or from a mask, as a new read-only array."""
    given = _arguments.array("kept", kept)
    if given.ndim != 1 or (given.dtype == bool and given.size != n):
        raise Invalid(f"kept: {shown(kept)}: expected records in one dimension, or a mask of {n} booleans")
    kind = np.dtype(np.uint32 if n <= 2**32 else np.uint64)
    records = _of_mask(given, kind) if given.dtype == bool else _ascending(as_u64("kept", given), n).astype(kind)
    if records.size == 0:
        raise Invalid(f"kept: {shown(kept)}: expected at least one record")
    records.flags.writeable = False
    return records


def _of_mask(mask: npt.NDArray[np.bool_], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """numpy.flatnonzero() as this type, without its array of int64."""
    records, done = np.empty(np.count_nonzero(mask), kind), 0
    for first in range(0, mask.size, _BLOCK):
        part = np.flatnonzero(mask[first : first + _BLOCK]) + first
        records[done : done + part.size] = part
        done += part.size
    return records


def _ascending(records: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The records, if they ascend and are below n."""
    if (unsorted := np.flatnonzero(records[1:] <= records[:-1])).size:
        i = int(unsorted[0]) + 1
        raise Invalid(
            f"kept[{i}]: {records[i]} after {records[i - 1]}: expected records in ascending order, each once: pass "
            "numpy.unique(kept), or a mask of booleans"
        )
    if records.size and int(records[-1]) >= n:
        i = int(np.searchsorted(records, np.uint64(n)))
        raise Invalid(f"kept[{i}]: {records[i]}: expected a record below n, which is {n}")
    return records


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Subset(Order):
    """The order of some records of a permutation, without gaps: kept[Permutation(len(kept), seed, epoch)]. An order, as Order
    describes it, in which each kept record stands once. That of a windowed order has windows over the same chunks, with the
    kept records of each, and without the chunks that have none.

    order  the Permutation of all records; Permutation.subset(kept) is this class
    kept   different records in ascending order, or a mask of n booleans. They are copied, with 4 bytes for each record, or 8 if n
           is above 2^32
    """

    order: Permutation
    kept: npt.NDArray[Any]
    _fingerprint: str  # of `kept`
    _places: Permutation  # of [0, len(kept))
    _chunks: Any  # the numbers of those with kept records, of a windowed order, else None
    algorithm = "primefold"

    def __init__(self, order: Permutation, kept: npt.ArrayLike) -> None:
        from .local import Permutation

        if not isinstance(order, Permutation):
            raise Invalid(f"order: {shown(order)}: expected a shufd.local.Permutation")
        own = vars(self)
        try:
            own.update(order=order, kept=_kept_records(kept, order.n))
        except MemoryError:
            raise _arguments.no_room("kept", kept) from None
        own.update(_fingerprint=fingerprint(self.kept), _chunks=None)
        own.update({name: getattr(order, name) for name in ("n", "seed", "epoch", "chunk", "window")}, length=self.kept.size)
        windows: dict[str, Any] = {}
        if order.chunk is not None:
            numbers = order._chunk_of(self.kept)
            starts = np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
            if starts.size > _CHUNKS:
                raise Invalid(f"kept: records of {starts.size} chunks: expected at most 2^24 chunks")
            own["_chunks"] = numbers[starts]
            windows = {"chunk": np.diff(starts, append=numbers.size), "window": order.window}
        own["_places"] = Permutation(self.kept.size, order.seed, order.epoch, **windows)

    def range(self, offset: int, count: int, stride: int = 1) -> npt.NDArray[np.int64]:
        """As Order.range()."""
        records: npt.NDArray[np.int64] = self._places.range(offset, count, stride)
        for first in range(0, len(records), _BLOCK):
            part = records[first : first + _BLOCK]
            part[:] = self.kept[part]
        return records

    def inverse_index(self, values: npt.ArrayLike) -> Any:
        """The positions of records: a uint64 array of the same shape, or an int for a single record. Fails with Invalid for a
        record that is not in the subset."""
        records = as_u64("values", values)
        numbers, is_kept = self._find(records)
        if not is_kept.all():
            raise Invalid(f"values: {records[~is_kept].flat[0]}: expected records of the subset")
        return self._places.inverse_index(numbers)

    def _find(self, records: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Where the records are in `kept`, if they are there, and whether they are."""
        same_type = np.minimum(records, np.uint64(self.n - 1)).astype(self.kept.dtype)  # else NumPy would convert `kept`
        numbers = np.minimum(np.searchsorted(self.kept, same_type), len(self) - 1)
        return numbers, np.asarray(self.kept[numbers] == records)

    def with_epoch(self, epoch: int) -> Subset:
        """As Order.with_epoch()."""
        order = self.order.with_epoch(epoch)
        return self._with(epoch=order.epoch, order=order, _places=self._places.with_epoch(epoch))

    def _needed(self, offset: int, count: int, stride: int) -> npt.NDArray[Any]:
        needed: npt.NDArray[np.int64] = self._chunks[self._places._needed(offset, count, stride)]
        return needed

    def _details(self) -> dict[str, Any]:
        return {"length": self.length, "subset": self._fingerprint}

    def __contains__(self, value: Any) -> bool:
        return _arguments.is_below(value, self.n) and bool(self._find(np.array([int(value)], np.uint64))[1][0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.order, self.kept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subset) or type(other) is not type(self):
            return NotImplemented
        return self.order == other.order and np.array_equal(self.kept, other.kept)

    def __hash__(self) -> int:
        return hash((self.order, self.kept.size))

    def __repr__(self) -> str:
        return f"{self.order!r}.subset({shown(self.kept.tolist() if self.kept.size < 100 else self.kept)})"
