# SPDX-License-Identifier: MIT
"""The arguments of global_shuffle() on all ranks: what one rank knows, and whether all ranks agree."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from typing import Any

import torch

from . import _errors, _moves, _peer_memory, _request
from ._arguments import counted, integer, seed_of
from ._moves import Offers
from ._peer_memory import Freed
from ._process_group import Ranks
from ._stage import Stage

VERSION = 6  # of the messages between ranks
_NAMED = 4  # ranks in a message
_BUDGET_OF_GPU, _BUDGET_OF_HOST = 2 << 30, 256 << 20

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


# ---- Agreement -----------------------------------------------------------------------------------


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
        stage = _moves.make_stage(ranks, leaves, places, budget_of(budget, leaves))
        offers = _moves.offers_of(ranks, leaves, places, stage)
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
