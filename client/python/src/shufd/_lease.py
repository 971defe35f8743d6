# SPDX-License-Identifier: MIT
"""Arrays over the memory of a lease. The lease ends with the last array."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ._connection import Connection
from ._dtype import BY_NUMBER
from ._shuf import ffi


class Lease:
    """A lease of the daemon's memory in this process. It ends when nothing refers to `address`."""

    __slots__ = ("address", "bytes", "dtype", "_shape")

    def __init__(self, connection: Connection, lease: Any) -> None:
        self._shape = shape = lease.result.shape
        self.bytes: int = shape.bytes
        self.dtype = BY_NUMBER.get(shape.dtype)
        self.address = ffi.gc(lease.data, partial(connection.release, lease, self.bytes))

    @property
    def rows(self) -> int:
        return int(self._shape.rows)

    @property
    def count(self) -> int:
        """Values in a row."""
        return int(self._shape.count)

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
        return np.frombuffer(memoryview(ffi.buffer(self.address, self.bytes)).toreadonly(), kind)
