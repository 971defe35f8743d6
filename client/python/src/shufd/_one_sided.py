# SPDX-License-Identifier: MIT
"""Moves by one-sided plans, on the GPUs of one machine that can read and write the memory of each other.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Sequence

import torch

from . import _device, _row_kernels
from ._errors import DeviceError
from ._moves import Move, OneSidedLists, row_bytes
from ._peer_memory import Offer
from ._plan import NUMBER_BYTES, PART_UNIT
from ._process_group import Ranks
from ._row_kernels import Owner, PlanTable, Request, Segment, Sender, Table

# ---- Stages --------------------------------------------------------------------------------------
# A stage is memory of a rank into which its peers write. It has two halves, for two parts. A half has room for the rows of a
# part, which arrive from all ranks, and for a *request* of each other rank: the list of the records that this rank is to
# send. A request begins with the begins of the windows of the records.

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


# ---- Moves ---------------------------------------------------------------------------------------

# Rows of at least so many bytes are read directly, others are written. 2^24 rows on each of four H200s and of two H100s, ms
# (bench/results/2026-11-28-h200-shuffle.txt, 2026-11-26-h100-shuffle):
#     bytes             16   24   32   48   64   96  128
#     four, direct     4.1  4.8  4.0  5.3  5.1  6.8  6.9
#     four, written    3.8  4.4  4.6  5.3  6.2  7.4  8.8
#     two, direct      2.8  3.3  2.5  3.7  3.4  4.3  4.6
#     two, written     2.7  2.6  3.6  4.1  4.1  5.6  6.3
# Rows of other lengths between 32 and 64 bytes were not measured.
LEAST_DIRECT_BYTES = 64


def is_wide(leaf: torch.Tensor) -> bool:
    return row_bytes(leaf) >= LEAST_DIRECT_BYTES


class DirectMove(Move):
    """Each rank reads its rows from the tensors of the others. Until all ranks have read them, the owners may not
    change them."""

    def __init__(
        self, ranks: Ranks, sources: OneSidedLists, leaf: torch.Tensor, out: torch.Tensor, tensors: list[int]
    ) -> None:
        """`tensors` are the addresses of those of all ranks. A rank without records may have none."""
        super().__init__(ranks, leaf, out)
        self.sources, self.tensors = sources, tensors
        self.is_prepared = False

    def prepare(self) -> Any:
        """The event after the work that fills the tensor."""
        self.is_prepared = True
        return _current_stream(self.leaf.device).record_event()

    def run(self, rounds: int) -> torch.Tensor:
        s = self.sources
        if not self.is_prepared:
            self.ranks.wait_for_all(self.leaf.device)
        owners = [Owner(rows, window) for rows, window in zip(self.tensors, s.windows)]
        table = PlanTable(
            s.begins_at(0, 0), s.records_at(0), s.indices_at(0), s.plan.places, s.plan.part, s.windows[-1]
        )
        _row_kernels.take_rows(self.out, self.row, table, owners)
        self.ranks.wait_for_all(self.leaf.device)
        return self.out


def _current_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.current_stream(device)


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def _copy(ordinal: int, target: int, source: int, bytes: int, stream: int) -> None:
    """By a copy engine, which leaves the processors of the GPU to the kernels."""
    with _device.primary_context(ordinal) as cuda:
        error = cuda is None or cuda.cuMemcpyDtoDAsync_v2(
            ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(bytes), ctypes.c_void_p(stream)
        )
    if error:
        raise DeviceError(f"global_shuffle: CUDA error {int(error)} in a copy to the memory of a peer")


class WrittenMove(Move):
    """Each rank writes requests into the stages of the others, and they write the rows into its stage. It puts these
    rows in their places.

    The work of a part on the current stream: send the rows of the part, wait for all ranks, put the rows in
    their places. Meanwhile another stream writes the requests for the next part. A half of the stages is free
    again two parts later, because all ranks have waited for each other in between.
    """

    def __init__(
        self, ranks: Ranks, sources: OneSidedLists, leaf: torch.Tensor, out: torch.Tensor, stages: list[PeerStage],
        outputs: list[int],
    ) -> None:  # fmt: skip
        """`stages` are those of all ranks. A rank without records and places may have none."""
        super().__init__(ranks, leaf, out)
        self.sources, self.stages, self.outputs = sources, stages, outputs
        self.requests = _new_stream(leaf.device)  # one for all calls could make two threads wait for each other
        self.parts = max(map(self._parts_of, range(ranks.world)))
        self.has_asked = False  # for the first part
        self.tables: tuple[Sender, Table] | None = None

    def _parts_of(self, rank: int) -> int:
        return -(-self.outputs[rank] // self.sources.plan.part)

    def _send_requests(self, part: int, after: Any, beside: Callable[[], None] = lambda: None) -> None:
        """Writes the requests of a part after the event `after`. `beside` queues work that runs at the same time. The current
        stream then waits for the requests, also after an error: the plan may end then."""
        self.requests.wait_event(after)
        try:
            self._write_requests(part)
            beside()
        finally:
            _current_stream(self.leaf.device).wait_event(self.requests.record_event())

    def _write_requests(self, part: int) -> None:
        s, rank, world = self.sources, self.ranks.rank, self.ranks.world
        for distance in range(1, world if part < self._parts_of(rank) else 1):
            owner = (rank + distance) % world  # the copy engines are faster if each rank begins with another
            first, end = s.windows[owner], s.windows[owner + 1]
            if first == end:
                continue
            begin, count = s.begins[part][first], s.begins[part][end] - s.begins[part][first]
            to = self.stages[owner].request(part, distance, world)
            self._write(to, s.begins_at(part, first), end - first + 1)
            self._write(to + BEGINS * NUMBER_BYTES, s.records_at(part) + begin * NUMBER_BYTES, count)

    def _write(self, target: int, source: int, count: int) -> None:
        if count:
            _copy(self.leaf.device.index, target, source, count * NUMBER_BYTES, self.requests.cuda_stream)

    def _request_of(self, receiver: int, part: int) -> Request:
        """The request of a rank. That of this rank is in its plan."""
        s, rank, world = self.sources, self.ranks.rank, self.ranks.world
        rows = self.stages[receiver].rows(part)
        if receiver != rank:
            at = self.stages[rank].request(part, (rank - receiver) % world, world)
            return Request(at, at + BEGINS * NUMBER_BYTES, rows)
        own = s.windows[rank]
        return Request(s.begins_at(part, own), s.records_at(part) + s.begins[part][own] * NUMBER_BYTES, rows)

    def _sender(self) -> Sender:
        """Group k has the requests of part k. The request of this rank for the first part is a group of its own, the last
        one."""
        s, rank, world = self.sources, self.ranks.rank, self.ranks.world
        windows = s.windows[rank + 1] - s.windows[rank]
        groups = [
            [
                self._request_of(receiver, part) for receiver in range(world)
                if part < self._parts_of(receiver) and (part > 0 or receiver != rank)
            ]
            for part in range(self.parts)
        ]  # fmt: skip
        groups.append([self._request_of(rank, 0)] if self._parts_of(rank) else [])
        return Sender(self.leaf, self.row, windows, groups)

    def _places(self) -> Table:
        """The segments that put the rows of each part in their places."""
        s, groups = self.sources, []
        for part in range(self.parts):
            first = part * s.plan.part
            count = max(0, min(s.plan.part, s.plan.places - first))
            rows, to = self.stages[self.ranks.rank].rows(part), self.out.data_ptr() + first * self.row
            groups.append([Segment(rows, to, s.indices_at(first), 0, count)])
        return Table(groups, self.row, NUMBER_BYTES, self.leaf.device)

    def prepare(self) -> Any:
        self.tables = self._sender(), self._places()

    def begin(self) -> None:
        """Asks for the first part, and meanwhile sends the own rows of this part, for which no other rank is needed."""
        self._send_requests(0, _current_stream(self.leaf.device).record_event(), beside=self._send_own)
        self.has_asked = True

    def _send_own(self) -> None:
        assert self.tables
        own_group = self.parts
        self.tables[0].launch(own_group, self._expected())

    def _expected(self) -> int:
        """About the rows of a window that a rank asks for in a part."""
        return self.sources.plan.part // self.sources.windows[-1]

    def run(self, rounds: int) -> torch.Tensor:
        stream, device = _current_stream(self.leaf.device), self.leaf.device
        if not self.has_asked:
            self.ranks.wait_for_all(device)  # the stages of the others are free
            self.prepare()
            self.begin()
        self.ranks.wait_for_all(device)  # the requests of the others have arrived
        assert self.tables
        sender, places = self.tables
        free = stream.record_event()
        for part in range(self.parts):
            sender.launch(part, self._expected())
            if part + 1 < self.parts:
                self._send_requests(part + 1, free)
            self.ranks.wait_for_all(device)
            free = stream.record_event()
            places.launch(part)
        return self.out
