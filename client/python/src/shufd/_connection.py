# SPDX-License-Identifier: MIT
"""A connection to the daemon. calls.c has its lock, and the leases that it holds."""

from __future__ import annotations

import math
import os
import shlex
import time
from typing import Any, Callable

from . import _errors, _process, _ranks
from ._arguments import real, shown
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
        raise _errors.Invalid(f"path: {shown(socket)}: expected the path of a socket, or None")
    return path or None


def _seconds(name: str, value: Any) -> float:
    seconds = real(name, value)
    if not 0 <= seconds < _LONGEST:
        raise _errors.Invalid(f"{name}: {seconds}: expected 0 to {_LONGEST} seconds")
    return seconds


def seconds_to_wait(wait: Any) -> float:
    """How long to wait for the first daemon: the argument, or else $SHUFD_WAIT, or else 0 seconds."""
    if wait is not None:
        return _seconds("wait", wait)
    text = os.environ.get(_WAIT, "")
    try:
        return _seconds(f"${_WAIT}", float(text or 0))
    except ValueError:
        raise _errors.Invalid(f"${_WAIT}: {text!r}: expected 0 to {_LONGEST} seconds") from None


def await_daemon(path: str | None, reconnect: float, wait: float) -> Connection:
    """A connection, as soon as a daemon answers. Fails after `wait` seconds, as Connection()."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return Connection(path, reconnect)
        except (_errors.NoDaemon, _errors.Timeout) as error:
            if time.monotonic() >= deadline or _errors.must_choose(str(error)):
                raise
        time.sleep(_POLL)


class Connection:
    """One handle of libshuf. The handle closes with this object and the last lease."""

    __slots__ = ("pointer", "generation", "path", "__weakref__")

    def __init__(self, path: str | None, reconnect: float = 10.0) -> None:
        self.generation = _process.generation
        self.path = path_of(path)
        socket = ffi.NULL if self.path is None else ffi.new("char[]", os.fsencode(self.path))
        limit = math.ceil(_seconds("reconnect", reconnect) * 1000)
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
        return _errors.Closed(message)
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
