# SPDX-License-Identifier: MIT
"""Ctrl-C during a call. Python runs signal handlers only between its own instructions, so a call in C
that waits for the daemon runs them through this module."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from ._shuf import ffi, lib

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


def take() -> BaseException | None:
    """The exception of a handler that has ended the last call of this thread."""
    if not _raised or threading.get_ident() != threading.main_thread().ident:
        return None
    return _raised.pop()


lib.shufpy_watch_signals()
