# SPDX-License-Identifier: MIT
"""The state of the daemon: its status, its leases, and the results that it keeps for reuse."""

from __future__ import annotations

from typing import Any

from . import _dtype
from ._connection import Connection
from ._shuf import ffi, lib

_TEXTS = ("version", "backend", "device", "device_id")
_NUMBERS = (
    "pid", "uptime_ms", "clients", "client_limit", "queued", "leases", "blocks", "memory_used", "memory_limit",
    "host_used", "host_limit", "host_idle", "device_idle", "hits", "computed",
)  # fmt: skip
_NAMES = {number: name for name, number in _dtype.NUMBERS.items()}


def _string(text: Any) -> str:
    return str(ffi.string(text).decode(errors="replace"))


def status(connection: Connection) -> dict[str, Any]:
    daemon = ffi.new("shuf_daemon *")
    connection.call(lib.shufpy_daemon_status, daemon)
    state: dict[str, Any] = {name: _string(getattr(daemon, name)) for name in _TEXTS}
    state.update({name: int(getattr(daemon, name)) for name in _NUMBERS})
    return state


def _request_of(entry: Any) -> dict[str, Any]:
    """The request whose result has the lease, by the names of the arguments of Client."""
    if entry.buffer:
        return {"kind": "buffer"}
    origin: dict[str, Any] = {"key": _string(entry.key)} if entry.key[0] != b"\0" else {"seed": entry.seed}
    if entry.distribution:
        kind = "normal" if entry.distribution == lib.SHUF_GAUSS else "uniform"
        return {"kind": kind, **origin, "stream": entry.stream, "offset": entry.offset,
                "dtype": _NAMES.get(entry.dtype)}  # fmt: skip
    if entry.world:
        return {"kind": "exchange", "n": entry.n, **origin, "epoch": entry.epoch, "rank": entry.rank,
                "world": entry.world, "inverse": entry.inverse, "part": entry.part,
                "algorithm": _string(entry.algorithm)}  # fmt: skip
    kind = ("unshuffle" if entry.inverse else "shuffle") if entry.record else "permute"
    algorithm = _string(entry.algorithm)
    return {"kind": kind, "n": entry.n, **origin, "epoch": entry.epoch, "algorithm": algorithm}


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
            **_request_of(entry),
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
