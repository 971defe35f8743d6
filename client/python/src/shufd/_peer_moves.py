# SPDX-License-Identifier: MIT
"""Moves by one-sided plans, on the GPUs of one machine that can read and write the memory of each other."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

import torch

from . import _device, _peer_kernels
from ._errors import DeviceError
from ._move import Move, row_bytes
from ._peer_kernels import Owner, PlanTable, Request, Sender
from ._plan import NUMBER_BYTES
from ._plan_lists import OneSidedLists
from ._process_group import Ranks
from ._row_kernel import Segment, Table
from ._stage import BEGINS, PeerStage

# Rows of at least so many bytes are read directly, others are written. 2^24 rows on each of four H200s and of two H100s, ms
# (bench/results/2026-11-28-h200-shuffle, 2026-11-26-h100-shuffle):
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
        _peer_kernels.take_rows(self.out, self.row, table, owners)
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
