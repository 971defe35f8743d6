# SPDX-License-Identifier: MIT
"""The plan of an exchange between ranks. Knows no framework."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The records that one rank sends and receives: read-only arrays of uint32, or of uint64 for ranks of 2^32
    records or more; in device memory, DeviceArrays. Sender and receiver have the records between them in the
    same order."""

    numbers: Numbers  #: all four lists, one after the other
    world: int
    sent: int  #: the records that this rank has

    @property
    def to(self) -> Numbers:
        """How many records go to each rank."""
        return self.numbers[: self.world]

    @property
    def arriving(self) -> Numbers:
        """How many records come from each rank."""
        return self.numbers[self.world : 2 * self.world]

    @property
    def order(self) -> Numbers:
        """order[k] is the own record to send as number k; first all for rank 0."""
        return self.numbers[2 * self.world : 2 * self.world + self.sent]

    @property
    def places(self) -> Numbers:
        """places[k] is the own place for arrival k; first all from rank 0."""
        return self.numbers[2 * self.world + self.sent :]


def slices_of(counts: list[int], index: int, rounds: int) -> list[slice]:
    """The parts of a list for round number `index` of `rounds`: which of its records each pair of ranks
    exchanges in this round. The list is `order`, with the counts `to`, or `places`, with the counts
    `arriving`. Sender and receiver divide their counts by the same rule."""
    begin, slices = 0, []
    for count in counts:
        slices.append(slice(begin + count * index // rounds, begin + count * (index + 1) // rounds))
        begin += count
    return slices
