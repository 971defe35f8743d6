# SPDX-License-Identifier: MIT
"""The programs shufd and shufctl, as console commands."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from ._errors import Error

# Variables for this process. A daemon would take those of a service manager for its own, and those of OpenMP
# would bind it to few processors.
_NOT_FOR_DAEMONS = (
    "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
    "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
)  # fmt: skip


def path_of(name: str) -> str:
    """The program of this package, else the one in $PATH, but none of the current directory."""
    own = pathlib.Path(__file__).parent / "bin" / name
    folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    found = str(own) if own.exists() else shutil.which(name, path=folders)
    if found is None:
        raise Error(f"program {name}: expected at {own} or in $PATH; install the package again")
    return found


def private_environment() -> dict[str, str]:
    """The environment of a daemon that this process starts. Its PATH also has the folders of the programs of
    the system, for the shell that starts the daemon."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_DAEMONS}
    environment["PATH"] = os.pathsep.join(filter(None, (environment.get("PATH"), os.defpath)))
    return {**environment, "SHUFD_STARTER": "shufd.serve()"}  # for the daemon's messages


def _become(name: str) -> None:
    program = path_of(name)
    os.execv(program, [name, *sys.argv[1:]])


def shufd() -> None:
    """The console command shufd."""
    _become("shufd")


def shufctl() -> None:
    """The console command shufctl."""
    _become("shufctl")
