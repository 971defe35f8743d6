# SPDX-License-Identifier: MIT
"""Calls in other threads.

Python runs signal handlers only between its own instructions, so Ctrl-C cannot end a call in C. So if the main thread
makes a long call, the call runs in another thread. The main thread waits for it and shows progress. A handler may raise
an exception between any two instructions, and the classes of `threading` do not survive that, so this module uses the
functions that they are made of.
"""

from __future__ import annotations

import _thread
import importlib.util
import os
import sys
import threading
import time
import warnings
from typing import Any, Callable, TypeVar

T = TypeVar("T")

LONG = 1 << 22  # values; a smaller result takes a few milliseconds
_PATIENCE = 2.0  # seconds without a bar


def _bar(title: str) -> Any:
    """tqdm's line with the elapsed time, or None without tqdm. The daemon does not tell how far it is."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc=title, bar_format="{desc}: {elapsed}", file=sys.stderr, leave=False)


def _watch(done: _thread.LockType, title: str, progress: bool | None) -> None:
    """Waits for the release of a lock, and after a while shows the time."""
    start = time.monotonic()
    visible = getattr(sys.stderr, "isatty", bool)() if progress is None else progress
    bar = _bar(title) if progress else None
    try:
        # Not for ever: a signal just before the wait does not end it.
        while not done.acquire(timeout=0.1 if visible else 1.0):
            if bar is None and visible and time.monotonic() - start > _PATIENCE:
                bar = _bar(title)
            if bar is not None:
                bar.refresh()
    finally:
        if bar is not None:
            bar.close()


def _start_thread(work: Callable[[], None]) -> None:
    _thread.start_new_thread(work, ())


class Work:
    """A call of a function in another thread."""

    def __init__(self, function: Callable[[], T], start: Callable[[Callable[[], None]], None] = _start_thread) -> None:
        """`start` calls its argument in another thread."""
        self._started, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._started.acquire()
        self._done.acquire()
        self._functions, self._outcome = [function], list[Any]()
        start(self._work)

    def _work(self) -> None:
        self._started.release()
        try:
            self._outcome.extend((self._functions.pop()(), None))  # the thread may end later and keeps no reference
        except BaseException as error:  # passed on to the caller, without this frame
            self._outcome.extend((None, error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)))
        finally:
            self._done.release()

    def wait_for_start(self) -> None:
        """Waits until the thread runs. The function then runs until it releases Python's global lock. Without this call it
        may start only when the caller waits."""
        self._started.acquire()

    def wait(self, title: str = "", progress: bool | None = False) -> None:
        _watch(self._done, title, progress)

    def result(self) -> Any:
        """Returns what the function returned, or raises its exception. Call it once, after wait()."""
        value, error = self._outcome
        self._outcome.clear()
        try:
            if error is not None:
                raise error
            return value
        finally:
            del error  # its traceback refers to this frame; a cycle would keep the caller's objects alive


def run(function: Callable[[], T], title: str, progress: bool | None, cancel: Callable[[], None]) -> T:
    """Returns function(). After an exception of a signal handler, such as KeyboardInterrupt, calls
    `cancel`. function() then ends in the background, and its result is not used."""
    if threading.get_ident() != threading.main_thread().ident:
        return function()
    if progress and importlib.util.find_spec("tqdm") is None:  # Python shows this warning once
        text = "progress=True: shows nothing without the package tqdm; install tqdm"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    try:
        work = Work(function)
        work.wait(title, progress)
    except BaseException:
        cancel()
        raise
    return work.result()  # type: ignore[no-any-return]


# ---- Threads that wait for their next work -------------------------------------------------------

IDLE_S = 10.0  # a thread without work ends after so long


class _Seat:
    """A thread that waits for work. Work in the list comes before the release of the lock."""

    __slots__ = ("lock", "work")

    def __init__(self) -> None:
        self.lock = _thread.allocate_lock()
        self.lock.acquire()
        self.work: list[Callable[[], None]] = []


_seats: list[_Seat] = []
os.register_at_fork(after_in_child=_seats.clear)  # a child has none of the threads


def start_in_idle_thread(work: Callable[[], None]) -> None:
    """Runs work() in another thread. It must not raise an exception. If a signal handler raises one in this call, the
    thread may wait until the process ends."""
    try:
        seat = _seats.pop()
    except IndexError:
        _thread.start_new_thread(_serve, (work,))
        return
    seat.work.append(work)
    seat.lock.release()


def _serve(work: Callable[[], None]) -> None:
    while True:
        work()
        del work
        seat = _Seat()
        _seats.append(seat)
        while not seat.lock.acquire(timeout=IDLE_S):
            try:
                _seats.remove(seat)
                return
            except ValueError:  # start_in_idle_thread() has taken it, and gives it work
                pass
        work = seat.work.pop()
