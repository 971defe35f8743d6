# SPDX-License-Identifier: MIT
"""Counts the forks above this process. An object with an older generation belongs to a parent: its
connection, its locks and its CUDA context may not be used here."""

from __future__ import annotations

import os

generation = 0


def _count() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_count)
