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
    records or more. Sender and receiver have the records between them in the same order."""

    to: Numbers  #: how many records go to each rank
    arriving: Numbers  #: how many records come from each rank
    order: Numbers  #: order[k]: the own record to send as number k; first all for rank 0
    places: Numbers  #: places[k]: the own place for arrival k; first all from rank 0

    @staticmethod
    def of(values: Numbers, world: int, own: int) -> Plan:
        """From the values of the daemon, for a rank that has `own` records."""
        return Plan(*np.split(values, [world, 2 * world, 2 * world + own]))


@dataclasses.dataclass(frozen=True)
class Round:
    """The part of a plan for one of several rounds: which of its records each pair of ranks exchanges
    in this round. Sender and receiver divide their counts by the same rule."""

    counts: list[int]  # of each rank
    numbers: npt.NDArray[np.int64]  # of all ranks, one after the other


def round_of(counts: list[int], numbers: Numbers, index: int, rounds: int) -> Round:
    """Round number `index` of `rounds` for `to` and `order`, or for `arriving` and `places`."""
    begin, sizes, parts = 0, [], []
    for count in counts:
        first, end = count * index // rounds, count * (index + 1) // rounds
        sizes.append(end - first)
        parts.append(numbers[begin + first : begin + end])
        begin += count
    return Round(sizes, np.concatenate(parts, dtype=np.int64, casting="same_kind"))
