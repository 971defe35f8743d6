# SPDX-License-Identifier: MIT
"""Moves that read the memory of the peers, on the GPUs of one machine."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ._kernel_move import PeerMove, overlapped
from ._move import lengths, row_bytes
from ._plan import slices_of
from ._plan_lists import Lists, merged
from ._process_group import Ranks
from ._row_kernel import Segment

NUMBER_BYTES = 4  # of a row's number, unless a rank has 2^32 rows
LEAST_DIRECT_BYTES = 64  # of a row, else pulled; bench/results/2026-11-25-h100-exchange


def is_wide(leaf: torch.Tensor) -> bool:
    return row_bytes(leaf) >= LEAST_DIRECT_BYTES


def item_bytes(leaf: torch.Tensor) -> int:
    """Bytes in the stage for each row: a number if the row is wide, else the row."""
    return NUMBER_BYTES if is_wide(leaf) else row_bytes(leaf)


def _rounds_of(leaf: torch.Tensor, budget: int) -> int:
    """The rounds in which the items fill half of the budget. A list that fits needs one round."""
    bytes = len(leaf) * item_bytes(leaf)
    least = 1 if is_wide(leaf) else overlapped(bytes)
    return max(least, -(-2 * bytes // budget))


class Stage:
    """The memory of a rank that its peers read. It has two halves, for two rounds."""

    def __init__(self, leaves: list[torch.Tensor], world: int, budget: int) -> None:
        """The tensors use the stage one after the other. They have the same number of rows."""

        def half(leaf: torch.Tensor) -> int:
            """Each peer may get one item more than its share."""
            return (len(leaf) // _rounds_of(leaf, budget) + world) * item_bytes(leaf)

        self.half = (max(half(leaf) for leaf in leaves) + 15) // 16 * 16
        self.memory = torch.empty(2 * self.half, dtype=torch.uint8, device=leaves[0].device)


class Peers(NamedTuple):
    """What this rank can read of the ranks: the addresses of their stages and tensors. A rank without records
    may have none."""

    stages: list[int]
    halves: list[int]  # bytes of a half of each stage
    tensors: list[int]  # only for wide rows


class _ReadMove(PeerMove):
    """The ranks read the stages of their peers. Between two rounds all ranks wait for each other. Then the stages
    of a round are full, and those of the round before have been read."""

    def __init__(
        self, ranks: Ranks, lists: Lists, leaf: torch.Tensor, out: torch.Tensor, stage: Stage | None, peers: Peers
    ) -> None:
        super().__init__(ranks, lists, leaf, out)
        self.stage, self.peers = stage, peers
        self.item = item_bytes(leaf)
        self.prepared = 0  # the rounds for which the stage is filled for the first one

    def count_rounds(self, budget: int) -> int:
        return self._fit(0, budget, _rounds_of(self.leaf, budget) if self.stage else 1)

    def forget_preparation(self) -> None:
        self.prepared = 0

    def _at(self, owner: int, receiver: int, round: int, rounds: int) -> int:
        """Where the stage of `owner` has the items for `receiver`."""
        to = self.lists.to if owner == self.ranks.rank else self.lists.all_to[owner]
        counts = lengths(slices_of(to, round, rounds))
        before = sum(counts[:receiver]) - (counts[owner] if owner < receiver else 0)
        return self.peers.stages[owner] + round % 2 * self.peers.halves[owner] + before * self.item

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        """The rows of a peer for these places, with the address of their items."""
        raise NotImplementedError

    def _reads(self, round: int, rounds: int) -> list[Segment]:
        _, coming = self._others(round, rounds)
        return [
            self._read(rank, self._at(rank, self.ranks.rank, round, rounds), part)
            for rank, part in enumerate(coming) if part.start < part.stop
        ]  # fmt: skip

    def _wait(self) -> None:
        self.ranks.wait_for_all(self.leaf.device)


class PulledMove(_ReadMove):
    """The items are rows. A launch of the kernel reads the rows of a round and gathers those of the next: the
    links limit the one, and the memory of the GPU limits the other. The own rows move in the last launch."""

    def _gathers(self, round: int, rounds: int) -> list[Segment]:
        leaving, _ = self._others(round, rounds)
        return [
            Segment(self.leaf.data_ptr(), self._at(self.ranks.rank, rank, round, rounds),
                    self.lists.order.address(part.start), 0, part.stop - part.start)
            for rank, part in enumerate(leaving) if part.start < part.stop
        ]  # fmt: skip

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        count = places.stop - places.start
        return Segment(items, self.out.data_ptr(), 0, self.lists.places.address(places.start), count)

    def prepare_beside(self, rounds: int) -> None:
        """Gathers the first rows."""
        self._table([self._gathers(0, rounds)]).launch(0)
        self.prepared = rounds

    def run(self, rounds: int) -> torch.Tensor:
        if self.prepared != rounds:
            self.prepare_beside(rounds)
        groups = [self._gathers(round, rounds) for round in range(1, rounds)] + [[self._own()]]
        for round in range(rounds):
            groups[round] += self._reads(round, rounds)
        table = self._table(groups)
        for round in range(rounds):
            self._wait()
            table.launch(round)
        self._wait()
        return self.out


class DirectMove(_ReadMove):
    """The items are the numbers of rows, and a rank reads these rows from the tensors of its peers. Until all
    ranks have read them, their owners may not change them."""

    def prepare(self, rounds: int) -> None:
        self._fill(0, rounds)
        self.prepared = rounds

    def _fill(self, round: int, rounds: int) -> None:
        """Copies the numbers into the stage."""
        if self.stage is None:
            return
        numbers, (leaving, _) = self.lists.order.numbers, self._others(round, rounds)
        half = self.stage.memory[round % 2 * self.stage.half :].view(numbers.dtype)
        for part in merged(leaving):
            count = part.stop - part.start
            half[:count].copy_(numbers[part])
            half = half[count:]

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        count = places.stop - places.start
        return Segment(
            self.peers.tensors[rank], self.out.data_ptr(), items, self.lists.places.address(places.start), count
        )

    def run(self, rounds: int) -> torch.Tensor:
        groups = [self._reads(round, rounds) for round in range(rounds)]
        groups[0].append(self._own())
        table = self._table(groups)
        for round in range(rounds):
            if round > 0 or self.prepared != rounds:
                self._fill(round, rounds)
                self._wait()
            table.launch(round)
        self._wait()
        return self.out
