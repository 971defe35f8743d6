# SPDX-License-Identifier: MIT
"""The state of the daemon: its status, its leases, the results that it keeps for reuse, and its room for more."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, Callable

from . import _dtype, _request
from ._errors import Busy, Error
from ._shuf import ffi, lib

if TYPE_CHECKING:
    from ._connection import Connection

_TEXTS = ("version", "backend", "device", "device_id", "gpu_fault")
_NUMBERS = (
    "pid", "uptime_ms", "clients", "client_limit", "queued", "leases", "blocks", "memory_used", "memory_limit",
    "host_used", "host_limit", "host_idle", "device_idle", "hits", "computed",
)  # fmt: skip
_FUNCTIONS = {law.distribution: law.function for law in _request.LAWS.values()}
_NAMES = {number: name for name, number in _dtype.NUMBERS.items()}


def _string(text: Any) -> str:
    return "" if text == ffi.NULL else str(ffi.string(text).decode(errors="replace"))


def status(connection: Connection) -> dict[str, Any]:
    daemon = ffi.new("shuf_daemon *")
    connection.call(lib.shufpy_daemon_status, daemon)
    state: dict[str, Any] = {name: _string(getattr(daemon, name)) for name in _TEXTS}
    state.update({name: int(getattr(daemon, name)) for name in _NUMBERS})
    return state


_has_asked = False
_DRIVER = "/proc/driver/nvidia/version"  # there while the driver is loaded


def warn_of_unused_gpu(connection: Connection) -> None:
    """Warns once in a process if the machine has a driver for GPUs, but the daemon cannot use a GPU."""
    global _has_asked
    if _has_asked or not os.path.exists(_DRIVER):
        return
    _has_asked = True
    with contextlib.suppress(Error):
        if fault := status(connection)["gpu_fault"]:
            text = f"shufd: the daemon computes on the CPU; the GPU is not used: {fault}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def _origin(order: Any) -> dict[str, Any]:
    return {"key": _string(order.key)} if order.key else {"seed": order.seed}


def _permutation_of(order: Any) -> dict[str, Any]:
    return {"n": order.n, **_origin(order), "epoch": order.epoch, "algorithm": _string(order.algorithm)}


def _request_of(request: Any) -> dict[str, Any]:
    """The request whose result has the lease, by the names of the arguments of Client."""
    if request.kind == lib.SHUF_PERMUTATION:
        order = request.permutation
        windows = {"chunk": order.chunk, "window": order.window} if order.window else {}
        return {"kind": "permute", **_permutation_of(order), **windows}
    if request.kind == lib.SHUF_NUMBERS:
        law = request.numbers
        return {"kind": _FUNCTIONS.get(law.distribution, "other"), **_origin(law), "stream": law.stream, "offset": law.offset,
                "dtype": _NAMES.get(law.dtype)}  # fmt: skip
    if request.kind == lib.SHUF_RANKS:
        plan = request.ranks
        return {"kind": "exchange", **_permutation_of(plan), "rank": plan.rank, "world": plan.world,
                "inverse": plan.inverse, "part": plan.part}  # fmt: skip
    if request.kind == lib.SHUF_RECORDS:
        return {"kind": "unshuffle" if request.records.inverse else "shuffle", **_permutation_of(request.records)}
    return {"kind": "buffer" if request.kind == lib.SHUF_BUFFER else "other"}


@ffi.def_extern()
def shufpy_visit_lease(context: Any, entry: Any) -> bool:
    found: list[dict[str, Any]] = ffi.from_handle(context)
    found.append(
        {
            "id": entry.id,
            "pid": entry.pid,
            "uid": entry.uid,
            "transport": _string(lib.shuf_transport_name(entry.transport)),
            "prefetch": entry.prefetch,
            "ready": entry.ready,
            "age": entry.age_ms / 1000,
            "bytes": entry.block_bytes,
            "rows": entry.rows,
            "count": entry.count,
            **_request_of(entry.request),
        }
    )
    return True


def leases(connection: Connection) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    connection.call(lib.shufpy_leases, lib.shufpy_visit_lease, ffi.new_handle(found))
    return found


def drop(connection: Connection, everybody: bool) -> dict[str, int]:
    dropped = ffi.new("shuf_dropped *")
    connection.call(lib.shufpy_drop, lib.SHUF_ALL if everybody else lib.SHUF_OWN, dropped)
    return {name: int(getattr(dropped, name)) for name in ("results", "host_bytes", "device_bytes")}


# ---- Results that the daemon computes ahead ------------------------------------------------------

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
