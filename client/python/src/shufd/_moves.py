# SPDX-License-Identifier: MIT
"""The exchange of the rows of one tensor by the plans of its ranks.

There are three methods. All work in rounds that fit a budget.

*Staged*   Each rank gathers the rows that it sends. The engine of torch.distributed exchanges them. Each rank
           puts the arrivals in their places.
*Pulled*   Each rank gathers the rows that it sends in a *stage*, memory that its peers can read. They read
           the rows there, and put them in their places.
*Direct*   The stage has the list of the rows to send, and the peers read these rows from the tensor.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import torch

from . import _peer_memory, _row_kernel
from ._peer_memory import Offer, PeerMemory
from ._plan import Plan, slices_of
from ._process_group import Ranks
from ._row_kernel import Segment, Table

_INDEX_BYTES = 8  # a record's index in a round: torch indexes with int64
_NUMBER_BYTES = 4  # of a row's number, unless a rank has 2^32 rows
_MOST_ROW_BYTES = 1 << 30  # of the kernel, which counts the words of a row in 32 bits
LEAST_DIRECT_BYTES = 64  # of a row, else pulled; bench/results/2026-11-25-h100-exchange
_OVERLAPPED_ROUNDS = 4  # at least, so that the exchange of a round and the moves of another overlap
_SHORTEST_ROUND = 32 << 20  # bytes: below, the start of an exchange takes longer than the exchange


def row_bytes(tensor: torch.Tensor) -> int:
    return int(math.prod(tensor.shape[1:]) * tensor.element_size())


# ---- The plan ------------------------------------------------------------------------------------


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
        parts = [self.numbers[part] for part in _merged(slices)]
        if self.on_host:
            return torch.from_numpy(np.concatenate(parts)).to(device)
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(device)

    def address(self, first: int) -> int:
        """The address of a number in the memory of the GPU."""
        return int(self.numbers.data_ptr()) + first * self.width


def _merged(slices: list[slice]) -> list[slice]:
    """The same numbers by fewer slices, at least one."""
    merged = [slice(0, 0)]
    for part in slices:
        if part.start == merged[-1].stop:
            merged[-1] = slice(merged[-1].start, part.stop)
        elif part.start < part.stop:
            merged.append(part)
    return merged[1:] if len(merged) > 1 and merged[0].stop == 0 else merged


class Lists:
    """The plan as torch needs it."""

    def __init__(self, plan: Plan) -> None:
        numbers: Any = plan.numbers.view(f"i{plan.numbers.dtype.itemsize}")  # torch computes little with unsigned types
        if not isinstance(numbers, np.ndarray):
            numbers = torch.from_dlpack(numbers)
        split, end = 2 * plan.world, 2 * plan.world + plan.sent
        counts = np.asarray(numbers[:split] if isinstance(numbers, np.ndarray) else numbers[:split].cpu())
        self.to, self.arriving = counts.view(plan.numbers.dtype).reshape(2, -1).tolist()
        self.all_to = [self.to]  # of every rank; set when the ranks have agreed
        self.read: Any = None  # an event of CUDA
        self.order = Numbers(numbers[split:end], plan.sent)
        self.places = Numbers(numbers[end:], len(numbers) - end)

    def mark(self) -> Any:
        """The event after all work that reads the lists: that of the current stream until now."""
        self.read = torch.cuda.current_stream(self.order.numbers.device).record_event()
        return self.read

    def wait(self) -> None:
        """Waits until the GPU has read the lists, because the lease of the plan may end then."""
        if not self.order.on_host:
            (self.read or self.mark()).synchronize()


# ---- What all moves share ------------------------------------------------------------------------


class Move:
    """The exchange of one tensor into another. A method is a subclass."""

    def __init__(self, ranks: Ranks, lists: Lists, leaf: torch.Tensor, out: torch.Tensor) -> None:
        self.ranks, self.lists, self.leaf, self.out = ranks, lists, leaf, out
        self.row = row_bytes(leaf)

    def count_rounds(self, budget: int) -> int:
        """The rounds that this rank needs; all ranks then use the largest number."""
        raise NotImplementedError
    def _fit(self, needed: int, budget: int, least: int = 1) -> int:
        """Two rounds run at the same time, so each may use half of the budget. If two ranks exchange k
        records at most, there are at most k rounds, because further rounds would be empty."""
        most: int = max(1, *self.lists.to, *self.lists.arriving)
        return min(most, max(least, 1 if needed <= budget else int(-(-2 * needed // budget))))

    def prepare(self, rounds: int) -> None:
        """Starts what needs no other rank and no agreement, for so many rounds. Before the exchange of an
        agreement, all ranks wait for it there."""

    def prepare_beside(self, rounds: int) -> None:
        """The same, during the exchange of an agreement."""

    def forget_preparation(self) -> None:
        """The ranks have prepared different numbers of rounds."""

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


def _lengths(slices: list[slice]) -> list[int]:
    return [part.stop - part.start for part in slices]


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


def _bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as another type of the same size: torch copies by index only some types."""
    return tensor.view(_BITS[tensor.element_size()])


