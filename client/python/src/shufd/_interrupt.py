# SPDX-License-Identifier: MIT
"""Ctrl-C during a call. Python runs signal handlers only between its own instructions, so a call in C
that waits for the daemon runs them through this module."""

from __future__ import annotations

import ctypes
import threading

from ._shuf import ffi, lib

_raised: list[BaseException] = []  # by a handler in the call that the main thread makes


@ffi.def_extern()
def shufpy_run_signal_handlers() -> bool:
    """Whether a handler has raised an exception. Handlers run only in the main thread."""
    try:
        ctypes.pythonapi.PyErr_CheckSignals()
    except BaseException as error:  # the caller of the failed call raises it
        _raised.append(error)
        return True
    return False


def take() -> BaseException | None:
    """The exception of a handler that has ended the last call of this thread."""
    if not _raised or threading.current_thread() is not threading.main_thread():
        return None
    return _raised.pop()


lib.shufpy_watch_signals()
