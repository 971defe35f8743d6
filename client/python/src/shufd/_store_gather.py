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
_COUNT = "/count"  # of a counter beside each entry, where the store of an older torch cannot check for a key
_WAIT_S = 1.0  # of the first wait. Python handles no signals during it, and torch prints a warning at its end
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 20e-6, 0.01
_LINGER_S = 2.0
_VALUE, _LEFT = b"v", b"l"  # the first byte of an entry

_gathers: weakref.WeakKeyDictionary[Any, StoreGather | None] = weakref.WeakKeyDictionary()  # by group


class StoreGather:
    """Each round has an entry of each rank."""

    def __init__(self, store: Any, name: str, rank: int, world: int, timeout_s: float) -> None:
        self.store, self.name, self.rank, self.world, self.timeout_s = store, name, rank, world, timeout_s
        self.others = [other for other in range(world) if other != rank]
        self.has_check = hasattr(store, "check")
        self.has_multi_get = hasattr(store, "has_extended_api") and store.has_extended_api()
        self.round = 0  # the next one
        self.kept = 0  # the oldest round whose entry of this rank may be in the store
        self.has_left = False
        self.value = b""  # of this rank in the last round

    def gather(self, value: bytes) -> list[bytes]:
        """send() and receive()"""
        self.send(value)
        return self.receive()

    def send(self, value: bytes) -> None:
        """Begins a round: gives the others the value of this rank. Errors: RuntimeError of the store, and if this rank
        has left."""
        self.check()
        round, self.round = self.round, self.round + 1
        self.value = value
        self._write(round, _VALUE + value)

    def receive(self) -> list[bytes]:
        """Ends the round: the values of all ranks. Waits for them. Errors: RuntimeError after the timeout, of the store,
        and if a rank has left."""
        entries = self._read(self.round - 1)
        return [entries[rank][1:] if rank in entries else self.value for rank in range(self.world)]

    def tidy(self) -> None:
        """Deletes entries of this rank that all ranks have read. Call it when nobody waits for this rank."""
        while self.kept < self.round - 1:  # all ranks have written to the last round, so they have read those before
            self._delete(self.kept)
            self.kept += 1

    def check(self) -> None:
        """Fails if this rank has left."""
        if self.has_left:
            raise RuntimeError("this rank has left an earlier call; start all ranks again")

    def check_others(self) -> None:
        """Fails if another rank has left and will not come to the next round."""
        self._look_for(self.round, {})

    def leave(self) -> None:
        """After an error that the other ranks may not have: they fail in this round or in the next one."""
        self.has_left = True
        with contextlib.suppress(Exception):
            for round in range(max(0, self.round - 1), self.round + 1):
                self._write(round, _LEFT)

    def finish(self) -> None:
        """Waits until all ranks have read the last round. All ranks call this if they may end now, because one of them
        may have the server of the store. Waits for a short time only."""
        key, end = f"{self.name}/{self.round}/finished", time.monotonic() + _LINGER_S
        with contextlib.suppress(Exception):  # the server has ended
            count = self.store.add(key, 1)
            while count < self.world and time.monotonic() < end:
                time.sleep(0.002)
                count = self.store.add(key, 0)
            if self.rank == 0:  # it may have the server, and the others may still ask
                time.sleep(0.02)

    def _key(self, round: int, rank: int) -> str:
        return f"{self.name}/{round}/{rank}"

    def _read(self, round: int) -> dict[int, bytes]:
        """The entries of the others."""
        entries: dict[int, bytes] = {}
        began, pause = time.monotonic(), _SHORTEST_PAUSE_S
        keys = [self._key(round, rank) for rank in self.others]
        if keys and self.has_multi_get and self._come_soon(keys):
            entries.update(zip(self.others, map(bytes, self.store.multi_get(keys))))
        while self._look_for(round, entries):
            if time.monotonic() >= began + self.timeout_s:
                missing = ", ".join(str(rank) for rank in self.others if rank not in entries)
                raise RuntimeError(f"no answer of rank {missing} within {self.timeout_s:g} s (timeout)")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return entries

    def _come_soon(self, keys: list[str]) -> bool:
        """Waits for the keys for a short time. Returns whether they have come. Not for an older torch, which counts keys
        wrong after a wait that ended without them."""
        began = time.monotonic()
        try:
            self.store.wait(keys, datetime.timedelta(seconds=_WAIT_S))
            return True
        except RuntimeError:
            if time.monotonic() < began + _WAIT_S / 2:  # an error of the store
                raise
            return False

    def _look_for(self, round: int, entries: dict[int, bytes]) -> bool:
        """Adds those entries of the others that are there. Fails if one of them says that its rank has left. Returns
        whether others are missing."""
        for rank in self.others:
            if rank not in entries and self._has(self._key(round, rank)):
                entries[rank] = bytes(self.store.get(self._key(round, rank)))
            if entries.get(rank, _VALUE)[:1] == _LEFT:
                raise RuntimeError(f"rank {rank} has left a call after an error; start all ranks again")
        return len(entries) < len(self.others)

    def _write(self, round: int, entry: bytes) -> None:
        key = self._key(round, self.rank)
        self.store.set(key, entry)
        if not self.has_check:
            self.store.add(key + _COUNT, 1)

    def _has(self, key: str) -> bool:
        if self.has_check:
            return bool(self.store.check([key]))
        return int(self.store.add(key + _COUNT, 0)) > 0

    def _delete(self, round: int) -> None:
        key = self._key(round, self.rank)
        self.store.delete_key(key)
        if not self.has_check:
            self.store.delete_key(key + _COUNT)


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


def known_store_gather_of(group: Any) -> StoreGather | None:
    """That of a group, if it has had one before."""
    return _gathers.get(group)


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