# ---- Staged, with the operations of torch --------------------------------------------------------


class TorchMove(Move):
    """Any tensor on any device, with any engine."""

    def count_rounds(self, budget: int) -> int:
        lists = self.lists
        needed = (lists.order.count + lists.places.count) * (self.row + lists.order.index_bytes)
        return self._fit(needed, budget)

    def _start(self, round: int, rounds: int) -> Callable[[], None]:
        lists, device = self.lists, self.leaf.device
        leaving, coming = self.slices(round, rounds)
        index = lists.order.index(leaving, device)
        sent = _bits_of(self._source().index_select(0, index).resolve_conj().resolve_neg().contiguous())
        del index
        to, arriving = _lengths(leaving), _lengths(coming)
        received = torch.empty((sum(arriving), *self.leaf.shape[1:]), dtype=sent.dtype, device=device)
        wait = self.ranks.start(
            _bytes_of(received), _bytes_of(sent), [c * self.row for c in arriving], [c * self.row for c in to]
        )

        def finish() -> None:
            wait()
            _bits_of(self.out).index_copy_(0, lists.places.wide(coming, device), received)

        return finish

    def _source(self) -> torch.Tensor:
        """As bits, unless torch conjugates or negates the values when it reads them."""
        return self.leaf if self.leaf.is_conj() or self.leaf.is_neg() else _bits_of(self.leaf)


class LocalMove(TorchMove):
    """A single rank has its places in ascending order, so it gathers into the result."""

    def run(self, rounds: int) -> torch.Tensor:
        for round in range(rounds if self.row else 0):
            (part,), _ = self.slices(round, rounds)
            index = self.lists.order.index([part], self.leaf.device)
            source = self._source()
            out = self.out if source is self.leaf else _bits_of(self.out)
            torch.index_select(source, 0, index, out=out[part])
        return self.out


# ---- With the kernel, on GPUs --------------------------------------------------------------------


class _KernelMove(Move):
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


class _PeerMove(_KernelMove):
    """The own records go directly to their places. Only the others take part in the exchange."""

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


