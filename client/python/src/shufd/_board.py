# SPDX-License-Identifier: MIT
"""Values that the ranks of a process group post for each other in the group's store, on the host. NCCL would take a
kernel that waits on the GPU for the slowest rank, and meanwhile the daemon's kernels wait for this kernel."""

from __future__ import annotations

import uuid
import weakref
from typing import Any, Callable

import torch.distributed as dist

_MOST_RANKS = 64  # each rank reads the values of all others from one server
_EXTENDED = "has_extended_api"  # of stores that read several values in one call

_boards: weakref.WeakKeyDictionary[Any, Board | None] = weakref.WeakKeyDictionary()


class Board:
    """A turn of the board has a value of each rank."""

    def __init__(self, store: Any, name: str, rank: int, world: int) -> None:
        self.store, self.name, self.rank, self.world = store, name, rank, world
        self.turn = 0

    def exchange(self, value: bytes) -> list[bytes]:
        """The values of all ranks. Waits for them. Errors: RuntimeError of the store."""
        turn, self.turn = self.turn, self.turn + 1
        self.store.set(self._key(turn, self.rank), value)
        others = [rank for rank in range(self.world) if rank != self.rank]
        values = dict(zip(others, self._read([self._key(turn, rank) for rank in others])))
        if turn:  # all ranks have posted for this turn, so they have read the values of the one before
            self.store.delete_key(self._key(turn - 1, self.rank))
        return [values.get(rank, value) for rank in range(self.world)]

    def _key(self, turn: int, rank: int) -> str:
        return f"{self.name}/{turn}/{rank}"

    def _read(self, keys: list[str]) -> list[bytes]:
        if hasattr(self.store, _EXTENDED) and self.store.has_extended_api():
            return [bytes(value) for value in self.store.multi_get(keys)]
        return [bytes(self.store.get(key)) for key in keys]


def _store_of(group: Any) -> Any:
    """The store of a group if it is a server in memory. Other stores wait for files, or are none."""
    pairs = getattr(dist.distributed_c10d, "_pg_map", {})
    store = base = pairs.get(group, (None, None))[1]
    while hasattr(base, "underlying_store"):
        base = base.underlying_store
    return store if isinstance(base, dist.TCPStore) else None


def board_of(group: Any, rank: int, world: int, gather: Callable[[Any], list[Any]]) -> Board | None:
    """The board of a group, or None if it cannot have one. All ranks call it together the first time, and exchange an
    own name by `gather`: the store may still have the values of a group before."""
    if group not in _boards:
        store = _store_of(group) if world <= _MOST_RANKS else None
        replies = gather((store is not None, uuid.uuid4().hex))
        can = all(has_store for has_store, _ in replies)
        _boards[group] = Board(store, f"shufd/{replies[0][1]}", rank, world) if can else None
    return _boards[group]
