# SPDX-License-Identifier: MIT
"""A connection to the daemon. connection.c has its lock, and the leases that it holds."""

from __future__ import annotations

from typing import Any, Callable

from . import _errors, _fork
from ._shuf import ffi, lib


class Connection:
    """One handle of libshuf. The handle closes with this object and the last lease."""

    __slots__ = ("pointer", "generation", "__weakref__")

    def __init__(self, socket: str | None, reconnect: float = 10.0) -> None:
        self.generation = _fork.generation
        path = ffi.NULL if socket is None else ffi.new("char[]", socket.encode())
        pointer = lib.shufpy_connect(path, int(reconnect * 1000))
        if not pointer:
            raise failure(was_connected=False)
        self.pointer: Any = ffi.gc(pointer, lib.shufpy_disconnect)

    @property
    def socket(self) -> str:
        return str(ffi.string(lib.shufpy_socket(self.pointer)).decode(errors="replace"))

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function of connection.c and raises its error."""
        if function(self.pointer, *arguments):
            raise failure()

    def take(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of connection.c that takes a lease. Returns the lease, or raises the error."""
        lease = function(self.pointer, *arguments)
        if not lease:
            raise failure()
        return lease

    def close(self) -> None:
        """Closes the handle when its last lease has ended. Calls fail from now on."""
        lib.shufpy_close(self.pointer)

    def cancel(self) -> None:
        """Ends the call of another thread, and the work of the daemon for it. Then close()."""
        lib.shufpy_cancel(self.pointer)


def failure(was_connected: bool = True) -> _errors.Error:
    """The error of the call that failed last in this thread."""
    message = ffi.string(lib.shufpy_message()).decode(errors="replace")
    status = lib.shufpy_status()
    if status == lib.SHUFPY_CLOSED:
        return _errors.Closed(message)
    return _errors.make(ffi.string(lib.shuf_status_name(status)).decode(), message, was_connected)
