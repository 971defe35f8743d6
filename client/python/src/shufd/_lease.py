# SPDX-License-Identifier: MIT
"""Arrays over the memory of a lease. The lease ends with the last array."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ._dtype import BY_NUMBER
from ._shuf import ffi, lib

# Looked up once: a call of a small permutation costs a few microseconds.
_end = lib.shufpy_end
_own = ffi.gc
_buffer = ffi.buffer
_array = np.frombuffer
_U32 = np.dtype(np.uint32)


def array_of_u32(lease: Any, count: int) -> np.ndarray[Any, Any]:
    """A read-only array over a lease of u32. It takes the lease over."""
    address = _own(lease.data, partial(_end, lease))
    return _array(memoryview(_buffer(address, 4 * count)).toreadonly(), _U32)


class Lease:
    """A lease of the daemon's memory in this process. It ends when nothing refers to `address`."""

    __slots__ = ("address", "bytes", "dtype", "_fields")

    def __init__(self, lease: Any) -> None:
        self._fields = lease.lease
        self.bytes: int = lease.bytes
        self.dtype = BY_NUMBER.get(lease.dtype)
        self.address = _own(lease.data, partial(_end, lease))

    @property
    def rows(self) -> int:
        return int(self._fields.result.shape.rows)

    @property
    def count(self) -> int:
        """Values in a row."""
        return int(self._fields.result.shape.count)

    @property
    def block(self) -> tuple[int, int]:
        """The id and the bytes of the daemon's block that has the values."""
        return int(self._fields.block), int(self._fields.block_bytes)

    def release(self) -> None:
        """Ends the lease now. Further calls do nothing."""
        ffi.release(self.address)

    def array(self, dtype: npt.DTypeLike | None = None) -> np.ndarray[Any, Any]:
        """A read-only array without a copy, of one dimension, or of two with several rows."""
        kind: Any = self.dtype if dtype is None else dtype
        if self.bytes == 0:
            empty: np.ndarray[Any, Any] = np.empty((self.rows * self.count,), kind)
            empty.flags.writeable = False
            return empty
        return _array(memoryview(_buffer(self.address, self.bytes)).toreadonly(), kind)
