# SPDX-License-Identifier: MIT
"""The choice of the way in which the rows of tensors move: _move.py names them."""

from __future__ import annotations

from typing import NamedTuple, Sequence

import torch

from . import _peer_kernels, _peer_memory, _row_kernel
from ._kernel_move import LocalKernelMove, StagedMove
from ._move import Move, row_bytes
from ._peer_memory import Offer, PeerMemory
from ._peer_moves import DirectMove, WrittenMove, is_wide
from ._plan import NUMBER_BYTES
from ._plan_lists import BothSidesLists, OneSidedLists
from ._process_group import Ranks
from ._stage import PeerStage, Room, Stage, StageOffer, part_for, room_for
from ._torch_move import LocalMove, TorchMove

_MOST_ROW_BYTES = 1 << 30  # of the kernel, which counts the words of a row in 32 bits
_RANKS_ONE_SIDED, _RECORDS_ONE_SIDED = 64, 1 << 32  # the most of a one-sided plan

_cannot_open: set[torch.device] = set()  # devices that could not open the memory of a peer


def _fits_kernel(leaf: torch.Tensor) -> bool:
    return bool(
        leaf.is_contiguous() and not leaf.is_conj() and not leaf.is_neg() and 0 < row_bytes(leaf) < _MOST_ROW_BYTES
        and _row_kernel.is_available(leaf.device)
    )  # fmt: skip


# ---- Plans of both sides -------------------------------------------------------------------------


def staged_move(ranks: Ranks, lists: BothSidesLists, leaf: torch.Tensor, out: torch.Tensor) -> Move:
    arguments = (ranks, lists, leaf.detach(), out)
    has_kernel = not lists.on_host and _fits_kernel(leaf)
    if has_kernel:
        offset = _row_kernel.offset_of([leaf.data_ptr(), out.data_ptr()])
        _row_kernel.compile_for(row_bytes(leaf), offset, lists.order.width, leaf.device)
    if ranks.world == 1:
        return LocalKernelMove(*arguments) if has_kernel else LocalMove(*arguments)
    return (StagedMove if has_kernel and ranks.uses_nccl(leaf.device) else TorchMove)(*arguments)


# ---- One-sided plans -----------------------------------------------------------------------------


class Offers(NamedTuple):
    """What a rank has for one-sided moves of all tensors."""

    is_able: bool = False  # this rank can make them if the others can
    stage: StageOffer | None = None  # None if all rows are wide, or if this rank has no records and gets none
    tensors: Sequence[Offer | None] = ()  # of each tensor; None for a narrow one, and without records


def _are_readable(ranks: Ranks, leaves: list[torch.Tensor]) -> bool:
    is_on_one_device = len({leaf.device for leaf in leaves}) == 1
    return is_on_one_device and all(_fits_kernel(leaf) and ranks.uses_nccl(leaf.device) for leaf in leaves)


def make_stage(ranks: Ranks, leaves: list[torch.Tensor], places: int, budget: int) -> Stage | None:
    """The stage for the narrow tensors of a rank that gets so many records. None without such a tensor, if the
    budget is too small, or without memory. Then the rows are staged."""
    if leaves[0].device in _cannot_open or not _are_readable(ranks, leaves):
        return None
    rows = [row_bytes(leaf) for leaf in leaves if not is_wide(leaf)]
    if not rows or len(leaves[0]) + places == 0:
        return None
    room = room_for(len(leaves[0]), places, max(rows), ranks.world, budget)
    try:
        return Stage(room, max(rows), ranks.world, leaves[0].device) if room else None
    except torch.cuda.OutOfMemoryError:
        return None


def offers_of(ranks: Ranks, leaves: list[torch.Tensor], places: int, stage: Stage | None) -> Offers:
    """What this rank offers. It gets so many records."""
    is_open = leaves[0].device not in _cannot_open
    if not is_open or ranks.world > _RANKS_ONE_SIDED or len(leaves[0]) > _RECORDS_ONE_SIDED:
        return Offers()
    has_narrow = any(not is_wide(leaf) for leaf in leaves)
    if not _are_readable(ranks, leaves) or ranks.world == 1 and not has_narrow:
        return Offers()  # a single rank gains only by windows
    records = len(leaves[0])
    tensors = [_peer_memory.offer(leaf) if records and is_wide(leaf) else None for leaf in leaves]
    memory = _peer_memory.offer(stage.memory) if stage else None
    offer = StageOffer(memory, stage.room, stage.half) if stage and memory else None
    shows_tensors = not records or all(tensor or not is_wide(leaf) for leaf, tensor in zip(leaves, tensors))
    needs_stage = has_narrow and records + places > 0
    return Offers(shows_tensors and (offer is not None or not needs_stage), offer, tensors)


