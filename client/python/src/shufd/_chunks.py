# SPDX-License-Identifier: MIT
"""Chunks with sizes of their own, and windowed orders over them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _dtype, _in_process
from ._arguments import integer, shown, u64
from ._errors import Invalid
from ._in_process import check
from ._shuf import ffi, lib

_SHOWN = 8  # sizes in a repr()


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
        values = _dtype.as_u64("chunk", given, "at least 1")
        self._values = values.copy() if np.may_share_memory(values, given) else values
        self._values.flags.writeable = False
        self.n = Order(self, 2**64 - 1, 0, 0).n  # libshuf checks the sizes, which it adds up

    @functools.cached_property
    def fingerprint(self) -> str:
        """64 bits that tell two lists apart, as shufd.local.fingerprint()."""
        result = ffi.new("uint64_t *")
        check(lib.shufpy_host_fingerprint(self._values.ctypes.data, 8, self._values.size, 1, result))
        return f"{result[0]:#018x}"

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


class Order:
    """A windowed order over such chunks. Any number of threads may use it."""

    def __init__(self, sizes: Sizes, window: int, seed: int, epoch: int) -> None:
        out, values = ffi.new("shuf_chunks **"), np.asarray(sizes)
        try:
            check(lib.shufpy_chunks_make(seed, epoch, values.ctypes.data, values.size, window, out))
        except Invalid as error:
            raise Invalid(re.sub(r"^sizes\b", "chunk", str(error))) from None
        self._chunks = ffi.gc(out[0], lib.shuf_chunks_free)
        self.n, self.count = int(lib.shuf_chunks_length(self._chunks)), values.size

    def fill(self, offset: int, stride: int, out: npt.NDArray[Any]) -> None:
        """Fills an array of uint32 (n <= 2^32) or uint64 with the values at offset, offset + stride, ..., all below n."""
        kind = _dtype.NUMBERS["u32" if out.dtype == np.uint32 else "u64"]
        check(lib.shufpy_chunks_fill(self._chunks, offset, out.size, stride, 1, kind, out.ctypes.data))

    def look_up(self, inverse: bool, at: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64], threads: int) -> None:
        """Writes the values at positions below n, or the positions of values."""
        try:
            check(lib.shufpy_chunks_index(self._chunks, inverse, threads, at.ctypes.data, at.size, out.ctypes.data))
        except Invalid as error:
            raise Invalid(str(error).replace("the length, ", "n = ")) from None

    def needed(self, offset: int, count: int, stride: int) -> npt.NDArray[np.uint64]:
        """The numbers of the chunks of the values at offset, offset + stride, ..., all below n, in the order in which they
        are needed."""
        numbers: npt.NDArray[np.uint64] = _in_process.new((min(count, self.count),), np.dtype(np.uint64))
        found = ffi.new("size_t *")
        check(lib.shufpy_chunks_needed(self._chunks, offset, count, stride, numbers.ctypes.data, found))
        return numbers[: found[0]].copy()
