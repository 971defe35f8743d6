# SPDX-License-Identifier: MIT
"""What the ranks tell each other before an exchange: their arguments, and the memory that they offer. From these follow whether
they agree, and in which way the rows of each tensor move. _moves.py names these ways.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from typing import Any, NamedTuple, Sequence

import torch

from . import _errors, _peer_memory, _request, _row_kernels
from ._arguments import counted, integer, seed_of
from ._moves import BothSidesLists, LocalKernelMove, LocalMove, Move, OneSidedLists, StagedMove, TorchMove, row_bytes
from ._one_sided import DirectMove, PeerStage, Room, Stage, StageOffer, WrittenMove, is_wide, part_for, room_for
from ._peer_memory import Freed, Offer, PeerMemory
from ._plan import NUMBER_BYTES
from ._process_group import Ranks

VERSION = 6  # of the messages between ranks
_NAMED = 4  # ranks in a message
_BUDGET_OF_GPU, _BUDGET_OF_HOST = 2 << 30, 256 << 20
_MOST_ROW_BYTES = 1 << 30  # of the kernel, which counts the words of a row in 32 bits
_RANKS_ONE_SIDED, _RECORDS_ONE_SIDED = 64, 1 << 32  # the most of a one-sided plan

_cannot_open: set[torch.device] = set()  # devices that could not open the memory of a peer


def _fits_kernel(leaf: torch.Tensor) -> bool:
    return bool(
        leaf.is_contiguous() and not leaf.is_conj() and not leaf.is_neg() and 0 < row_bytes(leaf) < _MOST_ROW_BYTES
        and _row_kernels.is_available(leaf.device)
    )  # fmt: skip


# ---- Moves by plans of both sides ----------------------------------------------------------------


def staged_move(ranks: Ranks, lists: BothSidesLists, leaf: torch.Tensor, out: torch.Tensor) -> Move:
    arguments = (ranks, lists, leaf.detach(), out)
    has_kernel = not lists.on_host and _fits_kernel(leaf)
    if has_kernel:
        offset = _row_kernels.offset_of([leaf.data_ptr(), out.data_ptr()])
        _row_kernels.compile_for(row_bytes(leaf), offset, lists.order.width, leaf.device)
    if ranks.world == 1:
        return LocalKernelMove(*arguments) if has_kernel else LocalMove(*arguments)
    return (StagedMove if has_kernel and ranks.uses_nccl(leaf.device) else TorchMove)(*arguments)


# ---- Moves by one-sided plans --------------------------------------------------------------------


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
            row, offset = row_bytes(leaf), _row_kernels.offset_of([out.data_ptr(), *(tensors or [])])
            if is_wide(leaf):
                _row_kernels.compile_take(row, offset, leaf.device)
            else:
                _row_kernels.compile_send(row, _row_kernels.offset_of([leaf.data_ptr()]), leaf.device)
                _row_kernels.compile_for(row, offset, NUMBER_BYTES, leaf.device)

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


# ---- The tensors ---------------------------------------------------------------------------------


def leaves_of(data: Any) -> dict[str, Any]:
    """The tensors by name, in the same order on every rank."""
    if isinstance(data, dict):
        leaves = {repr(key): data[key] for key in sorted(data, key=repr)}
        if len(leaves) < len(data):
            names = counted(len(leaves), "name")
            raise _errors.Invalid(f"tensors: {len(data)} keys with {names}; expected a name for each key")
        return leaves
    if isinstance(data, (list, tuple)):
        return {str(i): tensor for i, tensor in enumerate(data)}
    return {"": data}


def gpu_of(data: Any) -> torch.device | None:
    """The GPU of the first tensor that is on one, also if the arguments are wrong."""
    with contextlib.suppress(Exception):
        leaves = data if isinstance(data, dict) else leaves_of(data)  # keys of a dict may have the same name
        for leaf in leaves.values():
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "cuda":
                return leaf.device
    return None


def rebuild(data: Any, leaves: list[torch.Tensor]) -> Any:
    """The same structure with other tensors."""
    if isinstance(data, dict):
        by_key = dict(zip(sorted(data, key=repr), leaves))
        return {key: by_key[key] for key in data}
    if isinstance(data, tuple):
        return type(data)(*leaves) if hasattr(data, "_fields") else tuple(leaves)
    return leaves if isinstance(data, list) else leaves[0]


def _check_leaf(name: str, tensor: Any) -> None:
    at = f"tensor {name}" if name else "tensor"
    if not isinstance(tensor, torch.Tensor):
        raise _errors.Invalid(f"{at}: {type(tensor).__name__}: expected a torch.Tensor")
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise _errors.Invalid(f"{at}: layout {tensor.layout}, {tensor.dtype}: expected a dense tensor")
    if tensor.dim() == 0:
        raise _errors.Invalid(f"{at}: no dimension; expected records along the first")


def _count_records(leaves: dict[str, Any]) -> int:
    """The number of records, which all tensors have."""
    if not leaves:
        raise _errors.Invalid("tensors: none; expected at least one")
    for name, tensor in leaves.items():
        _check_leaf(name, tensor)
    lengths = {name: len(tensor) for name, tensor in leaves.items()}
    first = next(iter(lengths.values()))
    for name, length in lengths.items():
        if length != first:
            found = counted(length, "record")
            raise _errors.Invalid(f"tensor {name}: {found}: expected {first}, as the first tensor has")
    return first


# ---- The arguments of all ranks ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arguments of one rank. All ranks compare them first. The fields before `records` must be
    equal on all ranks."""

    version: int
    seed: int | None
    key: str | None
    epoch: int
    algorithm: str
    inverse: bool
    structure: str
    tensors: list[tuple[str, str, list[int], str]]  # name, dtype, shape of a record, device
    records: int
    output_size: int | None
    error: str | None  # of this rank: its arguments are wrong
    offers: Offers = Offers()
    freed: Freed | None = None  # of what this rank offered in earlier calls


