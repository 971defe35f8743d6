# SPDX-License-Identifier: MIT
"""Staged moves by the operations of torch. They take any tensor on any device, with any engine."""

from __future__ import annotations

from typing import Callable

import torch

from ._move import StagedRounds, bytes_of, lengths

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as another type of the same size: torch copies by index only some types."""
    return tensor.view(_BITS[tensor.element_size()])


class TorchMove(StagedRounds):
    """Any tensor on any device, with any engine."""

    def _needed(self) -> int:
        lists = self.lists
        return int((lists.order.count + lists.places.count) * (self.row + lists.order.index_bytes))

    def count_rounds(self, budget: int) -> int:
        return self._fit(self._needed(), budget)

    def _allocate(self, rounds: int) -> torch.Tensor:
        """About as much as two rounds."""
        bytes = self._needed() if rounds == 1 else -(-2 * self._needed() // rounds)
        return torch.empty(bytes if self.leaf.device.type != "cpu" else 0, dtype=torch.uint8, device=self.leaf.device)

    def _start(self, round: int, rounds: int) -> Callable[[], None]:
        lists, device = self.lists, self.leaf.device
        leaving, coming = self.slices(round, rounds)
        index = lists.order.index(leaving, device)
        sent = bits_of(self._source().index_select(0, index).resolve_conj().resolve_neg().contiguous())
        del index
        to, arriving = lengths(leaving), lengths(coming)
        received = torch.empty((sum(arriving), *self.leaf.shape[1:]), dtype=sent.dtype, device=device)
        wait = self.ranks.start(
            bytes_of(received), bytes_of(sent), [c * self.row for c in arriving], [c * self.row for c in to]
        )

        def finish() -> None:
            wait()
            bits_of(self.out).index_copy_(0, lists.places.wide(coming, device), received)

        return finish

    def _source(self) -> torch.Tensor:
        """As bits, unless torch conjugates or negates the values when it reads them."""
        return self.leaf if self.leaf.is_conj() or self.leaf.is_neg() else bits_of(self.leaf)


class LocalMove(TorchMove):
    """A single rank has its places in ascending order, so it gathers into the result."""

    def run(self, rounds: int) -> torch.Tensor:
        for round in range(rounds if self.row else 0):
            (part,), _ = self.slices(round, rounds)
            index = self.lists.order.index([part], self.leaf.device)
            source = self._source()
            out = self.out if source is self.leaf else bits_of(self.out)
            torch.index_select(source, 0, index, out=out[part])
        return self.out
