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

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _dtype, _in_process, _request
from ._arguments import seed_of
from ._errors import Invalid, renamed
from ._in_process import fingerprint
from ._mixture import Mixture, Places, tempered
from ._names import advise_arguments, dir_of
from ._order import Order
from ._permutation import Permutation, Sizes, Subset
from ._weighted import Weighted, weighted_sample
from .random import Stream, check_generator, kind_of

__all__ = [
    "Mixture", "Order", "Permutation", "Places", "Subset", "Weighted", "bits", "exponential", "fingerprint", "index",
    "integers", "inverse_index", "normal",
    "permute", "shuffle", "tempered", "uniform", "unshuffle", "weighted_sample",
]  # fmt: skip
__dir__ = dir_of(__all__)
for _own in (Mixture, Order, Permutation, Places, Sizes, Subset, Weighted, fingerprint, tempered, weighted_sample):
    _own.__module__ = __name__


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
    return _draw(method, size, seed, stream, offset, generator, number, out, threads, mean=mean, std=std)


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
    return _draw("exponential", size, seed, stream, offset, generator, number, out, threads, mean=mean)


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
    return _draw("bits", size, seed, stream, offset, generator, number, out, threads, mean=mean)


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
    return _draw("integers", size, seed, stream, offset, generator, number, out, threads, bound=bound)


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
        try:
            _request.bytes_of(request)
        except Invalid as error:
            raise renamed(error, count="size", **_request.LAWS[law].names) from None
        if count:
            _in_process.fill(request, result, _in_process.threads_of(threads))
            if to is not None:
                _in_process.scale_out(result, to)

    if generator is None:
        fill(seed, stream, offset)
    else:
        check_generator(generator, stream, offset)
        source = generator
        source._take(kind_of(law, dtype), count, lambda place: fill(source.seed, source.stream, place))
    return result if shape or out is not None else result.item()
