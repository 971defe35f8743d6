# SPDX-License-Identifier: MIT
"""The memory of a rank into which its peers write, and the size of the parts that fit it.

The memory has two halves, for two parts. A half has room for the rows of a part, which arrive from all ranks,
and for a *request* of each other rank: the list of the records that this rank is to send. A request begins with
the begins of the windows of the records.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

import torch

from ._peer_memory import Offer
from ._plan import NUMBER_BYTES, PART_UNIT

PART_MOST = 1 << 31
BEGINS = 288  # numbers before the list of a request: at most 257 begins, and a multiple of 128 bytes
_ALIGNMENT = 128
_SPARE = PART_UNIT  # numbers of a list, beside its share and 1/32 of it: a permutation deviates by far less

_kept: list[torch.Tensor] = []  # memory of calls that have failed, into which other ranks may still write


def aligned(bytes: int) -> int:
    return -(-bytes // _ALIGNMENT) * _ALIGNMENT


def _longest(places: int, records: int, all_records: int) -> int:
    """The most numbers of a request: `places` get records from a rank with `records` of all records. A
    permutation gives nearly the same share of them."""
    share = places * records // max(1, all_records)
    return min(places, records, share + share // 32 + _SPARE)


class Room(NamedTuple):
    """What a stage has room for, in each half."""

    rows: int = 0  # of the part
    numbers: int = 0  # of each request

    def bytes_of(self, row: int, world: int) -> int:
        return aligned(self.rows * row) + (world - 1) * NUMBER_BYTES * (BEGINS + self.numbers)


def room_for(records: int, places: int, row: int, world: int, budget: int) -> Room | None:
    """The room for as large a part as the budget permits. The rank has `records`, and gets `places` for rows of
    `row` bytes. It does not know the sizes of the others, and expects its own. None if the budget is too
    small for any part."""

    def room(part: int) -> Room:
        numbers = _longest(part, records, records * world)
        return Room(min(part, places), -(-numbers // 32) * 32)

    def fits(part: int) -> bool:
        return 2 * room(part).bytes_of(row, world) <= budget

    low, high = 0, min(PART_MOST, -(-max(1, places, records) // PART_UNIT) * PART_UNIT) // PART_UNIT
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * PART_UNIT) else (low, middle - 1)
    return room(low * PART_UNIT) if low else None


def part_for(rooms: Sequence[Room] | None, sizes: list[int], outputs: list[int]) -> int:
    """The places of a part that the stages of all ranks have room for; without stages all places. 0 if there is no
    such part."""
    most = min(PART_MOST, -(-max(outputs) // PART_UNIT) * PART_UNIT)

    def fits(part: int) -> bool:
        return rooms is None or all(
            room.rows >= min(part, output) and room.numbers >= _longest(part, size, sum(sizes))
            for room, size, output in zip(rooms, sizes, outputs)
        )

    low, high = 0, most // PART_UNIT
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * PART_UNIT) else (low, middle - 1)
    if low == 0:
        return 0
    parts = -(-max(outputs) // (low * PART_UNIT))  # of about the same size
    return -(-max(outputs) // (parts * PART_UNIT)) * PART_UNIT


class Stage:
    """The stage of this rank."""

    def __init__(self, room: Room, row: int, world: int, device: torch.device) -> None:
        """`row` is the bytes of the widest row that arrives in it."""
        self.room, self.half = room, room.bytes_of(row, world)
        self.memory = torch.empty(2 * self.half, dtype=torch.uint8, device=device)

    def keep(self) -> None:
        """Keeps the memory until the process ends: after an error of this rank, others may still write into it."""
        _kept.append(self.memory)


class StageOffer(NamedTuple):
    """The stage of a rank, for its peers."""

    memory: Offer
    room: Room
    half: int  # bytes


class PeerStage(NamedTuple):
    """The stage of a rank in the memory of this process."""

    address: int
    room: Room
    half: int

    def rows(self, part: int) -> int:
        """Where the rows of a part arrive."""
        return self.address + part % 2 * self.half

    def request(self, part: int, distance: int, world: int) -> int:
        """The address of the request of the rank `distance` places before the stage's rank (modulo world), 1 to world - 1.
        Requests are at the end of the half."""
        end = self.address + (part % 2 + 1) * self.half
        return end - (world - distance) * NUMBER_BYTES * (BEGINS + self.room.numbers)
