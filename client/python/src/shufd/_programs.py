# SPDX-License-Identifier: MIT
"""The programs shufd and shufctl, as console commands."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from ._errors import Error


def path_of(name: str) -> str:
    """The program of this package, else the one in $PATH, but none of the current directory."""
    own = pathlib.Path(__file__).parent / "bin" / name
    folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    found = str(own) if own.exists() else shutil.which(name, path=folders)
    if found is None:
        raise Error(f"program {name}: expected at {own} or in $PATH; install the package again")
    return found


def _become(name: str) -> None:
    program = path_of(name)
    os.execv(program, [name, *sys.argv[1:]])


def shufd() -> None:
    """The console command shufd."""
    _become("shufd")


def shufctl() -> None:
    """The console command shufctl."""
    _become("shufctl")
