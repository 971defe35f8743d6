# SPDX-License-Identifier: MIT
"""A connection to the daemon, and the leases that it holds.

libshuf allows one thread at a time on a handle. So each call takes the lock. The garbage collector
may end a lease in any thread, at any moment. So the release of the lease waits in `_ended` until
the lock is free. The thread that releases the lock then sends it. One small lease waits for the
next call, which gives it back in the same round trip.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable

from . import _errors, _fork
from ._shuf import ffi, lib

_SMALL = 1 << 20  # bytes
_HANDLE_POINTER = ffi.typeof("shuf **")
_LEASE_POINTER = ffi.typeof("shuf_lease **")


class Connection:
    """One handle of libshuf. Closes when it is garbage: a lease holds a reference to it."""

    __slots__ = ("handle", "generation", "_lock", "_ended", "_leases", "_closing", "__weakref__")

    def __init__(self, socket: str | None, reconnect: float = 10.0) -> None:
        self.generation = _fork.generation
        self.handle: Any = ffi.NULL
        self._lock = threading.Lock()
        self._ended: deque[Any] = deque()
        self._leases = 0
        self._closing = False
        pointer = ffi.new(_HANDLE_POINTER)
        path = ffi.NULL if socket is None else ffi.new("char[]", socket.encode())
        status = lib.shuf_connect(pointer, path)
        self.handle = pointer[0]
        if status != lib.SHUF_OK:
            error = self._error(status, was_connected=False)
            self._close_handle()
            raise error
        lib.shuf_set_reconnect(self.handle, int(reconnect * 1000))

    def _error(self, status: int, was_connected: bool = True) -> _errors.Error:
        name = ffi.string(lib.shuf_status_name(status)).decode()
        message = ffi.string(lib.shuf_message(self.handle)).decode(errors="replace")
        return _errors.make(name, message, was_connected)

    @property
    def is_usable(self) -> bool:
        """False after close(), and in a child of the process that connected."""
        return self.generation == _fork.generation and not self._closing

    @property
    def socket(self) -> str:
        return str(ffi.string(lib.shuf_socket(self.handle)).decode(errors="replace"))

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls function(handle, *arguments) and raises its error."""
        with self._lock:
            self._check()
            self._release_ended()
            status = function(self.handle, *arguments)
            error = self._error(status) if status else None
        if self._ended:
            self._drain()
        if error:
            raise error

    def take(self, function: Callable[..., int], *arguments: Any) -> Any:
        """As call(), with a last argument for the lease. Returns the lease."""
        pointer = ffi.new(_LEASE_POINTER)
        with self._lock:
            self._check()
            if self._ended:  # the lease that this one replaces
                pointer[0] = self._ended.popleft()
                self._leases -= 1
            status = function(self.handle, *arguments, pointer)
            error = self._error(status) if status else None
            self._leases += not status
        if self._ended:
            self._drain()
        if error:
            raise error
        return pointer[0]

    def _check(self) -> None:
        if self.handle == ffi.NULL or self._closing:
            raise _errors.Closed("client: it is closed; expected one that is open")

    def release(self, lease: Any, size: int) -> None:
        """Gives a lease of `size` bytes back: at once, after the call that runs in another thread, or
        with the next call."""
        self._ended.append(lease)
        if size > _SMALL or len(self._ended) > 1 or self._closing:
            self._drain()

    def _release_ended(self) -> None:
        while self._ended:
            lib.shufpy_release(self.handle, self._ended.popleft())
            self._leases -= 1

    def _drain(self) -> None:
        """Call it after the lock was released: it gives back the leases that ended while the lock
        was held."""
        while (self._ended or self._closing) and self._lock.acquire(blocking=False):
            try:
                self._release_ended()
                if self._closing and self._leases == 0:
                    self._close_handle()
                    return
            finally:
                self._lock.release()
            if not self._ended:
                return

    def close(self) -> None:
        """Closes the handle when its last lease has ended. Calls fail from now on."""
        self._closing = True
        self._drain()

    def _close_handle(self) -> None:
        handle, self.handle = self.handle, ffi.NULL
        lib.shuf_close(handle)

    def __del__(self) -> None:
        # In a child that was forked in the middle of another thread's call, the handle is in an
        # unknown state. It then stays until the child ends.
        if getattr(self, "handle", ffi.NULL) == ffi.NULL:
            return
        if self.generation == _fork.generation or not self._lock.locked():
            self._close_handle()
