# SPDX-License-Identifier: MIT
"""Moves by the kernel: contiguous tensors on the GPU that has the plan."""

from __future__ import annotations

from typing import Callable

import torch

from ._move import StagedRounds, lengths
from ._row_kernel import Segment, Table

_OVERLAPPED_ROUNDS = 4  # at least, so that the exchange of a round and the moves of another overlap
_SHORTEST_ROUND = 32 << 20  # bytes: below, the start of an exchange takes longer than the exchange


def overlapped(bytes: int) -> int:
    """The rounds in which the moves of one round and the exchange of another take place at the same time."""
    return max(1, min(_OVERLAPPED_ROUNDS, bytes // _SHORTEST_ROUND))


class _KernelMove(StagedRounds):
    """A contiguous tensor on the GPU that has the plan."""

    def _table(self, groups: list[list[Segment]]) -> Table:
        return Table(groups, self.row, self.lists.order.width, self.leaf.device)


class LocalKernelMove(_KernelMove):
    def count_rounds(self, budget: int) -> int:
        return 1

    def run(self, rounds: int) -> torch.Tensor:
        lists = self.lists
        segment = Segment(
            self.leaf.data_ptr(), self.out.data_ptr(), lists.order.address(0), 0, lists.order.count
        )
        self._table([[segment]]).launch(0)
        return self.out


class StagedMove(_KernelMove):
    """Two rounds have buffers. The own records go directly to their places. Only the others take part in the
    exchange."""

    def _own(self) -> Segment:
        rank, lists = self.ranks.rank, self.lists
        return Segment(
            self.leaf.data_ptr(), self.out.data_ptr(), lists.order.address(sum(lists.to[:rank])),
            lists.places.address(sum(lists.arriving[:rank])), lists.to[rank],
        )  # fmt: skip

    def _others(self, round: int, rounds: int) -> tuple[list[slice], list[slice]]:
        """The parts of order and places that this rank exchanges with other ranks in a round."""
        parts = self.slices(round, rounds)
        for slices in parts:
            own = slices[self.ranks.rank]
            slices[self.ranks.rank] = slice(own.start, own.start)
        return parts

    def _exchanged(self) -> int:
        """The records that this rank sends to others and gets from others."""
        lists = self.lists
        return int(lists.order.count + lists.places.count - 2 * lists.to[self.ranks.rank])

    def count_rounds(self, budget: int) -> int:
        needed = self._exchanged() * self.row
        return self._fit(needed, budget, overlapped(needed // 2))

    def _allocate(self, rounds: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The buffers of one or two rounds, for sent and for received rows."""
        parts = [self._others(round, rounds) for round in range(rounds)]

        def buffer(side: int) -> torch.Tensor:
            most = max(sum(lengths(part[side])) for part in parts)
            return torch.empty(most * self.row, dtype=torch.uint8, device=self.leaf.device)

        return [(buffer(0), buffer(1)) for _ in range(min(2, rounds))]

    def _gather(self, leaving: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, target = [], buffer.data_ptr()
        for part, count in zip(leaving, lengths(leaving)):
            segments.append(Segment(self.leaf.data_ptr(), target, self.lists.order.address(part.start), 0, count))
            target += count * self.row
        return segments

    def _scatter(self, coming: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, source = [], buffer.data_ptr()
        for part, count in zip(coming, lengths(coming)):
            segments.append(Segment(source, self.out.data_ptr(), 0, self.lists.places.address(part.start), count))
            source += count * self.row
        return segments

    def run(self, rounds: int) -> torch.Tensor:
        if self.row == 0:
            return self.out
        self.parts = [self._others(round, rounds) for round in range(rounds)]
        self.buffers = self._allocate(rounds)
        groups = [[self._own()]]
        for round, (leaving, coming) in enumerate(self.parts):
            sent, received = self.buffers[round % 2]
            groups += [self._gather(leaving, sent), self._scatter(coming, received)]
        self.table = self._table(groups)
        try:
            return super().run(rounds)
        finally:
            del self.buffers, self.table, self.parts  # the next tensor needs the memory

    def _start(self, round: int, rounds: int) -> Callable[[], None]:
        """The buffers are free: the stream has waited for the exchange that used them before, and its
        scatter precedes this gather."""
        to, arriving = (lengths(slices) for slices in self.parts[round])
        sent, received = self.buffers[round % 2]
        self.table.launch(1 + 2 * round)
        wait = self.ranks.start(
            received[: sum(arriving) * self.row], sent[: sum(to) * self.row], [c * self.row for c in arriving],
            [c * self.row for c in to],
        )  # fmt: skip
        if round == 0:
            self.table.launch(0)

        def finish() -> None:
            wait()
            self.table.launch(2 + 2 * round)

        return finish
