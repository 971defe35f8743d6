# SPDX-License-Identifier: MIT
"""The indices that a rank draws: its share of an order, and its place there."""

from __future__ import annotations

import collections
import dataclasses
import operator
from typing import Any, Iterable, Iterator

import numpy as np

from ._orders import CHUNK, Indices, Read


@dataclasses.dataclass(frozen=True)
class Share:
    """The positions of one rank from the global position `start` on."""

    n: int
    rank: int
    world: int
    drop_last: bool
    start: int = 0

    def __len__(self) -> int:
        rest = max(0, self.n - self.start)
        return rest // self.world if self.drop_last else -(-rest // self.world)

    def position(self, step: int) -> int:
        """The global position after `step` steps of all ranks."""
        return min(self.n, self.start + step * self.world) if step < len(self) else self.n

    def read(self, order: Read, begin: int, end: int) -> Indices:
        """The indices of the steps begin .. end - 1. Positions of n or more are padding: they repeat
        the order from its beginning."""
        first = self.start + self.rank + begin * self.world
        whole = min(end - begin, max(0, -((first - self.n) // self.world)))
        part = order(first, whole, self.world) if whole else None
        if whole == end - begin and part is not None:
            return part
        padding = [
            order((first + k * self.world) % self.n, 1, 1) for k in range(whole, end - begin)
        ]
        return np.concatenate(([] if part is None else [part]) + padding)


class Cursor:
    """The place of an iteration. It converts the indices to integers of Python chunk by chunk. The
    iterator of a chunk knows how many indices are left in it, so this class need not count each one."""

    def __init__(self, share: Share, order: Read, ranks: int = 1) -> None:
        self.share, self.ranks = share, ranks  # a framework divides the indices of the share between so many ranks
        self.description: dict[str, Any] = {}  # the fields of a state apart from the position
        self.is_skipped = False  # a loader skips its first batches
        self._order = order
        self._drawn = 0  # steps, with the whole chunk
        self._chunk: Iterator[int] = iter(())

    @property
    def step(self) -> int:
        """The number of steps that this rank has drawn."""
        return self._drawn - operator.length_hint(self._chunk)

    @property
    def position(self) -> int:
        """The global position."""
        return self.share.position(self.step)

    def take(self, most: int) -> Indices:
        """The next indices, at most so many, as an array: a view of the order where possible."""
        begin, end = self._drawn, min(len(self.share), self._drawn + most)
        indices = self.share.read(self._order, begin, end) if end > begin else np.empty(0, np.int64)
        self._drawn = end
        return indices

    def drop_chunk(self) -> None:
        """Leaves out the rest of the chunk."""
        collections.deque(self._chunk, maxlen=0)

    def chunks(self) -> Iterator[Iterable[int]]:
        """Iterators over the next indices, chunk by chunk."""
        while (chunk := self.next_chunk()) is not None:
            yield chunk

    def next_chunk(self) -> Iterator[int] | None:
        """An iterator over the next indices; None at the end."""
        values = self.take(CHUNK).tolist()
        if not values:
            return None
        self._chunk = iter(values)
        return self._chunk
