# SPDX-License-Identifier: MIT
"""A connection to the daemon, and the leases that it holds.

Only one thread at a time may use a handle of libshuf. So each call takes the lock. The garbage
collector may end a lease in any thread, even while another thread has the lock. Then `_ended` keeps
the lease, and the thread that releases the lock gives the lease back. One small ended lease waits
for the next call, which gives it back in the same round trip.
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

    __slots__ = ("handle", "generation", "_lock", "_pointer", "_ended", "_leases", "is_closing",
                 "__weakref__")  # fmt: skip

    def __init__(self, socket: str | None, reconnect: float = 10.0) -> None:
        self.generation = _fork.generation
        self.handle: Any = ffi.NULL
        self._lock = threading.Lock()
        self._pointer = ffi.new(_LEASE_POINTER)  # of the call that has the lock
        self._ended: deque[Any] = deque()
        self._leases = 0
        self.is_closing = False
        handle = ffi.new(_HANDLE_POINTER)
        path = ffi.NULL if socket is None else ffi.new("char[]", socket.encode())
        status = lib.shuf_connect(handle, path)
        self.handle = handle[0]
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

    def take(self, function: Callable[..., int], request: Any, options: Any) -> Any:
        """Calls function(handle, request, options, lease) and raises its error. Returns the lease."""
        pointer, ended = self._pointer, self._ended
        with self._lock:
            if self.is_closing:
                self._check()
            if ended:  # the lease that this one replaces
                pointer[0] = ended.popleft()
                self._leases -= 1
            else:
                pointer[0] = ffi.NULL
            status = function(self.handle, request, options, pointer)
            lease = pointer[0]
            error = self._error(status) if status else None
            if error is None:
                self._leases += 1
        if ended:
            self._drain()
        if error is not None:
            raise error
        return lease

    def _check(self) -> None:
        if self.is_closing:
            raise _errors.Closed("client: it is closed; expected one that is open")

    def release(self, lease: Any, size: int, _address: Any = None) -> None:
        """Gives a lease of `size` bytes back: at once, after the call that runs in another thread, or
        with the next call. `_address` is unused: the garbage collector of cffi passes it."""
        self._ended.append(lease)
        if size > _SMALL or len(self._ended) > 1 or self.is_closing:
            self._drain()

    def _release_ended(self) -> None:
        while self._ended:
            lib.shufpy_release(self.handle, self._ended.popleft())
            self._leases -= 1

    def _drain(self) -> None:
        """Call it after the lock was released: it gives back the leases that ended while the lock
        was held."""
        while (self._ended or self.is_closing) and self._lock.acquire(blocking=False):
            try:
                self._release_ended()
                if self.is_closing and self._leases == 0:
                    self._close_handle()
                    return
            finally:
                self._lock.release()
            if not self._ended:
                return

    def close(self) -> None:
        """Closes the handle when its last lease has ended. Calls fail from now on."""
        self.is_closing = True
        self._drain()

    def cancel(self) -> None:
        """Ends the call of another thread, and the work of the daemon for it. Then close()."""
        lib.shuf_cancel(self.handle)
        self.close()

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
