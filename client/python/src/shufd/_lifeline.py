# SPDX-License-Identifier: MIT
"""The FIFO beside the socket of a private daemon. The daemon ends when no process has the FIFO open
for writing: see _serve.py."""

from __future__ import annotations

import os

held: dict[str, int] = {}


def path_of(socket: str) -> str:
    """The FIFO of the daemon on this socket."""
    return os.path.join(os.path.dirname(socket), "lifeline")


def hold(socket: str) -> None:
    """Keeps a private daemon alive as long as this process. Does nothing for other daemons."""
    lifeline = path_of(socket)
    if lifeline in held or not os.path.exists(lifeline):
        return
    try:
        held[lifeline] = os.open(lifeline, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # the daemon is ending
        pass
