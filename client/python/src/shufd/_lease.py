# SPDX-License-Identifier: MIT
"""Arrays over the memory of a lease. The lease ends with the last array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._connection import Connection
from ._dtype import BY_NUMBER
from ._shuf import ffi


class Lease:
    """A lease of the daemon's memory in this process."""

    __slots__ = ("connection", "_lease", "address", "bytes", "rows", "count", "dtype")

    def __init__(self, connection: Connection, lease: Any) -> None:
        shape = lease.result.shape
        self.connection = connection
        self._lease: Any = lease
        self.address = lease.data
        self.bytes: int = shape.bytes
        self.rows: int = shape.rows
        self.count: int = shape.count
        self.dtype = BY_NUMBER.get(shape.dtype)

    def release(self, _address: Any = None) -> None:
        """Gives the lease back. Further calls do nothing."""
        lease, self._lease = self._lease, None
        if lease is not None:
            self.connection.release(lease, self.bytes)

    def __del__(self) -> None:
        self.release()

    def memory(self) -> memoryview:
        """The bytes, read-only. They hold the lease."""
        owner = ffi.gc(self.address, self.release)
        return memoryview(ffi.buffer(owner, self.bytes)).toreadonly()

    def array(self, dtype: npt.DTypeLike | None = None) -> np.ndarray[Any, Any]:
        """A read-only array without a copy, of one dimension, or of two with several rows."""
        kind: Any = self.dtype if dtype is None else dtype
        if self.bytes == 0:
            self.release()
            empty: np.ndarray[Any, Any] = np.empty((self.rows * self.count,), kind)
            empty.flags.writeable = False
            return empty
        return np.frombuffer(self.memory(), kind)
