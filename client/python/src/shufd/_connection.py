# SPDX-License-Identifier: MIT
"""Connections to the daemon: a client has one for each thread, and takes leases with it. calls.c has the lock of a connection,
and the leases that it holds."""

from __future__ import annotations

import math
import operator
import os
import shlex
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, TypeVar

import numpy as np

from . import _daemon, _errors, _process, _ranks, _request, _wait
from ._arguments import real, shown
from ._device import DeviceArray, Lease, array_of_u32, device_of
from ._errors import Busy, Closed, Invalid, NoDaemon, OutOfMemory, Timeout, advised
from ._shuf import ffi, lib

_LONGEST = 1 << 22  # seconds
_POLL = 0.05  # seconds
_WAIT = "SHUFD_WAIT"
_HINT = "; start a daemon with shufd(8)"  # of libshuf; _advice() has the command


def path_of(socket: Any) -> str | None:
    """The path of a socket, as text."""
    try:
        path = None if socket is None else os.fspath(socket)
    except TypeError:
        path = b""
    if isinstance(path, bytes):
        raise Invalid(f"path: {shown(socket)}: expected the path of a socket, or None")
    return path or None


def _seconds(name: str, value: Any) -> float:
    seconds = real(name, value)
    if not 0 <= seconds < _LONGEST:
        raise Invalid(f"{name}: {seconds}: expected 0 to {_LONGEST} seconds")
    return seconds


def seconds_to_wait(wait: Any) -> float:
    """How long to wait for the first daemon: the argument, or else $SHUFD_WAIT, or else 0 seconds."""
    if wait is not None:
        return _seconds("wait", wait)
    text = os.environ.get(_WAIT, "")
    try:
        return _seconds(f"${_WAIT}", float(text or 0))
    except ValueError:
        raise Invalid(f"${_WAIT}: {text!r}: expected 0 to {_LONGEST} seconds") from None


def await_daemon(path: str | None, reconnect: float, wait: float) -> Connection:
    """A connection, as soon as a daemon answers. Fails after `wait` seconds, as Connection()."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return Connection(path, reconnect)
        except (NoDaemon, Timeout) as error:
            if time.monotonic() >= deadline or _errors.must_choose(str(error)):
                raise
        time.sleep(_POLL)


class Connection:
    """One handle of libshuf. The handle closes with this object and the last lease."""

    __slots__ = ("pointer", "generation", "path", "reconnects", "__weakref__")

    def __init__(self, path: str | None, reconnect: float = 10.0) -> None:
        self.generation = _process.generation
        self.path = path_of(path)
        socket = ffi.NULL if self.path is None else ffi.new("char[]", os.fsencode(self.path))
        limit = math.ceil(_seconds("reconnect", reconnect) * 1000)
        self.reconnects = limit > 0
        pointer = lib.shufpy_new()
        if not pointer:
            raise MemoryError
        # Owned before it connects: a signal handler may raise an exception after any instruction.
        self.pointer: Any = ffi.gc(pointer, lib.shufpy_disconnect)
        if lib.shufpy_connect(self.pointer, socket, limit):
            raise failure(self.path, was_connected=False)

    @property
    def socket(self) -> str:
        return str(ffi.string(lib.shufpy_socket(self.pointer)).decode(errors="replace"))

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function of calls.c and raises its error."""
        if function(self.pointer, *arguments):
            raise failure(self.path)

    def take(self, request: Any, options: Any) -> Any:
        """Takes a lease of a shuf_request with shuf_lease_options. Returns the lease, or raises the error."""
        lease = lib.shufpy_take(self.pointer, request, options)
        if not lease:
            raise failure(self.path)
        return lease

    def close(self) -> None:
        """Closes the handle when its last lease has ended. Calls fail from now on."""
        lib.shufpy_close(self.pointer)

    def cancel(self) -> None:
        """Ends the call of another thread, and the work of the daemon for it. Then close()."""
        lib.shufpy_cancel(self.pointer)


def failure(path: str | None, was_connected: bool = True) -> BaseException:
    """The error of the call that failed last in this thread: of a call to the daemon on the socket `path`,
    or to the default daemon; or the exception of a signal handler, such as KeyboardInterrupt."""
    if (interrupt := _process.take_interrupt()) is not None:
        return interrupt
    message = ffi.string(lib.shufpy_message()).decode(errors="replace")
    status = lib.shufpy_status()
    if status == lib.SHUFPY_CLOSED:
        return Closed(message)
    if status == lib.SHUF_NO_DAEMON and not _errors.must_choose(message):
        message = message.removesuffix(_HINT) + _advice(path, was_connected)
    return _errors.make(ffi.string(lib.shuf_status_name(status)).decode(), message, was_connected)


def _advice(path: str | None, was_connected: bool) -> str:
    """How to start the daemon that is missing."""
    if path and lifeline_of(path) in held_lifelines:
        return "; start another private daemon with shufd.serve()"
    command = f"shufd --socket {shlex.quote(path)}" if path else "shufd"
    start = f"; start a daemon with `{command} &`"
    if _ranks.launched_ranks() > 1:
        return start + _errors.ON_EACH
    return start if path or was_connected else start + _errors.OR_SERVE


# ---- Lifelines -----------------------------------------------------------------------------------
# A private daemon has a FIFO beside its socket, and ends when no process has the FIFO open for writing: see _serve.py.

