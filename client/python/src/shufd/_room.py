# SPDX-License-Identifier: MIT
"""Whether the daemon has room for a result that it computes ahead."""

from __future__ import annotations

import os
from typing import Any


def mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def lack(state: dict[str, Any], device: Any, size: int) -> tuple[str, str] | None:
    """Why a result of `size` bytes has no room beside those in use, and the name of the limit; None if it has room.
    `state` is that of Client.status()."""
    host = device is None or state["backend"] != "cuda"
    used, limit, idle = ("host_used", "host_limit", "host_idle") if host else (
        "memory_used", "memory_limit", "device_idle")  # fmt: skip
    held = state[used] - state[idle]
    if held + size <= state[limit]:
        return None
    name = "host_memory" if host else "device_memory"
    why = f"needs {mebibytes(size)}, and {mebibytes(held)} of {mebibytes(state[limit])} ({name}) are in use"
    return why, name


def is_waiting(leases: list[dict[str, Any]]) -> bool:
    """Whether a prefetch of this process is not computed."""
    return any(lease["prefetch"] and not lease["ready"] and lease["pid"] == os.getpid() for lease in leases)
