# SPDX-License-Identifier: MIT
"""The process: its forks, and its signal handlers during a call in C."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any

from ._shuf import ffi, lib

# ---- Forks ---------------------------------------------------------------------------------------
# An object with an older generation belongs to a parent: its connection, its locks and its CUDA context may not be used
# here. Objects that a child may use get new locks.

generation = 0  # the number of forks above this process
_places: weakref.WeakSet[Any] = weakref.WeakSet()


def locks_for(place: Any) -> tuple[Any, Any]:
    """The locks `_lock` and `_busy` of an object. A thread holds `_busy` only with `_lock`. In a child of a fork() the object
    gets new ones if another thread held them, because the child does not have that thread."""
    _places.add(place)
    return threading.RLock(), threading.Lock()


def _begin_child() -> None:
    global generation
    generation += 1
    for place in list(_places):
        if place._lock.acquire(blocking=False):
            place._lock.release()
        else:
            place._lock, place._busy = locks_for(place)


os.register_at_fork(after_in_child=_begin_child)


# ---- Ctrl-C during a call ------------------------------------------------------------------------
# Python runs signal handlers only between its own instructions, so a call in C that waits for the daemon runs them
# through shufpy_run_signal_handlers().

_raised: list[BaseException] = []  # by a handler in the call that the main thread makes


def _keep(kind: Any, error: BaseException, trace: Any) -> None:
    """The caller of the call that fails then raises the exception."""
    _raised.append(error)


@ffi.def_extern(error=True, onerror=_keep)
def shufpy_run_signal_handlers() -> bool:
    """Whether a handler has raised an exception. Handlers run only in the main thread. They may run as soon
    as this function begins, so it cannot catch their exceptions itself."""
    ctypes.pythonapi.PyErr_CheckSignals()
    return False


def take_interrupt() -> BaseException | None:
    """The exception of a handler that has ended the last call of this thread."""
    if not _raised or threading.get_ident() != threading.main_thread().ident:
        return None
    return _raised.pop()


lib.shufpy_watch_signals()
