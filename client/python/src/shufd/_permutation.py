# SPDX-License-Identifier: MIT
"""Permutations as orders: uniform ones, windowed ones over equal or unequal chunks, and the order of some records only."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from . import _arguments, _dtype, _in_process, _request
from ._arguments import integer, seed_of, shown, u64
from ._dtype import as_u64
from ._errors import Invalid, renamed
from ._in_process import address_of_integers, check, fingerprint
from ._order import Order
from ._shuf import ffi, lib

_MOST = 1 << 62
_SHOWN = 8  # sizes in a repr()
_CHUNKS = 1 << 24  # of an order with sizes of its own
_BLOCK = 1 << 16  # records that are looked up at once, without an array of all


# ---- Chunks of unequal sizes ---------------------------------------------------------------------


def windows_shown(chunk: Any, window: int | None) -> str:
    """The arguments of a windowed order for a repr(), "" for a uniform one."""
    return "" if window is None else f", chunk={chunk}, window={window}"


class Sizes(Sequence[int]):
    """The sizes of chunks, 1 to 2^24 of them: a read-only sequence, equal to others of the same sizes. numpy.asarray()
    gives a read-only array of uint64."""

    def __init__(self, sizes: Any) -> None:
        given = _arguments.array("chunk", sizes)
        if given.ndim != 1:
            raise Invalid(f"chunk: {shown(sizes)}: expected an integer, or the sizes of the chunks in one dimension")
        values = as_u64("chunk", given, "at least 1")
        self._values = values.copy() if np.may_share_memory(values, given) else values
        self._values.flags.writeable = False
        self.n = _ChunksOrder(self, 2**64 - 1, 0, 0).n  # libshuf checks the sizes, which it adds up

    @functools.cached_property
    def fingerprint(self) -> str:
        """64 bits that tell two lists apart, as shufd.local.fingerprint()."""
        return fingerprint(self._values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return self._values.astype(self._values.dtype if dtype is None else dtype, copy=bool(copy))

    def __len__(self) -> int:
        return self._values.size

    def __getitem__(self, number: Any) -> Any:
        found = self._values[number]
        return found if isinstance(number, slice) else int(found)

    def __deepcopy__(self, memo: Any) -> Sizes:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Sizes, (self._values,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sizes):
            return NotImplemented
        return self is other or np.array_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return str(self._values.tolist())
        first = ", ".join(map(str, self._values[:3]))
        return f"[{first}, ..., {self._values[-1]}]"


def chunk_of(chunk: Any) -> int | Sizes | None:
    """The argument `chunk`: None, an integer, or sizes."""
    if chunk is None or isinstance(chunk, Sizes):
        return chunk
    return Sizes(chunk) if np.iterable(chunk) else integer("chunk", chunk)


def named(chunk: int | Sizes | None) -> int | str | None:
    """A chunk_of() in the state of a sampler, where a fingerprint stands for sizes."""
    return chunk.fingerprint if isinstance(chunk, Sizes) else chunk


def window_of(window: Any) -> int:
    """The argument `window` beside sizes."""
    number = u64("window", 0 if window is None else window)
    if number == 0:
        raise Invalid(f"window: {window}: expected at least 1, with the sizes of chunks")
    return number


class _ChunksOrder:
    """A windowed order over such chunks. Any number of threads may use it."""

    def __init__(self, sizes: Sizes, window: int, seed: int, epoch: int) -> None:
        out, values = ffi.new("shuf_chunks **"), np.asarray(sizes)
        try:
            check(lib.shufpy_chunks_make(seed, epoch, address_of_integers(values), values.size, window, out))
        except Invalid as error:
            raise Invalid(re.sub(r"^sizes\b", "chunk", str(error))) from None
        self._chunks = ffi.gc(out[0], lib.shuf_chunks_free)
        self.n, self.count = int(lib.shuf_chunks_length(self._chunks)), values.size

    def fill(self, offset: int, stride: int, out: npt.NDArray[Any]) -> None:
        """Fills an array of uint32 (n <= 2^32) or uint64 with the values at offset, offset + stride, ..., all below n."""
        kind = _dtype.NUMBERS["u32" if out.dtype == np.uint32 else "u64"]
        check(lib.shufpy_chunks_fill(self._chunks, offset, out.size, stride, 1, kind, address_of_integers(out)))

    def look_up(self, inverse: bool, at: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64], threads: int) -> None:
        """Writes the values at positions below n, or the positions of values."""
        try:
            check(lib.shufpy_chunks_index(self._chunks, inverse, threads, address_of_integers(at), at.size, address_of_integers(out)))
        except Invalid as error:
            raise Invalid(str(error).replace("the length, ", "n = ")) from None

    def needed(self, offset: int, count: int, stride: int) -> npt.NDArray[np.uint64]:
        """The numbers of the chunks of the values at offset, offset + stride, ..., all below n, in the order in which they
        are needed."""
        numbers: npt.NDArray[np.uint64] = _in_process.new((min(count, self.count),), np.dtype(np.uint64))
        found = ffi.new("size_t *")
        check(lib.shufpy_chunks_needed(self._chunks, offset, count, stride, address_of_integers(numbers), found))
        return numbers[: found[0]].copy()


# ---- Permutations --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Permutation(Order):
    """One permutation of [0, n) by `primefold`: an order, as Order describes it, with a value at each position.

    n      1 to 2^62
    seed, epoch
           0 to 2^64 - 1
    chunk, window
           a windowed order, as in Client.permute(); both or none. Chunk k has the records k * chunk to (k + 1) * chunk - 1.
           For chunks of unequal sizes, `chunk` is the list or array of the sizes of all chunks, 1 to 2^24 of them, and n
           their sum, or None. It takes some tens of nanoseconds for each chunk, 20 bytes, and 8 for its size; `chunk` of
           one order may be that of others, which then share the sizes
    """

    n: int
    seed: int
    epoch: int
    chunk: int | Sizes | None
    window: int | None
    _order: ClassVar[_ChunksOrder | None] = None  # with sizes, that of the object
    algorithm = "primefold"

    def __init__(
        self, n: int | None = None, seed: int | None = None, epoch: int = 0, *, chunk: Any = None, window: int | None = None
    ) -> None:
        size = chunk_of(chunk)
        if isinstance(size, Sizes):
            self._set_sizes(n, seed_of(seed), u64("epoch", epoch), size, window_of(window))
            return
        # `request` has the memory of its fields.
        request = _request.whole(u64("n", n), seed_of(seed), None, epoch, "primefold", size, window)
        order = request.permutation
        if not 1 <= order.n <= _MOST:
            raise Invalid(f"n: {n}: expected 1 to 2^62")
        windows = (order.chunk, order.window) if size is not None else (None, None)
        vars(self).update(n=order.n, seed=order.seed, epoch=order.epoch, chunk=windows[0], window=windows[1])

    def _set_sizes(self, n: int | None, seed: int, epoch: int, sizes: Sizes, window: int) -> None:
        if n is not None and u64("n", n) != sizes.n:
            raise Invalid(f"n: {n}: expected {sizes.n}, the sum of the sizes of the chunks, or None")
        order = _ChunksOrder(sizes, window, seed, epoch)
        vars(self).update(n=sizes.n, seed=seed, epoch=epoch, chunk=sizes, window=window, _order=order)

    def index(self, positions: npt.ArrayLike, *, out: Any = None, threads: int = 1) -> Any:
        """The values at positions below n: a uint64 array of the same shape, or an int for a single position. Fails with
        Invalid for a position out of range."""
        return self._look_up("positions", positions, False, out, threads)

    def inverse_index(self, values: npt.ArrayLike, *, out: Any = None, threads: int = 1) -> Any:
        """The positions of values: the inverse of index()."""
        return self._look_up("values", values, True, out, threads)

    def range(self, offset: int, count: int, stride: int = 1, *, out: Any = None) -> npt.NDArray[Any]:
        """As Order.range(). `out` is an array of NumPy of int64 or uint64, or of uint32 if n is at most 2^32, which takes less
        time; None: a new int64 array."""
        first, step, number = u64("offset", offset) % self.n, u64("stride", stride), u64("count", count)
        kind = getattr(out, "dtype", None)
        is_narrow = kind == np.uint32 and self.n <= 2**32
        result = _in_process.array_for(out, (number,), kind if is_narrow or kind == np.uint64 else np.int64)
        if not isinstance(result, np.ndarray):
            raise Invalid(f"out: {type(out).__name__}: expected an array of NumPy")
        if number and step and first + (number - 1) * step < self.n:
            self._fill(first, step, result)
        elif is_narrow:
            result[:] = self.range(first, number, step)
        elif number:
            self._fill_range(first, step, result.view(np.uint64))
        return result

    def _fill(self, offset: int, stride: int, out: npt.NDArray[Any]) -> None:
        """Fills an array of uint32 (n <= 2^32), uint64 or int64 with the values at offset, offset + stride, ..., which are all
        below n."""
        if self._order is not None:
            return self._order.fill(offset, stride, out)
        kind = _dtype.NUMBERS["u32" if out.dtype == np.uint32 else "u64"]
        check(lib.shufpy_host_slice(
            self.n, self.seed, self.epoch, self.chunk or 0, self.window or 0, offset, out.size, stride, kind, 1,
            address_of_integers(out), out.nbytes,
        ))  # fmt: skip

    def _fill_range(self, first: int, stride: int, out: npt.NDArray[np.uint64]) -> None:
        last = first + (out.size - 1) * stride
        if last < self.n and stride:
            self._fill(first, stride, out)
        elif last < 2**63:
            np.remainder(first + np.arange(out.size, dtype=np.uint64) * np.uint64(stride), self.n, out=out)
            self._write(False, out, out, 1)
        elif stride >= self.n:
            self._fill_range(first, stride % self.n, out)
        else:
            half = out.size // 2
            self._fill_range(first, stride, out[:half])
            self._fill_range((first + half * stride) % self.n, stride, out[half:])

    def _look_up(self, name: str, at: npt.ArrayLike, inverse: bool, out: Any, threads: int) -> Any:
        places = as_u64(name, at)
        result = _in_process.array_for(out, places.shape, np.uint64)
        if not isinstance(result, np.ndarray):
            raise Invalid(f"out: {type(out).__name__}: expected an array of NumPy")
        if out is not None and np.may_share_memory(places, result):
            places = _arguments.copied(name, places)
        try:
            self._write(inverse, places, result, _in_process.threads_of(threads))
        except Invalid as error:
            raise renamed(error, at=name) from None
        return result if result.ndim or out is not None else int(result)

    def _write(self, inverse: bool, at: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64], threads: int) -> None:
        if self._order is not None:
            return self._order.look_up(inverse, at, out, threads)
        check(lib.shufpy_host_index(
            self.n, self.seed, self.epoch, self.chunk or 0, self.window or 0, inverse, threads, address_of_integers(at), at.size, address_of_integers(out)
        ))  # fmt: skip

    @property
    def length(self) -> int:  # type: ignore[override]
        """The number of positions, which is n."""
        return self.n

    def __contains__(self, value: Any) -> bool:
        return _arguments.is_below(value, self.n)

    def subset(self, kept: npt.ArrayLike) -> Subset:
        """The order of some records only, with the seed and epoch of this one.

        kept  different records in ascending order, or a mask of n booleans
        """
        return Subset(self, kept)

    def with_epoch(self, epoch: int) -> Permutation:
        """As Order.with_epoch()."""
        other = super().with_epoch(epoch)
        if isinstance(self.chunk, Sizes):
            assert self.window is not None
            vars(other)["_order"] = _ChunksOrder(self.chunk, self.window, self.seed, other.epoch)
        return other

    def _needed(self, offset: int, count: int, stride: int) -> npt.NDArray[Any]:
        if self._order is not None:
            return self._order.needed(offset, count, stride).view(np.int64)
        numbers = self._chunk_of(self.range(offset, count, stride))
        places = np.unique(numbers, return_index=True)[1]
        first_needed: npt.NDArray[Any] = numbers[np.sort(places)]
        return first_needed

    def _chunk_of(self, records: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if isinstance(self.chunk, Sizes):
            return np.searchsorted(np.cumsum(self.chunk, dtype=np.int64), records.astype(np.int64), side="right")
        return records.astype(np.int64) // min(self.chunk or 1, self.n)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), chunk=self.chunk, window=self.window), (self.n, self.seed, self.epoch)

    def __repr__(self) -> str:
        windows = windows_shown(self.chunk, self.window)
        return f"shufd.local.Permutation(n={self.n}, seed={self.seed}, epoch={self.epoch}{windows})"


# ---- Some records of a permutation ---------------------------------------------------------------


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
