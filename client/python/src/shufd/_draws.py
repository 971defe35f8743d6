# SPDX-License-Identifier: MIT
"""The calls of a client that draw random numbers."""

from __future__ import annotations

import math
from typing import Any, Sequence, Union

import numpy as np

from . import _arguments, _dtype, _in_process, _request
from ._connection import Calls
from ._device import device_of, gpu_of
from ._errors import Invalid, renamed
from ._names import advise_arguments
from .random import Stream, check_generator, kind_of

_PART = "a smaller size, with offset= for the values after it"
Size = Union[int, Sequence[int], None]


class Draws(Calls):
    """Random numbers."""

    @advise_arguments
    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: Size = None,
        *,
        seed: int | None = None,
        key: str | None = None,
        stream: int = 0,
        offset: int = 0,
        generator: Stream | None = None,
        dtype: Any = "f64",
        method: str = "table",
        device: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Normal random numbers with mean `loc` and standard deviation `scale`.

        loc       a single number, -2^100 to 2^100
        scale     a single number, 2^-100 to 2^100; with dtype f16, |loc| + 16 scale is at most 65504. For
                  arrays write loc + scale * normal(size=...), for a constant numpy.full()
        size      an int or a shape; None: one float, or the bits of a bf16 without ml_dtypes; 0 only without a device
        seed, stream, offset
                  select the values: number offset, offset + 1, ... of a stream, which are the same
                  on every machine. Types and offsets share random bits: box-muller f64 values 2 m and 2 m + 1
                  have those of values 4 m to 4 m + 3 of the other types; with loc 0 and scale 1 value i of the
                  table method is the same number in all types, rounded, with others nearly the same
        key       the name of a key of the daemon instead of the seed
        generator a shufd.Stream instead of these, whose next numbers the call takes
        dtype     "f64", "f32", "f16" or "bf16" (ml_dtypes.bfloat16, or uint16 bits without ml_dtypes), or
                  NumPy's or torch's type. As in NumPy, float and "float" are f64; torch.float is f32
        method    "table", faster on a GPU, or "box-muller", pairs from a radius and an angle
        device, progress
                  as in permute()
        Returns a read-only array without a copy. Errors: as permute().
        """
        number = _dtype.number_of(dtype, _request.LAWS["table"].types)
        _request.check_method(method)
        mean, std = _arguments.real("loc", loc), _arguments.real("scale", scale)
        if std == 0.0:
            raise Invalid("scale 0: expected 2^-100 to 2^100; for a constant, use numpy.full()")
        return self._draw(
            method, size, seed, key, stream, offset, generator, number, device, progress, mean=mean, std=std
        )

    @advise_arguments
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: Size = None,
        *,
        seed: int | None = None,
        key: str | None = None,
        stream: int = 0,
        offset: int = 0,
        generator: Stream | None = None,
        dtype: Any = "f64",
        device: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Uniform random numbers in [low, high), or with dtype "u32" or "u64" all integers of the type.

        For integers below a bound, use integers().

        low, high finite numbers, low <= high, whose difference is finite too. The result is low + u (high - low), with
                  `low`, `high` and the difference, an f64, rounded to the type. A value of the rounded `high` or more
                  becomes the number of the type before it. If both are equal after this rounding, all values are this number.
                  As in NumPy, the last bits follow from the multiplication and are not uniform

        The other arguments are those of normal(), with dtype "f64", "f32", "u32" or "u64". Value i of f64 and u64 has
        the bits of values 2 i and 2 i + 1 of f32 and u32; a Stream as the generator avoids this. Without low and
        high the result is read-only and without a copy. Else it is a new array, computed by NumPy.
        """
        number, device = _dtype.number_of(dtype, _request.LAWS["uniform"].types), gpu_of(device)
        kind = np.dtype(_dtype.numpy_of(number))
        low, high = _arguments.real("low", low), _arguments.real("high", high)
        if device is not None and (low, high) != (0.0, 1.0) and kind.kind != "u":
            raise Invalid(f"low: {low}, high: {high}: expected 0 and 1 with a device")
        to = _in_process.interval(low, high, kind)
        values = self._draw("uniform", size, seed, key, stream, offset, generator, number, device, progress)
        if to is None:
            return values
        result = np.array(values, kind)
        _in_process.scale(result, to)
        return result[()]

    @advise_arguments
    def exponential(
        self,
        scale: float = 1.0,
        size: Size = None,
        *,
        seed: int | None = None,
        key: str | None = None,
        stream: int = 0,
        offset: int = 0,
        generator: Stream | None = None,
        dtype: Any = "f64",
        device: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Exponential random numbers with mean `scale`.

        scale     a single number, 2^-100 to 2^100

        The other arguments and the result are those of normal(), with dtype "f64" or "f32". Values 2 m and 2 m + 1 of
        f64 have the bits of values 4 m to 4 m + 3 of f32.
        """
        number, mean = _dtype.number_of(dtype, _request.LAWS["exponential"].types), _arguments.real("scale", scale)
        return self._draw(
            "exponential", size, seed, key, stream, offset, generator, number, device, progress, mean=mean
        )

    @advise_arguments
    def bits(
        self,
        p: float = 0.5,
        size: Size = None,
        *,
        seed: int | None = None,
        key: str | None = None,
        stream: int = 0,
        offset: int = 0,
        generator: Stream | None = None,
        dtype: Any = "u32",
        device: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Independent random bits, each 1 with probability `p`, as integers of 32 or 64 of them.

        p         a single number, 0 to 1. The probability is p rounded to a multiple of 2^-63
        size      the number of integers, or their shape; None: one
        dtype     "u32" or "u64". The first bit is the lowest, so both types have the same bytes, and
                  numpy.unpackbits(values.view("u1"), bitorder="little") has the bits in their order

        The other arguments and the result are those of normal(). A bit that is 1 for one p is 1 for every larger p.
        Integer i of 64 bits has the bits of integers 2 i and 2 i + 1 of 32 bits. For two p or two types take another
        stream, or a Stream as the generator.
        """
        number = _dtype.number_of("u32" if dtype is None else dtype, _request.LAWS["bits"].types)
        mean = _arguments.real("p", p)
        return self._draw("bits", size, seed, key, stream, offset, generator, number, device, progress, mean=mean)

    @advise_arguments
    def integers(
        self,
        bound: int,
        size: Size = None,
        *,
        seed: int | None = None,
        key: str | None = None,
        stream: int = 0,
        offset: int = 0,
        generator: Stream | None = None,
        dtype: Any = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Random integers from 0 to bound - 1, all exactly equally likely.

        bound     1 to 2^32 with dtype "u32", to 2^64 - 1 with "u64"
        dtype     "u32" or "u64"; by default "u32", or "u64" for a bound above 2^32

        The other arguments and the result are those of normal(). Number i of 64 bits has the random bits of numbers
        2 i and 2 i + 1 of 32 bits, for all bounds; a Stream as the generator avoids this.
        """
        bound = _arguments.u64("bound", bound)
        number = _dtype.number_of(dtype, _request.LAWS["integers"].types) or _request.type_of_bound(bound)
        return self._draw("integers", size, seed, key, stream, offset, generator, number, device, progress, bound=bound)

    def _draw(
        self, law: str, size: Size, seed: int | None, key: str | None, stream: int,
        offset: int, generator: Stream | None, dtype: int, device: Any, progress: bool | None,
        **parameters: Any,
    ) -> Any:
        shape, device = _arguments.shape(size), gpu_of(device)
        if (seed is None) + (key is None) + (generator is None) != 2:
            raise Invalid(
                f"seed: {seed}, key: {key!r}, generator: {_arguments.shown(generator)}: expected one of the three"
            )
        if generator is not None:
            check_generator(generator, stream, offset)
            source = generator
            return source._take(kind_of(law, dtype), math.prod(shape), lambda offset: self._values(
                law, shape, source.seed, None, source.stream, offset, dtype, device, progress, parameters
            ))  # fmt: skip
        return self._values(law, shape, seed, key, stream, offset, dtype, device, progress, parameters)

    def _values(
        self, law: str, shape: tuple[int, ...], seed: int | None, key: str | None, stream: int, offset: int, dtype: int,
        device: Any, progress: bool | None, parameters: dict[str, Any],
    ) -> Any:
        count = math.prod(shape)
        drawn = 1 if count == 0 and device is None else count  # the daemon checks the other arguments
        request = _request.numbers(law, seed, key, stream, offset, drawn, dtype, **parameters)
        where = None if device is None else device_of(device)
        try:
            lease = self._take(request, drawn, "draw", progress, device, _PART)
        except Invalid as error:
            raise renamed(error, count="size", **_request.LAWS[law].names) from None
        if drawn > count:
            return lease.array(_dtype.numpy_of(dtype))[:0].reshape(shape)
        values = self._result(lease, _dtype.numpy_of(dtype), shape, where)
        return values if shape or where is not None else values.item()
