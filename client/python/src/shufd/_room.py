# SPDX-License-Identifier: MIT
"""Results that the daemon computes ahead: whether it has room for one, and what those hold that nobody uses yet."""

from __future__ import annotations

import os
import re
from typing import Any, Callable

from ._errors import Busy, Error

_DROP = re.compile(r"[:;] drop an array \(del\).*$")  # the advice of a message


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


def with_prefetched(error: Busy, leases: Callable[[], list[dict[str, Any]]]) -> Busy:
    """The error with the memory that prefetched results of this process hold, and how to free it. Its own advice is
    about arrays."""
    if not _DROP.search(str(error)):
        return error
    try:
        own = [lease for lease in leases() if lease["pid"] == os.getpid()]
    except Error:
        return error
    on_gpu = " of device memory" in str(error)
    own = [lease for lease in own if lease["transport"].startswith("cuda") == on_gpu]
    held = sum(lease["bytes"] for lease in own if lease["prefetch"])
    if held == 0:
        return error
    array = "" if all(lease["prefetch"] for lease in own) else ", or drop an array (del)"
    advice = (
        f"; prefetched results of this process hold {mebibytes(held)}: use them (permute() with equal arguments, then "
        f"del), or free them with Client.drop(){array}"
    )
    return Busy(_DROP.sub(advice, str(error)))
