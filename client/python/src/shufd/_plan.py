# SPDX-License-Identifier: MIT
"""The plan of an exchange between ranks. Knows no framework."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Sequence

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


PART_UNIT = 1 << 16  # places
NUMBER_BYTES = 4  # of a one-sided plan
_WINDOW_BITS, _WINDOWS_MOST = 21, 256


def first_windows(sizes: Sequence[int]) -> list[int]:
    """The number of the first window of each rank, and at the end the number of all windows. The ranks have
    `sizes` records."""
    bits = _WINDOW_BITS
    while sum(-(-size >> bits) for size in sizes) > _WINDOWS_MOST:
        bits += 1
    return list(itertools.accumulate((-(-size >> bits) for size in sizes), initial=0))


@dataclasses.dataclass(frozen=True)
class OneSidedPlan:
    """The records for the places of one rank: read-only arrays of uint32; in device memory, DeviceArrays. The
    places are divided into parts. In a part, the records are listed by the windows of their ranks."""

    numbers: Numbers  #: all three lists, one after the other
    sizes: tuple[int, ...]  #: the records that each rank has
    places: int  #: the records that this rank gets
    part: int  #: places of a part; the last one may have fewer

    @property
    def parts(self) -> int:
        return max(1, -(-self.places // self.part))

    @property
    def windows(self) -> list[int]:
        """The number of the first window of each rank, and at the end the number of all windows."""
        return first_windows(self.sizes)

    @property
    def begins(self) -> Numbers:
        """For each part, where the records of each window begin in the list of the part, and the places of
        the part."""
        return self.numbers[: self.parts * (self.windows[-1] + 1)]

    @property
    def records(self) -> Numbers:
        """The numbers of the records on their ranks, part by part, and in a part window by window."""
        return self.numbers[len(self.numbers) - 2 * self.places : len(self.numbers) - self.places]

    @property
    def indices(self) -> Numbers:
        """For each place, which one of the records of its part it gets."""
        return self.numbers[len(self.numbers) - self.places :]


def slices_of(counts: list[int], index: int, rounds: int) -> list[slice]:
    """The parts of a list for round number `index` of `rounds`: which of its records each pair of ranks
    exchanges in this round. The list is `order`, with the counts `to`, or `places`, with the counts
    `arriving`. Sender and receiver divide their counts by the same rule."""
    begin, slices = 0, []
    for count in counts:
        slices.append(slice(begin + count * index // rounds, begin + count * (index + 1) // rounds))
        begin += count
    return slices
