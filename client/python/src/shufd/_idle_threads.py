# SPDX-License-Identifier: MIT
"""Threads that wait for their next work. A new thread starts up to 0.2 ms later than one that waits. _wait.py says why
this module uses the functions that the classes of `threading` are made of."""

from __future__ import annotations

import _thread
import os
from typing import Callable

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


def start(work: Callable[[], None]) -> None:
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
            except ValueError:  # start() has taken it, and gives it work
                pass
        work = seat.work.pop()
