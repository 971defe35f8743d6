# SPDX-License-Identifier: MIT
"""The names that dir() shows for a module."""

from __future__ import annotations

from typing import Callable, Iterable


def dir_of(names: Iterable[str]) -> Callable[[], list[str]]:
    """The function __dir__ of a module with these public names. Without it, dir() also shows the names that the
    module imports for its own use."""
    shown = sorted([*names, "__all__", "__doc__", "__file__", "__name__"])
    return lambda: shown