held_lifelines: dict[str, int] = {}


def lifeline_of(socket: str) -> str:
    """The FIFO of the daemon on this socket."""
    return os.path.join(os.path.dirname(socket), "lifeline")


def hold_lifeline(socket: str) -> None:
    """Keeps a private daemon alive as long as this process. Does nothing for other daemons."""
    lifeline = lifeline_of(socket)
    if lifeline in held_lifelines or not os.path.exists(lifeline):
        return
    try:
        held_lifelines[lifeline] = os.open(lifeline, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # the daemon is ending
        pass


# ---- What all requests of a client need ----------------------------------------------------------

Array = np.ndarray[Any, Any]
Self = TypeVar("Self", bound="Calls")

PART = "offset= and count=, or rank= and world="  # arguments for a part of a permutation

_take_whole = lib.shufpy_take_whole
_integer = operator.index


class _Local(threading.local):
    """The connection of each thread."""

    connection: Connection | None = None


def options_for(device: Any) -> Any:
    """The options of a lease in the memory of `device`. Checks it."""
    if device is None:
        return _request.HOST
    device_of(device)
    return _request.DEVICE


class Calls:
    """The connections of a client, and the leases that it takes."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, reconnect: float = 10.0, wait: float | None = None
    ) -> None:
        self._path = path_of(path)
        self._reconnect = reconnect
        self._closed = False
        self._local = _Local()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._wait = seconds_to_wait(wait)
        self.socket: str = self._connection().socket
        self._wait = max(self._wait, self._reconnect)  # of later threads and children: the daemon was there
        hold_lifeline(self.socket)
        _daemon.warn_of_unused_gpu(self._connection())

    # ---- Connections -------------------------------------------------------------------------

    def _connection(self) -> Connection:
        """The connection of this thread, in this process."""
        connection = self._local.connection
        if connection is None or connection.generation != _process.generation or self._closed:
            return self._connect()
        return connection

    def _connect(self) -> Connection:
        if self._closed:
            raise Closed(f"client of {self.socket}: it is closed; call shufd.connect() again")
        connection = self._local.connection = await_daemon(self._path, self._reconnect, self._wait)
        self._connections.add(connection)
        return connection

    def _with(self, connection: Connection, function: Callable[[], Any]) -> Any:
        """Returns function(). Its calls in this thread use the connection of another thread."""
        local = self._local
        kept, local.connection = local.connection, connection
        try:
            return function()
        finally:
            local.connection = kept

    def _follow(self, other: Calls) -> None:
        """Lets all later calls use the daemon of another client. Calls that run, and arrays, keep their
        connections."""
        self._path, self.socket = other.socket, other.socket
        self._local = _Local()
        hold_lifeline(self.socket)

    def _cancel(self) -> None:
        """Ends the call of the main thread. Its next request uses a new connection."""
        connection, self._local.connection = self._local.connection, None
        if connection is not None:
            connection.cancel()

    def close(self) -> None:
        """Ends the connections of all threads. Arrays stay valid. Further calls do nothing."""
        self._closed = True
        for connection in list(self._connections):
            connection.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- Leases ------------------------------------------------------------------------------

    def _take(
        self, request: Any, size: int, title: str, progress: bool | None,
        device: Any = None, part: str | None = None,
    ) -> Lease:
        """Takes a lease of about `size` values. `part` names the arguments of a call for fewer of them."""
        connection = self._connection()
        options = options_for(device)

        def take() -> Lease:
            return Lease(connection.take(request, options))

        try:
            if size < _wait.LONG and not progress:
                return take()
            return _wait.run(take, title, progress, self._cancel)
        except Invalid:
            self._check_device(device)
            raise
        except (Busy, OutOfMemory) as error:
            raise self._advised(error, part) from None

    def _take_whole(self, n: int, seed: Any, epoch: int) -> Array | None:
        """A whole permutation by the default algorithm, in less time. None if it is large, or if an
        argument is no integer."""
        try:
            n = _integer(n)  # cffi takes some numbers that are no integers, and NumPy's wrap
            if n >= _wait.LONG:
                return None
            lease = _take_whole(self._connection().pointer, n, _integer(seed), _integer(epoch))
        except (OverflowError, TypeError):
            return None
        if not lease:
            raise self._advised(failure(self._path), PART)
        return array_of_u32(lease, n)

    def _advised(self, error: BaseException, part: str | None) -> BaseException:
        """The error of a call with what frees memory. `part` as in _take()."""
        if isinstance(error, Busy):
            return _daemon.with_prefetched(error, lambda: _daemon.leases(self._connection()))
        return advised(error, part)

    def _check_device(self, device: Any) -> None:
        """Fails if the daemon has no GPU for `device`. The daemon's own message would name transports,
        which Python does not have."""
        if device is not None and (backend := _daemon.status(self._connection())["backend"]) != "cuda":
            raise Invalid(
                f"device: {device!r}: this daemon has the backend {backend}; expected None, or a daemon on a machine with a "
                "GPU, whose build found nvcc: pip install ./client/python, then shufd.serve(backend='cuda')"
            ) from None

    def _result(self, lease: Lease, kind: Any, shape: tuple[int, ...] | None, device: Any) -> Any:
        if device is not None:
            return DeviceArray(lease, kind, shape if shape is not None else (lease.count,), device)
        array = lease.array(kind)
        return array if shape is None else array.reshape(shape)
