# SPDX-License-Identifier: MIT
"""What all requests of a client need: a connection for each thread, and leases."""

from __future__ import annotations

import operator
import os
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, TypeVar, Union

import numpy as np

from . import _daemon, _process, _request, _wait
from ._connection import Connection, await_daemon, failure, hold_lifeline, path_of, seconds_to_wait
from ._device import DeviceArray, Lease, array_of_u32, device_of
from ._errors import Busy, Closed, Invalid, OutOfMemory, advised
from ._shuf import lib

Array = np.ndarray[Any, Any]
Result = Union[Array, DeviceArray]
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
                f"device: {device!r}: this daemon has the backend {backend}; expected None, or a daemon with a GPU"
            ) from None

    def _result(self, lease: Lease, kind: Any, shape: tuple[int, ...] | None, device: Any) -> Any:
        if device is not None:
            return DeviceArray(lease, kind, shape if shape is not None else (lease.count,), device)
        array = lease.array(kind)
        return array if shape is None else array.reshape(shape)
