# SPDX-License-Identifier: MIT
"""Counts the forks above this process. An object with an older generation belongs to a parent: its
connection, its locks and its CUDA context may not be used here. Objects that a child may use get new locks."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

generation = 0
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
