# SPDX-License-Identifier: MIT
"""The exchange of the rows of one tensor by the plans of its ranks.

There are three methods, which take memory up to a budget. One takes plans of both sides:

*Staged*   In each of several rounds, each rank gathers the rows that it sends, the engine of torch.distributed
           exchanges them, and each rank puts the arrivals in their places. Kernels move the rows, or operations of torch.

Two take one-sided plans, and need GPUs that can read and write the memory of each other:

*Direct*   Each rank reads its rows from the tensors of the others.
*Written*  Each rank writes into memory of the others which records it takes. They write the rows into memory of
           this rank, which puts them in their places.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from ._errors import OutOfMemory
from ._plan import slices_of
from ._plan_lists import BothSidesLists
from ._process_group import Ranks


def row_bytes(tensor: torch.Tensor) -> int:
    return int(math.prod(tensor.shape[1:]) * tensor.element_size())


_LEAST_BUDGET = 4 << 20  # bytes: torch takes at least 2 MiB from the GPU at a time


class Move:
    """The exchange of one tensor into another. A method is a subclass."""

    def __init__(self, ranks: Ranks, leaf: torch.Tensor, out: torch.Tensor) -> None:
        self.ranks, self.leaf, self.out = ranks, leaf, out
        self.row = row_bytes(leaf)

    def count_rounds(self, budget: int) -> int:
        """The rounds that this rank needs; all ranks then use the largest number."""
        return 1

    def reserve(self, budget: int) -> int:
        """As count_rounds(), but more rounds if the GPU has no memory for so few. Errors: OutOfMemory if it has none for
        the most rounds."""
        rounds, most = self.count_rounds(budget), self.count_rounds(_LEAST_BUDGET)
        while not self._can_allocate(rounds):
            if rounds >= most:
                raise OutOfMemory(f"no memory on {self.leaf.device} for the buffers of the shortest rounds")
            rounds = min(2 * rounds, most)
        return rounds

    def _can_allocate(self, rounds: int) -> bool:
        try:
            self._allocate(rounds)
        except torch.cuda.OutOfMemoryError:
            return False
        return True

    def _allocate(self, rounds: int) -> Any:
        """Returns the temporary memory of so many rounds. The allocator of torch keeps it for run()."""

    def prepare(self) -> Any:
        """Allocates and looks up what run() needs, before the ranks agree. May return an event, for which all ranks wait
        before run()."""

    def begin(self) -> None:
        """Starts what needs no agreement on the rounds, after prepare(). The others may already count on this rank."""

    def run(self, rounds: int) -> torch.Tensor:
        raise NotImplementedError


class StagedRounds(Move):
    """The rounds of a plan of both sides."""

    def __init__(self, ranks: Ranks, lists: BothSidesLists, leaf: torch.Tensor, out: torch.Tensor) -> None:
        super().__init__(ranks, leaf, out)
        self.lists = lists

    def _fit(self, needed: int, budget: int, least: int = 1) -> int:
        """Two rounds run at the same time, so each may use half of the budget. If two ranks exchange k
        records at most, there are at most k rounds, because further rounds would be empty."""
        most: int = max(1, *self.lists.to, *self.lists.arriving)
        return min(most, max(least, 1 if needed <= budget else int(-(-2 * needed // budget))))

    def slices(self, round: int, rounds: int) -> tuple[list[slice], list[slice]]:
        """The parts of order and places that the ranks exchange in a round."""
        return slices_of(self.lists.to, round, rounds), slices_of(self.lists.arriving, round, rounds)

    def _start(self, round: int, rounds: int) -> Callable[[], None]:
        """Starts a round. Returns a function that waits for it and ends it."""
        raise NotImplementedError

    def run(self, rounds: int) -> torch.Tensor:
        """Exchanges all rounds. While the records of one round are sent, gathers those of the next. With
        NCCL the host only queues this work: the exchange has a CUDA stream of its own."""
        before: Callable[[], None] | None = None
        for round in range(rounds if self.row else 0):
            now = self._start(round, rounds)
            if before:
                before()
            before = now
        if before:
            before()
        return self.out


def lengths(slices: list[slice]) -> list[int]:
    return [part.stop - part.start for part in slices]


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
