# SPDX-License-Identifier: MIT
"""Permutations, shuffles and random numbers that this process computes, without a daemon. The values have the bits of
those that `shufd.permute()` and its neighbours return.

    Order                    the common part of Permutation, its subset(), Mixture and Weighted, which samplers take
    permute, Permutation     permutations, and slices and shards of them
    Mixture, tempered        several data sets, mixed by weights
    Weighted, weighted_sample
                             indices drawn by weights, with and without replacement
    index, inverse_index     values at single positions, and positions of values
    shuffle, unshuffle       arrays in the order of a permutation, and back
    normal, uniform, exponential, bits, integers
                             random numbers
    fingerprint              64 bits that tell two results apart

Arguments that all of them have:

out      None: a new array. Else an array that the call fills and returns: C-contiguous, writable, of the shape and type
         of the result. An array of CuPy is filled on its device, in CuPy's current stream, and the call returns before
         the values are there. After a failure its contents are undefined
threads  1: only the calling thread computes; 0: all processors; the values do not depend on it. With more than one, the
         thread keeps a team for later calls. A child of fork() computes with one thread

Calls release the GIL, and any number of threads may run them. Ctrl-C ends a call. Errors: Invalid; OutOfMemory; IOFailure if
the system has no more threads; DeviceError with an array of CuPy. A named key never leaves its daemon, so none is accepted.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from . import _arguments, _chunks, _dtype, _in_process, _request
from ._arguments import seed_of, u64
from ._chunks import Sizes, chunk_of, window_of, windows_shown
from ._dtype import as_u64
from ._errors import Invalid, renamed
from ._in_process import check, fingerprint
from ._mixture import Mixture, Places, tempered
from ._names import advise_arguments, dir_of
from ._order import Order
from ._shuf import lib
from ._subset import Subset
from ._weighted import Weighted, weighted_sample
from .random import Stream, check_generator, kind_of

__all__ = [
    "Mixture", "Order", "Permutation", "Places", "Subset", "Weighted", "bits", "exponential", "fingerprint", "index",
    "integers", "inverse_index", "normal",
    "permute", "shuffle", "tempered", "uniform", "unshuffle", "weighted_sample",
]  # fmt: skip
__dir__ = dir_of(__all__)
Mixture.__module__ = Order.__module__ = Places.__module__ = Subset.__module__ = Weighted.__module__ = __name__
fingerprint.__module__ = tempered.__module__ = weighted_sample.__module__ = __name__

_MOST = 1 << 62


@advise_arguments
def permute(
    n: int,
    seed: int,
    epoch: int = 0,
    *,
    epochs: range | None = None,
    rank: int | None = None,
    world: int | None = None,
    drop_last: bool = False,
    step: int | None = None,
    offset: int | None = None,
    count: int | None = None,
    stride: int | None = None,
    dtype: Any = None,
    algorithm: str = "primefold",
    chunk: int | None = None,
    window: int | None = None,
    out: Any = None,
    threads: int = 1,
) -> Any:
    """The permutation of [0, n), or a part of it, as a new array. The arguments are those of Client.permute(), and
    `out` and `threads` of the module; `dtype` is by default that of `out`.

    Slices and shards take time for their own values with primefold, and for all n values with philox24 and lcg, for
    which a daemon remembers where the values are.
    """
    request = _request.permutation(
        n, seed_of(seed), None, epoch, epochs, (rank, world, drop_last, step), (offset, count, stride),
        None, algorithm, chunk, window,
    )  # fmt: skip
    request.permutation.dtype = _in_process.number_of(dtype, out, None, _dtype.PERMUTATION)
    form = _request.shape_of(request)
    shape = (form.count,) if epochs is None else (form.rows, form.count)
    result = _in_process.array_for(out, shape, _dtype.BY_NUMBER[form.dtype])
    if form.bytes:
        _in_process.fill(request, result, _in_process.threads_of(threads))
    return result


# ---- Look-ups ------------------------------------------------------------------------------------


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
    _order: ClassVar[_chunks.Order | None] = None  # with sizes, that of the object
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
        order = _chunks.Order(sizes, window, seed, epoch)
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
            out.ctypes.data, out.nbytes,
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
            self.n, self.seed, self.epoch, self.chunk or 0, self.window or 0, inverse, threads, at.ctypes.data, at.size, out.ctypes.data
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
            vars(other)["_order"] = _chunks.Order(self.chunk, self.window, self.seed, other.epoch)
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


@advise_arguments
def index(
    positions: npt.ArrayLike, n: int, seed: int, epoch: int = 0, *, chunk: int | None = None, window: int | None = None,
    out: Any = None, threads: int = 1,
) -> Any:
    """The values at single positions of a permutation by primefold, without computing the others.

    positions  integers below n, of any shape and in any order, also repeated
    Returns a uint64 array of the same shape; an int for a single position without `out`.
    """
    return Permutation(n, seed, epoch, chunk=chunk, window=window).index(positions, out=out, threads=threads)


@advise_arguments
def inverse_index(
    values: npt.ArrayLike, n: int, seed: int, epoch: int = 0, *, chunk: int | None = None, window: int | None = None,
    out: Any = None, threads: int = 1,
) -> Any:
    """The positions of values: the inverse of index()."""
    return Permutation(n, seed, epoch, chunk=chunk, window=window).inverse_index(values, out=out, threads=threads)


# ---- Arrays --------------------------------------------------------------------------------------


@advise_arguments
def shuffle(
    array: Any, seed: int, epoch: int = 0, *, algorithm: str = "primefold", out: Any = None, threads: int = 1
) -> Any:
    """The rows of an array in the order of a permutation, as Client.shuffle(): array[permute(len(array), seed, epoch)].

    array  of NumPy, of any shape with at least one dimension and any type without Python objects, without a mask; or of
           CuPy, C-contiguous, and then `out` too. `out` may not overlap it
    """
    return _shuffle(array, False, seed, epoch, algorithm, out, threads)


@advise_arguments
def unshuffle(
    array: Any, seed: int, epoch: int = 0, *, algorithm: str = "primefold", out: Any = None, threads: int = 1
) -> Any:
    """Undoes shuffle() with the same seed, epoch and algorithm. Arguments and errors are the same."""
    return _shuffle(array, True, seed, epoch, algorithm, out, threads)


def _shuffle(array: Any, inverse: bool, seed: int, epoch: int, algorithm: str, out: Any, threads: int) -> Any:
    on_device = _in_process.is_on_device(out)
    if on_device != _in_process.is_on_device(array, "array"):
        raise Invalid(f"out: {type(out).__name__}, array: {type(array).__name__}: expected both of NumPy, or both of CuPy")
    rows = array if on_device else _arguments.array("array", array)
    if len(rows.shape) == 0 or rows.dtype.hasobject:
        raise Invalid(
            f"array: shape {rows.shape}, type {rows.dtype}: expected at least one dimension and a type without Python "
            "objects"
        )
    result = _in_process.array_for(out, tuple(rows.shape), rows.dtype)
    if on_device:
        rows = _in_process.array_for(array, tuple(rows.shape), rows.dtype, "array")
    else:
        rows = _arguments.contiguous("array", rows)
    count = len(rows)
    request = _request.records(count, rows.nbytes // max(1, count), seed_of(seed), None, epoch, inverse, algorithm)
    if rows.nbytes == 0:
        _request.bytes_of(_request.whole(1, seed, None, epoch, algorithm))  # checks the arguments
    else:
        _in_process.shuffle(request, rows, result, _in_process.threads_of(threads))
    return result


# ---- Random numbers ------------------------------------------------------------------------------


@advise_arguments
def normal(
    loc: float = 0.0,
    scale: float = 1.0,
    size: Any = None,
    *,
    seed: int | None = None,
    stream: int = 0,
    offset: int = 0,
    generator: Stream | None = None,
    dtype: Any = None,
    method: str = "table",
    out: Any = None,
    threads: int = 1,
) -> Any:
    """Normal random numbers with mean `loc` and standard deviation `scale`. The arguments are those of Client.normal(),
    and `out` and `threads` of the module; `dtype` is by default that of `out`, or f64, and `size` that of `out`."""
    mean, std = _arguments.real("loc", loc), _arguments.real("scale", scale)
    if std == 0.0:
        raise Invalid("scale 0: expected 2^-100 to 2^100; for a constant, use numpy.full()")
    number = _in_process.number_of(dtype, out, "f64", _request.LAWS["table"].types)
    _request.check_method(method)
    try:
        return _draw(method, size, seed, stream, offset, generator, number, out, threads, mean=mean, std=std)
    except Invalid as error:
        raise renamed(error, mean="loc", std="scale", count="size") from None


@advise_arguments
def uniform(
    low: float = 0.0,
    high: float = 1.0,
    size: Any = None,
    *,
    seed: int | None = None,
    stream: int = 0,
    offset: int = 0,
    generator: Stream | None = None,
    dtype: Any = None,
    out: Any = None,
    threads: int = 1,
) -> Any:
    """Uniform random numbers in [low, high), or with dtype "u32" or "u64" all integers of the type. The arguments are those
    of Client.uniform(), and `out` and `threads` of the module; `dtype` is by default that of `out`, or f64, and `size`
    that of `out`."""
    number = _in_process.number_of(dtype, out, "f64", _request.LAWS["uniform"].types)
    to = _in_process.interval(
        _arguments.real("low", low), _arguments.real("high", high), np.dtype(_dtype.numpy_of(number))
    )
    return _draw("uniform", size, seed, stream, offset, generator, number, out, threads, to)


@advise_arguments
def exponential(
    scale: float = 1.0,
    size: Any = None,
    *,
    seed: int | None = None,
    stream: int = 0,
    offset: int = 0,
    generator: Stream | None = None,
    dtype: Any = None,
    out: Any = None,
    threads: int = 1,
) -> Any:
    """Exponential random numbers with mean `scale`. The arguments are those of Client.exponential(), and `out` and `threads`
    of the module; `dtype` is by default that of `out`, or f64, and `size` that of `out`."""
    mean = _arguments.real("scale", scale)
    number = _in_process.number_of(dtype, out, "f64", _request.LAWS["exponential"].types)
    try:
        return _draw("exponential", size, seed, stream, offset, generator, number, out, threads, mean=mean)
    except Invalid as error:
        raise renamed(error, mean="scale", count="size") from None


@advise_arguments
def bits(
    p: float = 0.5,
    size: Any = None,
    *,
    seed: int | None = None,
    stream: int = 0,
    offset: int = 0,
    generator: Stream | None = None,
    dtype: Any = None,
    out: Any = None,
    threads: int = 1,
) -> Any:
    """Independent random bits, each 1 with probability `p`, as integers of 32 or 64 of them. The arguments are those of
    Client.bits(), and `out` and `threads` of the module; `dtype` is by default that of `out`, or u32, and `size` that of
    `out`."""
    mean, number = _arguments.real("p", p), _in_process.number_of(dtype, out, "u32", _request.LAWS["bits"].types)
    try:
        return _draw("bits", size, seed, stream, offset, generator, number, out, threads, mean=mean)
    except Invalid as error:
        raise renamed(error, mean="p", count="size") from None


@advise_arguments
def integers(
    bound: int,
    size: Any = None,
    *,
    seed: int | None = None,
    stream: int = 0,
    offset: int = 0,
    generator: Stream | None = None,
    dtype: Any = None,
    out: Any = None,
    threads: int = 1,
) -> Any:
    """Random integers from 0 to bound - 1, all exactly equally likely. The arguments are those of Client.integers(), and
    `out` and `threads` of the module; `dtype` is by default that of `out`, and `size` that of `out`."""
    bound, types = _arguments.u64("bound", bound), _request.LAWS["integers"].types
    number = _in_process.number_of(dtype, out, None, types) or _request.type_of_bound(bound)
    try:
        return _draw("integers", size, seed, stream, offset, generator, number, out, threads, bound=bound)
    except Invalid as error:
        raise renamed(error, count="size") from None


def _draw(
    law: str, size: Any, seed: int | None, stream: int, offset: int, generator: Stream | None, dtype: int,
    out: Any, threads: int, to: _in_process.Interval | None = None, **parameters: Any,
) -> Any:  # fmt: skip
    if (seed is None) == (generator is None):
        raise Invalid(f"seed: {seed}, generator: {_arguments.shown(generator)}: expected one of the two")
    shape = tuple(getattr(out, "shape", ())) if size is None else _arguments.shape(size)
    result = _in_process.array_for(out, shape, _dtype.numpy_of(dtype))
    count = math.prod(shape)

    def fill(seed: int | None, stream: int, offset: int) -> None:
        request = _request.numbers(law, seed, None, stream, offset, max(1, count), dtype, **parameters)
        _request.bytes_of(request)
        if count:
            _in_process.fill(request, result, _in_process.threads_of(threads))
            if to is not None:
                _in_process.scale_out(result, to)

    if generator is None:
        fill(seed, stream, offset)
    else:
        check_generator(generator)
        source = generator
        source._take(kind_of(law, dtype), count, lambda place: fill(source.seed, source.stream, place))
    return result if shape or out is not None else result.item()
