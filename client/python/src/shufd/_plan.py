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

    to: Numbers  #: how many records go to each rank
    arriving: Numbers  #: how many records come from each rank
    order: Numbers  #: order[k]: the own record to send as number k; first all for rank 0
    places: Numbers  #: places[k]: the own place for arrival k; first all from rank 0


def slices_of(counts: list[int], index: int, rounds: int) -> list[slice]:
    """The parts of a list for round number `index` of `rounds`: which of its records each pair of ranks
    exchanges in this round. The list is `order`, with the counts `to`, or `places`, with the counts
    `arriving`. Sender and receiver divide their counts by the same rule."""
    begin, slices = 0, []
    for count in counts:
        slices.append(slice(begin + count * index // rounds, begin + count * (index + 1) // rounds))
        begin += count
    return slices
