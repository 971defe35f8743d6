# SPDX-License-Identifier: MIT
"""The errors of this package: one class for each status of libshuf, below `Error`.

A message is the daemon's or libshuf's own line. It names the field, its value and the expected
value. Each class is also the nearest built-in class, so `except ValueError` catches `Invalid`.
"""

from __future__ import annotations

import re
from typing import TypeVar


class Error(Exception):
    """The base of all errors of this package."""


_Error = TypeVar("_Error", bound=Error)


class Invalid(Error, ValueError):
    """An argument is outside its range. The message names it, its value and the range."""


class NoDaemon(Error, ConnectionError):
    """No daemon answers on the socket. Start one with the program `shufd`, or call `serve()`."""


class DaemonLost(NoDaemon):
    """The daemon ended, and no other one came within 10 s. Later calls try once to connect. `serve()` starts
    another private daemon, which the functions of the module then use."""


class Busy(Error):
    """Results that are in use leave no room now. If they are arrays of this process, drop them (`del`); if
    they are prefetched, free them by `Client.drop()`; else try again later."""


class Denied(Error, PermissionError):
    """This user may not use the socket or the transport."""


class OutOfMemory(Error, MemoryError):
    """The result does not fit the memory of the daemon or of this process."""


class DeviceError(Error, RuntimeError):
    """The GPU failed, or this process cannot see it."""


class VersionMismatch(Error):
    """The daemon has another version of the protocol. Update it or this package."""


class ProtocolError(Error):
    """The peer on the socket is no shufd."""


class Timeout(Error, TimeoutError):
    """The daemon did not answer in time."""


class Cancelled(Error):
    """The caller stopped the transfer."""


class IOFailure(Error, OSError):
    """A system call failed, in this process or in the daemon."""


class InternalError(Error, RuntimeError):
    """A bug in shufd. Please report it."""


class Closed(Error, ValueError):
    """The object was closed before."""


class Mismatch(Error):
    """A rank differs from the first rank: in its permutation, or in the arguments of a call of all ranks."""


BY_STATUS: dict[str, type[Error]] = {
    "INVALID": Invalid,
    "NO_DAEMON": NoDaemon,
    "BUSY": Busy,
    "DENIED": Denied,
    "NO_MEMORY": OutOfMemory,
    "DEVICE": DeviceError,
    "VERSION": VersionMismatch,
    "PROTOCOL": ProtocolError,
    "TIMEOUT": Timeout,
    "CANCELLED": Cancelled,
    "IO": IOFailure,
    "INTERNAL": InternalError,
}

OR_SERVE = ", or call shufd.serve()"
ON_EACH = " on each machine before the ranks"
_CHOICE = re.compile(r"/GPU-\*\.sock \((several|one,)")  # libshuf, if the process must choose a daemon


def must_choose(message: str) -> bool:
    """True if daemons of GPUs run, but none is that of this process's GPU. A private daemon would compute
    on the wrong device, and the caller would not notice it."""
    return _CHOICE.search(message) is not None


# The daemon's advice about leases. In Python an array has the lease.
_GIVE_BACK = {
    "release a lease": "drop an array (del)",
    "release leases": "drop arrays (del)",
    "give some back first": "drop some arrays (del) first",
}


def make(status: str, message: str, was_connected: bool) -> Error:
    """The exception for a status of libshuf, such as "NO_DAEMON"."""
    cls = BY_STATUS.get(status, Error)
    if cls is Busy:
        for advice, own in _GIVE_BACK.items():
            message = message.replace(advice, own)
    return DaemonLost(message) if cls is NoDaemon and was_connected else cls(message)


def advised(error: BaseException, part: str | None) -> BaseException:
    """The error of a call. OutOfMemory also names the arguments for a part of the result, if there are any."""
    if part is None or not isinstance(error, OutOfMemory):
        return error
    return OutOfMemory(f"{error}; a part needs less memory: {part}")


def for_rank(error: NoDaemon, world: int) -> NoDaemon:
    """The error for one of several ranks, which starts no private daemon: each rank would start its own. Without a
    launcher, one process may have the samplers of all ranks, and serve() is then right."""
    if must_choose(str(error)):
        return error
    reason = str(error).removesuffix(OR_SERVE)
    alone = "; if one process has all ranks, call shufd.serve()" if reason != str(error) else ""
    return NoDaemon(f"{reason.removesuffix(ON_EACH)}{ON_EACH}; not started privately for one of {world} ranks{alone}")


def renamed(error: _Error, **names: str) -> _Error:
    """The error of libshuf about a value, with a field's name replaced by that of Python's argument."""
    fields = "|".join(names)
    return type(error)(
        re.sub(rf"\b({fields})(?=\[| [-\d.]| nan\b| inf\b)", lambda field: names[field[0]], str(error))
    )
