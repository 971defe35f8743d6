# SPDX-License-Identifier: MIT
"""The exchange of the rows of one tensor by the plans of its ranks.

There are three methods, which take memory up to a budget. One takes plans of both sides:

*Staged*   In each of several rounds, each rank gathers the rows that it sends, the engine of torch.distributed
           exchanges them, and each rank puts the arrivals in their places. Kernels move the rows, or operations of torch.

Two take one-sided plans, and need GPUs that can read and write the memory of each other:

*Direct*   Each rank reads its rows from the tensors of the others.
*Written*  Each rank writes into memory of the others which records it takes. They write the rows into memory of
           this rank, which puts them in their places.

_one_sided.py has these two.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import torch

from . import _device
from ._device import head_of
from ._errors import OutOfMemory
from ._plan import NUMBER_BYTES, OneSidedPlan, Plan, slices_of
from ._process_group import Ranks
from ._row_kernels import Segment, Table

# ---- The lists of a plan -------------------------------------------------------------------------

_INDEX_BYTES = 8  # a record's index in a round: torch indexes with int64


class Numbers:
    """A list of a plan. Gives its numbers as an index of torch."""

    def __init__(self, numbers: Any, below: int = 1 << 64) -> None:
        """An array of NumPy, or a tensor on a GPU, with the bits of unsigned numbers as a signed type. All
        numbers are less than `below`."""
        self.numbers = numbers
        self.count = len(numbers)
        self.on_host = isinstance(numbers, np.ndarray)
        self.width = int(numbers.itemsize if self.on_host else numbers.element_size())
        self.is_signed = below <= 1 << 8 * self.width - 1  # the numbers fit the signed type

    @property
    def index_bytes(self) -> int:
        """The most bytes that a number takes while wide() runs."""
        return _INDEX_BYTES + self.width

    def index(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, as int32 or int64."""
        return self.take(slices, device) if self.is_signed else self.wide(slices, device)

    def wide(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, as int64."""
        index = self.take(slices, device)
        if self.width == 8:
            return index
        index = index.to(torch.int64)
        return index if self.is_signed else index.bitwise_and_(0xFFFFFFFF)

    def take(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, in their own width."""
        parts = [self.numbers[part] for part in merged(slices)]
        if self.on_host:
            return torch.from_numpy(np.concatenate(parts)).to(device)
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(device)

    def address(self, first: int) -> int:
        """The address of a number in the memory of the GPU."""
        return int(self.numbers.data_ptr()) + first * self.width


def merged(slices: list[slice]) -> list[slice]:
    """The same numbers by fewer slices, at least one."""
    parts = [slice(0, 0)]
    for part in slices:
        if part.start == parts[-1].stop:
            parts[-1] = slice(parts[-1].start, part.stop)
        elif part.start < part.stop:
            parts.append(part)
    return parts[1:] if len(parts) > 1 and parts[0].stop == 0 else parts


class _Plan:
    """The lists of a plan in the memory of a GPU or of the host."""

    plan: Plan | OneSidedPlan
    numbers: Any  # of NumPy, or in the memory of a GPU with an attribute `device`
    read: Any = None  # an event of CUDA
    has_waited = False

    @property
    def on_host(self) -> bool:
        return isinstance(self.numbers, np.ndarray)

    def mark(self) -> Any:
        """The event after all work that reads the lists: that of the current stream until now."""
        self.read = torch.cuda.current_stream(self.numbers.device).record_event()
        return self.read

    def wait(self) -> None:
        """Waits until the GPU has read the lists, because the lease of the plan may end then."""
        if not self.on_host:
            (self.read or self.mark()).synchronize()
        self.has_waited = True


def _tensor_of(numbers: Any) -> Any:
    """torch computes little with unsigned types, so the bits of a signed one."""
    signed: Any = numbers.view(f"i{numbers.dtype.itemsize}")
    return signed if isinstance(signed, np.ndarray) else torch.from_dlpack(signed)


class OneSidedLists(_Plan):
    """A one-sided plan in the memory of a GPU. The kernels need the addresses of its lists only. Its lease ends with this
    object, and not before wait() or the end of all work of the GPU."""

    plan: OneSidedPlan

    def __init__(self, plan: OneSidedPlan) -> None:
        numbers: Any = plan.numbers
        self.plan, self.windows, self.numbers = plan, plan.windows, numbers
        self._columns = self.windows[-1] + 1
        begins: Any = plan.begins if self.on_host else self._read_begins(numbers, plan.parts * self._columns)
        #: of each part and window, and the places of each part
        self.begins: list[list[int]] = begins.reshape(-1, self._columns).tolist()
        self._first = int(numbers.ctypes.data if self.on_host else numbers.ptr)

    @staticmethod
    def _read_begins(numbers: Any, count: int) -> Any:
        return head_of(numbers, count, torch.cuda.current_stream(numbers.device).cuda_stream)

    def __del__(self) -> None:
        """Waits if an exception, such as a second KeyboardInterrupt, has prevented wait()."""
        if not self.has_waited and not self.on_host:
            _device.wait_for_work(self.numbers.device)

    def longest(self) -> list[int]:
        """The most records that a part has of each rank."""
        ranks = list(zip(self.windows, self.windows[1:]))
        return [max(part[end] - part[first] for part in self.begins) for first, end in ranks]

    def begins_at(self, part: int, window: int) -> int:
        """An address, as those below."""
        return self._address(part * self._columns + window)

    def records_at(self, part: int) -> int:
        return self._address(len(self.numbers) - 2 * self.plan.places + part * self.plan.part)

    def indices_at(self, place: int) -> int:
        return self._address(len(self.numbers) - self.plan.places + place)

    def _address(self, number: int) -> int:
        return self._first + number * NUMBER_BYTES


class BothSidesLists(_Plan):
    """A plan of both sides as torch needs it."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.numbers = plan, _tensor_of(plan.numbers)
        numbers = self.numbers
        split, end = 2 * plan.world, 2 * plan.world + plan.sent
        counts = np.asarray(numbers[:split] if isinstance(numbers, np.ndarray) else numbers[:split].cpu())
        both: Any = counts.view(plan.numbers.dtype).reshape(2, -1)
        self.to: list[int] = both[0].tolist()
        self.arriving: list[int] = both[1].tolist()
        self.order = Numbers(numbers[split:end], plan.sent)
        self.places = Numbers(numbers[end:], len(numbers) - end)


# ---- Moves ---------------------------------------------------------------------------------------


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


# ---- Staged moves by the operations of torch -----------------------------------------------------

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


# ---- Staged moves by the kernel ------------------------------------------------------------------

_OVERLAPPED_ROUNDS = 4  # at least, so that the exchange of a round and the moves of another overlap
_SHORTEST_ROUND = 32 << 20  # bytes: below, the start of an exchange takes longer than the exchange


def overlapped(bytes: int) -> int:
    """The rounds in which the moves of one round and the exchange of another take place at the same time."""
    return max(1, min(_OVERLAPPED_ROUNDS, bytes // _SHORTEST_ROUND))


class _KernelMove(StagedRounds):
    """A contiguous tensor on the GPU that has the plan."""

    def _table(self, groups: list[list[Segment]]) -> Table:
        return Table(groups, self.row, self.lists.order.width, self.leaf.device)


class LocalKernelMove(_KernelMove):
    def count_rounds(self, budget: int) -> int:
        return 1

    def run(self, rounds: int) -> torch.Tensor:
        lists = self.lists
        segment = Segment(
            self.leaf.data_ptr(), self.out.data_ptr(), lists.order.address(0), 0, lists.order.count
        )
        self._table([[segment]]).launch(0)
        return self.out


class StagedMove(_KernelMove):
    """Two rounds have buffers. The own records go directly to their places. Only the others take part in the
    exchange."""

    def _own(self) -> Segment:
        rank, lists = self.ranks.rank, self.lists
        return Segment(
            self.leaf.data_ptr(), self.out.data_ptr(), lists.order.address(sum(lists.to[:rank])),
            lists.places.address(sum(lists.arriving[:rank])), lists.to[rank],
        )  # fmt: skip

    def _others(self, round: int, rounds: int) -> tuple[list[slice], list[slice]]:
        """The parts of order and places that this rank exchanges with other ranks in a round."""
        parts = self.slices(round, rounds)
        for slices in parts:
            own = slices[self.ranks.rank]
            slices[self.ranks.rank] = slice(own.start, own.start)
        return parts

    def _exchanged(self) -> int:
        """The records that this rank sends to others and gets from others."""
        lists = self.lists
        return int(lists.order.count + lists.places.count - 2 * lists.to[self.ranks.rank])

    def count_rounds(self, budget: int) -> int:
        needed = self._exchanged() * self.row
        return self._fit(needed, budget, overlapped(needed // 2))

    def _allocate(self, rounds: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The buffers of one or two rounds, for sent and for received rows."""
        parts = [self._others(round, rounds) for round in range(rounds)]

        def buffer(side: int) -> torch.Tensor:
            most = max(sum(lengths(part[side])) for part in parts)
            return torch.empty(most * self.row, dtype=torch.uint8, device=self.leaf.device)

        return [(buffer(0), buffer(1)) for _ in range(min(2, rounds))]

    def _gather(self, leaving: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, target = [], buffer.data_ptr()
        for part, count in zip(leaving, lengths(leaving)):
            segments.append(Segment(self.leaf.data_ptr(), target, self.lists.order.address(part.start), 0, count))
            target += count * self.row
        return segments

    def _scatter(self, coming: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, source = [], buffer.data_ptr()
        for part, count in zip(coming, lengths(coming)):
            segments.append(Segment(source, self.out.data_ptr(), 0, self.lists.places.address(part.start), count))
            source += count * self.row
        return segments

    def run(self, rounds: int) -> torch.Tensor:
        if self.row == 0:
            return self.out
        self.parts = [self._others(round, rounds) for round in range(rounds)]
        self.buffers = self._allocate(rounds)
        groups = [[self._own()]]
        for round, (leaving, coming) in enumerate(self.parts):
            sent, received = self.buffers[round % 2]
            groups += [self._gather(leaving, sent), self._scatter(coming, received)]
        self.table = self._table(groups)
        try:
            return super().run(rounds)
        finally:
            del self.buffers, self.table, self.parts  # the next tensor needs the memory

    def _start(self, round: int, rounds: int) -> Callable[[], None]:
        """The buffers are free: the stream has waited for the exchange that used them before, and its
        scatter precedes this gather."""
        to, arriving = (lengths(slices) for slices in self.parts[round])
        sent, received = self.buffers[round % 2]
        self.table.launch(1 + 2 * round)
        wait = self.ranks.start(
            received[: sum(arriving) * self.row], sent[: sum(to) * self.row], [c * self.row for c in arriving],
            [c * self.row for c in to],
        )  # fmt: skip
        if round == 0:
            self.table.launch(0)

        def finish() -> None:
            wait()
            self.table.launch(2 + 2 * round)

        return finish
