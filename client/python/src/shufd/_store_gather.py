# SPDX-License-Identifier: MIT
"""An all-gather of small values through the store of a process group, on the host. That of NCCL would run a kernel that
waits on the GPU for the slowest rank, and the daemon's kernels would have to wait for it."""

from __future__ import annotations

import contextlib
import datetime
import time
import uuid
import weakref
from typing import Any, Callable

import torch
import torch.distributed as dist

_MOST_RANKS = 64  # each rank reads the values of all others from one server
_EXTENDED = "has_extended_api"  # of stores that read several values in one call
_STEP_S = 1.0  # Python handles signals between two waits
_LINGER_S = 2.0
_VALUE, _LEFT = b"v", b"l"  # the first byte of an entry

_gathers: weakref.WeakKeyDictionary[Any, StoreGather | None] = weakref.WeakKeyDictionary()  # by group


class StoreGather:
    """Each round has an entry of each rank."""

    def __init__(self, store: Any, name: str, rank: int, world: int, timeout_s: float) -> None:
        self.store, self.name, self.rank, self.world, self.timeout_s = store, name, rank, world, timeout_s
        self.round = 0  # the next one
        self.has_left = False

    def gather(self, value: bytes) -> list[bytes]:
        """The values of all ranks. Waits for them. Errors: RuntimeError after the timeout, of the store, and if a rank
        has left."""
        if self.has_left:
            raise RuntimeError("this rank has left an earlier call; start all ranks again")
        round, self.round = self.round, self.round + 1
        self.store.set(self._key(round, self.rank), _VALUE + value)
        others = [rank for rank in range(self.world) if rank != self.rank]
        entries = dict(zip(others, self._read([self._key(round, rank) for rank in others])))
        for rank, entry in entries.items():
            if entry[:1] == _LEFT:
                raise RuntimeError(f"rank {rank} has left a call after an error; start all ranks again")
        if round:  # all ranks have written to this round, so they have read the one before
            self.store.delete_key(self._key(round - 1, self.rank))
        return [entries[rank][1:] if rank in entries else value for rank in range(self.world)]

    def leave(self) -> None:
        """After an error that the other ranks may not have: they fail in this round or in the next one."""
        self.has_left = True
        with contextlib.suppress(Exception):
            for round in range(max(0, self.round - 1), self.round + 1):
                self.store.set(self._key(round, self.rank), _LEFT)

    def finish(self) -> None:
        """Waits until all ranks have read the last round. All ranks call this if they may end now, because one of them
        may have the server of the store. Waits for a short time only."""
        key, end = f"{self.name}/{self.round}/finished", time.monotonic() + _LINGER_S
        with contextlib.suppress(Exception):  # the server has ended
            count = self.store.add(key, 1)
            while count < self.world and time.monotonic() < end:
                time.sleep(0.002)
                count = self.store.add(key, 0)

    def _key(self, round: int, rank: int) -> str:
        return f"{self.name}/{round}/{rank}"

    def _read(self, keys: list[str]) -> list[bytes]:
        self._wait(keys)
        if hasattr(self.store, _EXTENDED) and self.store.has_extended_api():
            return [bytes(entry) for entry in self.store.multi_get(keys)]
        return [bytes(self.store.get(key)) for key in keys]

    def _wait(self, keys: list[str]) -> None:
        end = time.monotonic() + self.timeout_s
        while True:
            began = time.monotonic()
            step = min(_STEP_S, max(0.001, end - began))
            try:
                self.store.wait(keys, datetime.timedelta(seconds=step))
                return
            except RuntimeError:
                now = time.monotonic()
                if now >= end or now - began < 0.9 * step:  # an error of the store comes earlier
                    raise


def _store_of(group: Any) -> Any:
    """The store of a group if it is a server in memory; None for a store in files, and without one."""
    pairs = getattr(dist.distributed_c10d, "_pg_map", {})
    store = base = pairs.get(group, (None, None))[1]
    while hasattr(base, "underlying_store"):
        base = base.underlying_store
    return store if isinstance(base, dist.TCPStore) else None


def _timeout_of(group: Any, store: Any) -> float:
    """The timeout of the group's engine, in seconds; with an older torch that of the store."""
    for device in ("cuda", "cpu"):
        with contextlib.suppress(Exception):
            return float(group._get_backend(torch.device(device)).options._timeout.total_seconds())
    return float(store.timeout.total_seconds())


def store_gather_of(
    group: Any, rank: int, world: int, gather: Callable[[Any], list[Any]]
) -> StoreGather | None:
    """That of a group, or None if it cannot have one. All ranks call this together the first time, and exchange an own
    name by `gather`: the store may still have the entries of a group before."""
    if group not in _gathers:
        store = _store_of(group) if world <= _MOST_RANKS else None
        replies = gather((store is not None, uuid.uuid4().hex))
        can = all(has_store for has_store, _ in replies)
        name = f"shufd/{replies[0][1]}"
        _gathers[group] = StoreGather(store, name, rank, world, _timeout_of(group, store)) if can else None
    return _gathers[group]