def part_of(all_offers: list[Offers], sizes: list[int], outputs: list[int]) -> int:
    """The places of a part for one-sided moves of all ranks, the same on all ranks; 0 if the rows are staged."""
    machines = {offer.machine for offers in all_offers for offer in offers.tensors if offer}
    machines |= {offers.stage.memory.machine for offers in all_offers if offers.stage}
    if not all(offers.is_able for offers in all_offers) or len(machines) > 1:
        return 0
    stages = [offers.stage for offers in all_offers]
    if not any(stages):
        return part_for(None, sizes, outputs)
    used = [r for r, stage in enumerate(stages) if stage]
    rooms = [stage.room for stage in stages if stage]
    return part_for(rooms, [sizes[r] for r in used], [outputs[r] for r in used])


def _open(own: torch.Tensor | None, is_own: bool, offer: Offer | None, memory: PeerMemory) -> int | None:
    """The address of what a rank offers: 0 if it offers nothing, None if this rank cannot open it."""
    if is_own:
        return own.data_ptr() if own is not None else 0
    return memory.open(offer) if offer else 0


def _addresses(
    ranks: Ranks, own: torch.Tensor | None, offers: list[Offer | None], memory: PeerMemory
) -> list[int] | None:
    found = [_open(own, rank == ranks.rank, offer, memory) for rank, offer in enumerate(offers)]
    if None in found:
        _cannot_open.add(memory.device)
        return None
    return [address for address in found if address is not None]


def _open_stages(
    ranks: Ranks, stage: Stage | None, all_offers: list[Offers], memory: PeerMemory
) -> list[PeerStage] | None:
    stages = [offers.stage for offers in all_offers]
    offered = [stage.memory if stage else None for stage in stages]
    addresses = _addresses(ranks, stage.memory if stage else None, offered, memory)
    if addresses is None:
        return None
    return [
        PeerStage(address, stage.room, stage.half) if stage else PeerStage(0, Room(), 0)
        for address, stage in zip(addresses, stages)
    ]


class OneSided:
    """What the moves of all tensors by one-sided plans need beside their plan: the memory of all ranks, and kernels."""

    def __init__(
        self, ranks: Ranks, leaves: list[torch.Tensor], outs: list[torch.Tensor], stage: Stage | None,
        all_offers: list[Offers], memory: PeerMemory,
    ) -> None:  # fmt: skip
        """`all_offers` are those of all ranks. The caller closes `memory` when the device has ended its work."""
        self.ranks, self.leaves, self.outs = ranks, [leaf.detach() for leaf in leaves], outs
        self.has_narrow = any(not is_wide(leaf) for leaf in leaves)
        self.stages = _open_stages(ranks, stage, all_offers, memory)
        self.tensors = [self._open_tensors(i, all_offers, memory) for i in range(len(leaves))]
        #: this rank has opened all memory
        self.is_able = (self.stages is not None or not self.has_narrow) and None not in self.tensors
        if self.is_able:
            self._compile()

    def _open_tensors(self, i: int, all_offers: list[Offers], memory: PeerMemory) -> list[int] | None:
        """The addresses of a wide tensor on all ranks; none of a narrow one."""
        if not is_wide(self.leaves[i]):
            return []
        offered = [offers.tensors[i] if offers.tensors else None for offers in all_offers]
        return _addresses(self.ranks, self.leaves[i], offered, memory)

    def _compile(self) -> None:
        for leaf, out, tensors in zip(self.leaves, self.outs, self.tensors):
            row, offset = row_bytes(leaf), _row_kernel.offset_of([out.data_ptr(), *(tensors or [])])
            if is_wide(leaf):
                _peer_kernels.compile_take(row, offset, leaf.device)
            else:
                _peer_kernels.compile_send(row, _row_kernel.offset_of([leaf.data_ptr()]), leaf.device)
                _row_kernel.compile_for(row, offset, NUMBER_BYTES, leaf.device)

    def moves(self, sources: OneSidedLists, outputs: list[int]) -> list[Move] | None:
        """The moves, or None if this rank cannot make them by this plan. `outputs` are those of all ranks."""
        if sources.on_host or not self.is_able or not self._has_room(sources):
            return None
        return [
            DirectMove(self.ranks, sources, leaf, out, tensors or []) if is_wide(leaf)
            else WrittenMove(self.ranks, sources, leaf, out, self.stages or [], outputs)
            for leaf, out, tensors in zip(self.leaves, self.outs, self.tensors)
        ]  # fmt: skip

    def _has_room(self, sources: OneSidedLists) -> bool:
        """Whether the stages of the others have room for the requests of this rank."""
        return not self.has_narrow or all(
            count <= stage.room.numbers for stage, count in zip(self.stages or [], sources.longest()) if stage.half
        )
