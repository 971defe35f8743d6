# SPDX-License-Identifier: MIT
"""Device memory of the daemon that stays mapped in this process between the calls of global_shuffle(). Mapping takes
longer the larger the block is, and the more ranks map at the same time: four ranks with plans of 2 GiB save 0.9 ms
(bench/results/2026-11-26-h200-shuffle).

The daemon cannot free a block that is mapped. So blocks stay mapped only if the daemon uses them again, and are
unmapped some seconds after the last call.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from typing import Any

from ._shuf import lib

SECONDS = 10.0
_BLOCKS = 2  # that the daemon uses in turn
_SMALL = 4 << 20  # bytes of a block that libshuf keeps mapped by itself

_kept: weakref.WeakKeyDictionary[Any, _Kept] = weakref.WeakKeyDictionary()  # by connection


class _Kept:
    """What stays mapped of a connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = weakref.ref(connection)
        self.lock = threading.Lock()
        self.seen: deque[int] = deque(maxlen=2 * _BLOCKS)
        self.limit = 0  # bytes
        self.last = 0.0  # time of the last call
        self.has_timer = False

    def use(self, block: int, bytes: int) -> None:
        with self.lock:
            self.last = time.monotonic()
            if block not in self.seen:
                self.seen.append(block)
            elif self._start_timer(SECONDS) and self.limit < _BLOCKS * bytes:
                self._set_limit(_BLOCKS * bytes)

    def _set_limit(self, bytes: int) -> None:
        connection = self.connection()
        if connection is not None:
            connection.call(lib.shufpy_set_idle_mappings, bytes)
        self.limit = bytes

    def _start_timer(self, seconds: float) -> bool:
        """Whether a timer runs. No thread may be able to start."""
        if not self.has_timer:
            timer = threading.Timer(seconds, self._end)
            timer.daemon = True
            with contextlib.suppress(RuntimeError):
                timer.start()
                self.has_timer = True
        return self.has_timer

    def _end(self) -> None:
        with self.lock:
            self.has_timer = False
            rest = self.last + SECONDS - time.monotonic()
            if rest > 0 and self._start_timer(rest):
                return
            self.limit = 0  # also after an error
            with contextlib.suppress(Exception):  # of a daemon that has ended
                self._set_limit(0)


def keep(connection: Any, block: int, bytes: int) -> None:
    """Keeps a block of so many bytes mapped after its lease, if the daemon has used it for an earlier plan. Errors: as of
    any call."""
    if bytes <= _SMALL:
        return
    if connection not in _kept:
        _kept[connection] = _Kept(connection)
    _kept[connection].use(block, bytes)