_COMPARED = ("version", "seed", "key", "epoch", "algorithm", "inverse", "structure", "tensors")


def _checked(seed: Any, key: Any, epoch: Any, algorithm: Any, inverse: Any) -> dict[str, Any]:
    """The settings as numbers and text, which a rank can send to the others."""
    _request.bytes_of(_request.whole(1, seed, key, epoch, algorithm))
    seed = None if seed is None else seed_of(seed)
    return {"seed": seed, "key": key, "epoch": integer("epoch", epoch), "algorithm": algorithm, "inverse": bool(inverse)}


def describe(data: Any, settings: dict[str, Any], output_size: Any, budget: Any, next_epoch: Any) -> Arguments:
    """The arguments of this rank. If they are wrong, `error` says why, so all ranks fail."""
    try:
        leaves = leaves_of(data)
        records = _count_records(leaves)
        size = None if output_size is None else _check_number("output_size", output_size, 0)
        if budget is not None:
            _check_number("budget", budget, 1)
        if next_epoch is not None:
            _check_number("next_epoch", next_epoch, 0, 64)
        settings = _checked(**settings)
        kinds = [(name, str(t.dtype), list(t.shape[1:]), t.device.type) for name, t in leaves.items()]
    except Exception as error:  # the other ranks must hear of it, or they would wait
        return _wrong(error)
    structure = type(data).__name__ if isinstance(data, (dict, list, tuple)) else "tensor"
    return Arguments(VERSION, **settings, structure=structure, tensors=kinds, records=records, output_size=size, error=None)


def _wrong(error: Exception) -> Arguments:
    return Arguments(VERSION, None, None, 0, "", False, "", [], 0, None, text_of(error))


def with_offers(
    own: Arguments, ranks: Ranks, leaves: list[torch.Tensor], budget: int | None
) -> tuple[Arguments, Stage | None]:
    """The arguments with what this rank offers, and its stage."""
    if own.error:
        return own, None
    places = own.records if own.output_size is None else own.output_size
    try:
        stage = make_stage(ranks, leaves, places, budget_of(budget, leaves))
        offers = offers_of(ranks, leaves, places, stage)
        return dataclasses.replace(own, offers=offers, freed=_peer_memory.freed()), stage
    except Exception as error:  # the other ranks must hear of it, or they would wait
        return _wrong(error), None


def text_of(error: Exception) -> str:
    return str(error) or type(error).__name__


def int_of(value: Any) -> int | None:
    """An integer of any package as an int, with which all arithmetic works. describe() checks it."""
    with contextlib.suppress(Exception):
        return operator.index(value)
    return None


def _check_number(name: str, value: Any, least: int, bits: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _errors.Invalid(f"{name}: {value!r}: expected an integer") from None
    if number < least:
        raise _errors.Invalid(f"{name}: {number}: expected {least} or more")
    if bits is not None and number >> bits:
        raise _errors.Invalid(f"{name}: {number}: expected {least} to 2^{bits} - 1")
    return number


def _differences(field: str, own: Any, first: Any) -> tuple[str, Any, Any]:
    """The name of the field that differs, its value on this rank, and its value on rank 0. For the
    tensors, those of the first tensor that differs."""
    if field != "tensors":
        return field, own, first
    if len(own) != len(first):
        return "tensors", len(own), len(first)
    for mine, other in zip(own, first):
        for name, a, b in zip(("name", "dtype", "shape", "device"), mine, other):
            if a != b:
                return (f"{name} of tensor {other[0]}" if other[0] else name), a, b
    raise AssertionError


def agree(all_arguments: list[Arguments]) -> None:
    """Fails if the arguments of a rank are wrong, or differ from those of rank 0. Every rank fails
    with the same text."""
    for rank, arguments in enumerate(all_arguments):
        if arguments.error is not None:
            raise _errors.Invalid(f"global_shuffle: rank {rank}: {arguments.error}")
    for field in _COMPARED:
        first = getattr(all_arguments[0], field)
        for rank, arguments in enumerate(all_arguments):
            own = getattr(arguments, field)
            if own != first:
                name, a, b = _differences(field, own, first)
                raise _errors.Mismatch(f"global_shuffle: rank {rank}: {name}: {a}: expected {b}, as on rank 0")


def sizes_of(all_arguments: list[Arguments]) -> tuple[list[int], list[int]]:
    """The number of records that each rank has, and the number that it gets."""
    sizes = [a.records for a in all_arguments]
    outputs = [a.records if a.output_size is None else a.output_size for a in all_arguments]
    if sum(outputs) != sum(sizes):
        raise _errors.Invalid(
            f"global_shuffle: output_size: {outputs} of the ranks have the sum {sum(outputs)}, expected "
            f"{sum(sizes)}, the records of all ranks; {_changed(sizes, outputs)}"
        )
    return sizes, outputs


def _changed(sizes: list[int], outputs: list[int]) -> str:
    """The first ranks that do not get as many records as they have."""
    ranks = [rank for rank, (size, output) in enumerate(zip(sizes, outputs)) if size != output]
    named = [f"rank {rank} has {sizes[rank]} and gets {outputs[rank]}" for rank in ranks[:_NAMED]]
    more = [f"and {len(ranks) - _NAMED} more"] if len(ranks) > _NAMED else []
    return ", ".join(named + more)


def budget_of(budget: int | None, leaves: list[torch.Tensor]) -> int:
    if budget is not None:
        return budget
    return _BUDGET_OF_GPU if leaves[0].device.type == "cuda" else _BUDGET_OF_HOST
