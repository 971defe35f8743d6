# SPDX-License-Identifier: MIT
"""The choice of the way in which the rows of a tensor move: _move.py names them."""

from __future__ import annotations

from typing import NamedTuple, Sequence

import torch

from . import _peer_memory, _row_kernel
from ._kernel_move import LocalKernelMove, StagedMove
from ._move import Move, row_bytes
from ._peer_memory import Offer, PeerMemory
from ._plan_lists import Lists
from ._process_group import Ranks
from ._read_move import NUMBER_BYTES, DirectMove, Peers, PulledMove, Stage, is_wide
from ._torch_move import LocalMove, TorchMove

_MOST_ROW_BYTES = 1 << 30  # of the kernel, which counts the words of a row in 32 bits


def _fits_kernel(leaf: torch.Tensor) -> bool:
    return bool(
        leaf.is_contiguous() and not leaf.is_conj() and not leaf.is_neg() and 0 < row_bytes(leaf) < _MOST_ROW_BYTES
        and _row_kernel.is_available(leaf.device)
    )  # fmt: skip


def _may_be_read(ranks: Ranks, leaf: torch.Tensor) -> bool:
    """Whether peers may read the rows of the tensor, there or in a stage."""
    return ranks.world > 1 and _fits_kernel(leaf) and ranks.uses_nccl(leaf.device)


class Offers(NamedTuple):
    """The memory of a rank that its peers may read."""

    stage: Offer | None = None
    half: int = 0  # bytes of a half of the stage
    tensors: Sequence[Offer | None] = ()  # of each tensor; None for a narrow one


def make_stage(ranks: Ranks, leaves: list[torch.Tensor], budget: int) -> Stage | None:
    """The stage for all tensors that peers may read; None without such a tensor, without records or without
    memory. Then the rows are staged."""
    readable = [leaf for leaf in leaves if _may_be_read(ranks, leaf)]
    if not readable or len(leaves[0]) == 0:
        return None
    try:
        return Stage(readable, ranks.world, budget)
    except torch.cuda.OutOfMemoryError:
        return None


def offers_of(ranks: Ranks, leaves: list[torch.Tensor], stage: Stage | None) -> Offers:
    def offer(leaf: torch.Tensor) -> Offer | None:
        return _peer_memory.offer(leaf) if stage and is_wide(leaf) and _may_be_read(ranks, leaf) else None

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
    wide = is_wide(leaf)
    if wide and lists.order.width != NUMBER_BYTES:
        return None
    stage_memory = stage.memory if stage else None
    stages = _open_all(ranks, stage_memory, [offers.stage for offers in all_offers], counts, memory)
    tensors: list[int] | None = []
    if wide:
        offered = [offers.tensors[index] if offers.tensors else None for offers in all_offers]
        tensors = _open_all(ranks, leaf, offered, counts, memory)
    if stages is None or tensors is None:
        return None
    peers = Peers(stages, [offers.half for offers in all_offers], tensors)
    return (DirectMove if wide else PulledMove)(ranks, lists, leaf, out, stage, peers)


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