class StagedMove(_PeerMove):
    """Two rounds have buffers."""

    def count_rounds(self, budget: int) -> int:
        needed = self._exchanged() * self.row
        return self._fit(needed, budget, _overlapped(needed // 2))

    def _make_buffers(self, parts: list[tuple[list[slice], list[slice]]]) -> None:
        def buffer(side: int) -> torch.Tensor:
            most = max(sum(_lengths(part[side])) for part in parts)
            return torch.empty(most * self.row, dtype=torch.uint8, device=self.leaf.device)

        self.buffers = [(buffer(0), buffer(1)) for _ in range(min(2, len(parts)))]

    def _gather(self, leaving: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, target = [], buffer.data_ptr()
        for part, count in zip(leaving, _lengths(leaving)):
            segments.append(Segment(self.leaf.data_ptr(), target, self.lists.order.address(part.start), 0, count))
            target += count * self.row
        return segments

    def _scatter(self, coming: list[slice], buffer: torch.Tensor) -> list[Segment]:
        segments, source = [], buffer.data_ptr()
        for part, count in zip(coming, _lengths(coming)):
            segments.append(Segment(source, self.out.data_ptr(), 0, self.lists.places.address(part.start), count))
            source += count * self.row
        return segments

    def run(self, rounds: int) -> torch.Tensor:
        if self.row == 0:
            return self.out
        self.parts = [self._others(round, rounds) for round in range(rounds)]
        self._make_buffers(self.parts)
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
        to, arriving = (_lengths(slices) for slices in self.parts[round])
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


def _overlapped(bytes: int) -> int:
    """The rounds in which the moves of one round and the exchange of another take place at the same time."""
    return max(1, min(_OVERLAPPED_ROUNDS, bytes // _SHORTEST_ROUND))


def _rounds_of(bytes: int, item: int, budget: int) -> int:
    """The rounds in which items fill half of the stage. A short list of numbers needs one."""
    least = 1 if item == _NUMBER_BYTES and 2 * bytes <= budget else _overlapped(bytes)
    return max(least, -(-2 * bytes // budget))


class Stage:
    """The memory of a rank that its peers read. It has two halves, for two rounds."""

    def __init__(self, records: int, items: list[int], world: int, budget: int, device: torch.device) -> None:
        """`items` are the bytes of an item of each tensor that uses the stage, one after the other."""
        self.rounds = {item: _rounds_of(records * item, item, budget) for item in items}
        # Each peer may get one item more than its share.
        self.half = max(((records // self.rounds[item] + world) * item + 15) // 16 * 16 for item in items)
        self.memory = torch.empty(2 * self.half, dtype=torch.uint8, device=device)


class Peers(NamedTuple):
    """What this rank can read of the ranks: the addresses of their stages and tensors. A rank without records
    may have none."""

    stages: list[int]
    halves: list[int]  # bytes of a half of each stage
    tensors: list[int]  # only for wide rows


class _ReadMove(_PeerMove):
    """The ranks read the stages of their peers. Between two rounds all ranks wait for each other. Then the stages
    of a round are full, and those of the round before have been read."""

    def __init__(
        self, ranks: Ranks, lists: Lists, leaf: torch.Tensor, out: torch.Tensor, stage: Stage | None, peers: Peers
    ) -> None:
        super().__init__(ranks, lists, leaf, out)
        self.stage, self.peers = stage, peers
        self.item = item_bytes(leaf)
        self.prepared = 0  # the rounds for which the stage is filled for the first one

    def count_rounds(self, budget: int) -> int:
        return self._fit(0, budget, self.stage.rounds[self.item] if self.stage else 1)

    def forget_preparation(self) -> None:
        self.prepared = 0

    def _at(self, owner: int, receiver: int, round: int, rounds: int) -> int:
        """Where the stage of `owner` has the items for `receiver`."""
        to = self.lists.to if owner == self.ranks.rank else self.lists.all_to[owner]
        lengths = _lengths(slices_of(to, round, rounds))
        before = sum(lengths[:receiver]) - (lengths[owner] if owner < receiver else 0)
        return self.peers.stages[owner] + round % 2 * self.peers.halves[owner] + before * self.item

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        """The rows of a peer for these places, with the address of their items."""
        raise NotImplementedError

    def _reads(self, round: int, rounds: int) -> list[Segment]:
        _, coming = self._others(round, rounds)
        return [
            self._read(rank, self._at(rank, self.ranks.rank, round, rounds), part)
            for rank, part in enumerate(coming) if part.start < part.stop
        ]  # fmt: skip

    def _wait(self) -> None:
        self.ranks.wait_for_all(self.leaf.device)

class PulledMove(_ReadMove):
    """The items are rows. A launch of the kernel reads the rows of a round and gathers those of the next: the
    links limit the one, and the memory of the GPU limits the other. The own rows move in the last launch."""

    def _gathers(self, round: int, rounds: int) -> list[Segment]:
        leaving, _ = self._others(round, rounds)
        return [
            Segment(self.leaf.data_ptr(), self._at(self.ranks.rank, rank, round, rounds),
                    self.lists.order.address(part.start), 0, part.stop - part.start)
            for rank, part in enumerate(leaving) if part.start < part.stop
        ]  # fmt: skip

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        count = places.stop - places.start
        return Segment(items, self.out.data_ptr(), 0, self.lists.places.address(places.start), count)

    def prepare_beside(self, rounds: int) -> None:
        """Gathers the first rows."""
        self._table([self._gathers(0, rounds)]).launch(0)
        self.prepared = rounds

    def run(self, rounds: int) -> torch.Tensor:
        if self.prepared != rounds:
            self.prepare_beside(rounds)
        groups = [self._gathers(round, rounds) for round in range(1, rounds)] + [[self._own()]]
        for round in range(rounds):
            groups[round] += self._reads(round, rounds)
        table = self._table(groups)
        for round in range(rounds):
            self._wait()
            table.launch(round)
        self._wait()
        return self.out


class DirectMove(_ReadMove):
    """The items are the numbers of rows, and a rank reads these rows from the tensors of its peers. Until all
    ranks have read them, their owners may not change them."""

    def prepare(self, rounds: int) -> None:
        self._fill(0, rounds)
        self.prepared = rounds

    def _fill(self, round: int, rounds: int) -> None:
        """Copies the numbers into the stage."""
        if self.stage is None:
            return
        numbers, (leaving, _) = self.lists.order.numbers, self._others(round, rounds)
        half = self.stage.memory[round % 2 * self.stage.half :].view(numbers.dtype)
        for part in _merged(leaving):
            count = part.stop - part.start
            half[:count].copy_(numbers[part])
            half = half[count:]

    def _read(self, rank: int, items: int, places: slice) -> Segment:
        count = places.stop - places.start
        return Segment(
            self.peers.tensors[rank], self.out.data_ptr(), items, self.lists.places.address(places.start), count
        )

    def run(self, rounds: int) -> torch.Tensor:
        groups = [self._reads(round, rounds) for round in range(rounds)]
        groups[0].append(self._own())
        table = self._table(groups)
        for round in range(rounds):
            if round > 0 or self.prepared != rounds:
                self._fill(round, rounds)
                self._wait()
            table.launch(round)
        self._wait()
        return self.out


# ---- The choice ----------------------------------------------------------------------------------


def _fits_kernel(leaf: torch.Tensor) -> bool:
    return bool(
        leaf.is_contiguous() and not leaf.is_conj() and not leaf.is_neg() and 0 < row_bytes(leaf) < _MOST_ROW_BYTES
        and _row_kernel.is_available(leaf.device)
    )  # fmt: skip


def _may_be_read(ranks: Ranks, leaf: torch.Tensor) -> bool:
    """Whether peers may read the rows of the tensor, there or in a stage."""
    return ranks.world > 1 and _fits_kernel(leaf) and ranks.uses_nccl(leaf.device)


def _is_wide(leaf: torch.Tensor) -> bool:
    return row_bytes(leaf) >= LEAST_DIRECT_BYTES


def item_bytes(leaf: torch.Tensor) -> int:
    """Bytes in the stage for each row: a number if the row is wide, else the row."""
    return _NUMBER_BYTES if _is_wide(leaf) else row_bytes(leaf)


class Offers(NamedTuple):
    """The memory of a rank that its peers may read."""

    stage: Offer | None = None
    half: int = 0  # bytes of a half of the stage
    tensors: Sequence[Offer | None] = ()  # each one that is wide


def make_stage(ranks: Ranks, leaves: list[torch.Tensor], budget: int) -> Stage | None:
    """The stage for all tensors that peers may read; None without such a tensor, without records or without
    memory. Then the rows are staged."""
    items = [item_bytes(leaf) for leaf in leaves if _may_be_read(ranks, leaf)]
    if not items or len(leaves[0]) == 0:
        return None
    try:
        return Stage(len(leaves[0]), items, ranks.world, budget, leaves[0].device)
    except torch.cuda.OutOfMemoryError:
        return None


def offers_of(ranks: Ranks, leaves: list[torch.Tensor], stage: Stage | None) -> Offers:
    def offer(leaf: torch.Tensor) -> Offer | None:
        return _peer_memory.offer(leaf) if stage and _is_wide(leaf) and _may_be_read(ranks, leaf) else None

    tensors = [offer(leaf) for leaf in leaves]
    return Offers(_peer_memory.offer(stage.memory), stage.half, tensors) if stage else Offers(tensors=tensors)


def _open_all(
    ranks: Ranks, own: torch.Tensor | None, offers: list[Offer | None], counts: list[int], memory: PeerMemory
) -> list[int] | None:
    """The addresses of what all ranks offer; None if this rank cannot read a rank that has records."""
    addresses: list[int] = []
    for rank, (offer, count) in enumerate(zip(offers, counts)):
        address = own.data_ptr() if rank == ranks.rank and own is not None else None
        if address is None and count > 0 and offer is not None:
            address = memory.open(offer)
        if address is None and count > 0:
            return None
        addresses.append(address or 0)
    return addresses


def _read_move(
    ranks: Ranks, lists: Lists, leaf: torch.Tensor, out: torch.Tensor, stage: Stage | None, all_offers: list[Offers],
    index: int, counts: list[int], memory: PeerMemory,
) -> Move | None:  # fmt: skip
    """The move that reads from the peers, if this rank can do it."""
    is_wide = _is_wide(leaf)
    if is_wide and lists.order.width != _NUMBER_BYTES:
        return None
    stage_memory = stage.memory if stage else None
    stages = _open_all(ranks, stage_memory, [offers.stage for offers in all_offers], counts, memory)
    tensors: list[int] | None = []
    if is_wide:
        offered = [offers.tensors[index] if offers.tensors else None for offers in all_offers]
        tensors = _open_all(ranks, leaf, offered, counts, memory)
    if stages is None or tensors is None:
        return None
    peers = Peers(stages, [offers.half for offers in all_offers], tensors)
    return (DirectMove if is_wide else PulledMove)(ranks, lists, leaf, out, stage, peers)


def moves_of(
    ranks: Ranks, lists: Lists, leaf: torch.Tensor, out: torch.Tensor, stage: Stage | None, all_offers: list[Offers],
    index: int, counts: list[int], memory: PeerMemory,
) -> tuple[Move, Move | None]:  # fmt: skip
    """The ways in which this rank can move tensor number `index`: staged, and one that reads from the peers if it
    can. `all_offers` and `counts` are those of all ranks. The caller closes `memory` when the device has ended
    its work."""
    arguments = (ranks, lists, leaf.detach(), out)
    has_kernel = not lists.order.on_host and _fits_kernel(leaf)
    if has_kernel:
        _row_kernel.compile_for(row_bytes(leaf), lists.order.width, leaf.device)
    if ranks.world == 1:
        return LocalKernelMove(*arguments) if has_kernel else LocalMove(*arguments), None
    if not has_kernel or not ranks.uses_nccl(leaf.device):
        return TorchMove(*arguments), None
    return StagedMove(*arguments), _read_move(*arguments, stage, all_offers, index, counts, memory)
