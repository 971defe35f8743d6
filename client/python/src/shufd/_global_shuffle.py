# SPDX-License-Identifier: MIT
"""One shuffle of records that lie on the ranks of a process group of torch.distributed.

First the ranks compare their arguments. Then each rank takes its plan from the daemon. Then they
exchange the records in rounds. If one rank fails before the rounds, it tells the others, and all
ranks fail with the same message. Otherwise the others would wait for its records. _move.py has the rounds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
import threading
from typing import Any

import torch

from . import _errors, _moves, _request
from ._arguments import counted
from ._move import Move
from ._moves import Offers
from ._peer_memory import PeerMemory
from ._plan import OneSidedPlan, Plan
from ._plan_lists import Lists, Sources
from ._process_group import Ranks
from ._stage import Stage

VERSION = 4  # of the messages between ranks
_BUDGET_OF_GPU, _BUDGET_OF_HOST = 2 << 30, 256 << 20
_ON_HOST = (_errors.Invalid, _errors.Denied, _errors.DeviceError, _errors.OutOfMemory)

# ---- The tensors ---------------------------------------------------------------------------------


def _leaves(data: Any) -> dict[str, Any]:
    """The tensors by name, in the same order on every rank."""
    if isinstance(data, dict):
        return {repr(key): data[key] for key in sorted(data, key=repr)}
    if isinstance(data, (list, tuple)):
        return {str(i): tensor for i, tensor in enumerate(data)}
    return {"": data}


def _rebuild(data: Any, leaves: list[torch.Tensor]) -> Any:
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
            raise _errors.Invalid(f"tensor {name}: {counted(length, 'record')}: expected {first}, as the first tensor has")
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


_COMPARED = ("version", "seed", "key", "epoch", "algorithm", "inverse", "structure", "tensors")


def _checked(seed: Any, key: Any, epoch: Any, algorithm: Any, inverse: Any) -> dict[str, Any]:
    """The settings as numbers and text, which a rank can send to the others."""
    _request.bytes_of(_request.whole(1, seed, key, epoch, algorithm))
    seed = None if seed is None else operator.index(seed)
    return {"seed": seed, "key": key, "epoch": operator.index(epoch), "algorithm": algorithm, "inverse": bool(inverse)}


def _describe(
    ranks: Ranks, data: Any, settings: dict[str, Any], output_size: Any, budget: Any
) -> tuple[Arguments, Stage | None]:
    """The arguments of this rank, and its stage. If they are wrong, `error` says why, so all ranks fail."""
    try:
        leaves = _leaves(data)
        records = _count_records(leaves)
        size = None if output_size is None else _positive("output_size", output_size, 0)
        if budget is not None:
            _positive("budget", budget, 1)
        settings = _checked(**settings)
        tensors = list(leaves.values())
        places = records if size is None else size
        stage = _moves.make_stage(ranks, tensors, places, _budget_of(budget, tensors))
        offers = _moves.offers_of(ranks, tensors, places, stage)
    except Exception as error:  # the other ranks must hear of it, or they would wait
        return Arguments(VERSION, None, None, 0, "", False, "", [], 0, None, _text_of(error)), None
    kinds = [(name, str(t.dtype), list(t.shape[1:]), t.device.type) for name, t in leaves.items()]
    structure = type(data).__name__ if isinstance(data, (dict, list, tuple)) else "tensor"
    return Arguments(VERSION, **settings, structure=structure, tensors=kinds, records=records,
                     output_size=size, error=None, offers=offers), stage  # fmt: skip


def _text_of(error: Exception) -> str:
    return str(error) or type(error).__name__


def _positive(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _errors.Invalid(f"{name}: {value!r}: expected an integer") from None
    if number < least:
        raise _errors.Invalid(f"{name}: {number}: expected {least} or more")
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


def _agree(all_arguments: list[Arguments]) -> None:
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


def _sizes(all_arguments: list[Arguments]) -> tuple[list[int], list[int]]:
    """The number of records that each rank has, and the number that it gets."""
    sizes = [a.records for a in all_arguments]
    outputs = [a.records if a.output_size is None else a.output_size for a in all_arguments]
    if sum(outputs) != sum(sizes):
        raise _errors.Invalid(
            f"global_shuffle: output_size: {outputs} of the ranks have the sum {sum(outputs)}, expected "
            f"{sum(sizes)}, the records of all ranks"
        )
    return sizes, outputs


# ---- The plan ------------------------------------------------------------------------------------


def _device_of(leaves: list[torch.Tensor]) -> torch.device | None:
    """The GPU that has all tensors."""
    devices = {leaf.device for leaf in leaves}
    device = devices.pop()
    return device if device.type == "cuda" and not devices else None


def _take_plan(
    client: Any, ranks: Ranks, sizes: list[int], outputs: list[int], part: int, device: torch.device | None,
    settings: dict[str, Any],
) -> Plan | OneSidedPlan:  # fmt: skip
    """The plan of this rank, in the memory of `device` if the daemon computes there and may lend it. It is
    one-sided if there is a `part`."""
    from . import connect, default_client

    if client is None:
        client = connect() if ranks.world > 1 else default_client()
    ask = functools.partial(client.exchange_one_sided, part=part) if part else client.exchange

    def take(**where: Any) -> Plan | OneSidedPlan:
        plan: Plan | OneSidedPlan = ask(
            sum(sizes), rank=ranks.rank, world=ranks.world, input=sizes, output=outputs, **settings, **where
        )
        return plan

    if device is not None:
        try:
            return take(device=f"cuda:{device.index}")
        except _ON_HOST:
            pass
    return take()


_Sizes = tuple[list[int], list[int], int]  # of all ranks, before and after, and of a part
_last_sizes: dict[tuple[Any, ...], _Sizes] = {}  # at most one entry; its key is what a rank knows without the others


class _Planner:
    """Takes the plan. Usually all sizes are as in the call before. So it asks for that plan before it knows
    the sizes."""

    def __init__(self, client: Any, ranks: Ranks, own: Arguments, leaves: list[torch.Tensor]) -> None:
        self.client, self.ranks, self.own, self.leaves = client, ranks, own, leaves
        self.key = (ranks.rank, ranks.world, own.records, own.output_size)
        self.early: tuple[_Sizes, Plan | OneSidedPlan] | None = None

    def begin(self) -> None:
        """Takes the plan for the sizes of the call before. After an error take() asks again, and fails."""
        sizes = _last_sizes.get(self.key)
        if sizes and not self.own.error:
            with contextlib.suppress(Exception):
                self.early = sizes, self._ask(*sizes)

    def take(self, sizes: list[int], outputs: list[int], part: int) -> Plan | OneSidedPlan:
        early, self.early = self.early, None
        if early and early[0] == (sizes, outputs, part):
            return early[1]
        del early  # its memory may be needed
        plan = self._ask(sizes, outputs, part)
        _last_sizes.clear()
        _last_sizes[self.key] = sizes, outputs, part
        return plan

    def _ask(self, sizes: list[int], outputs: list[int], part: int) -> Plan | OneSidedPlan:
        settings = {name: getattr(self.own, name) for name in ("seed", "key", "epoch", "algorithm", "inverse")}
        return _take_plan(self.client, self.ranks, sizes, outputs, part, _device_of(self.leaves), settings)


class _Attempt:
    """The moves of a rank by plans of one kind."""

    def __init__(self) -> None:
        self.lists: Lists | Sources | None = None
        self.moves: list[Move] = []
        self.failure: Exception | None = None
        self.is_able = True  # this rank can move its tensors so

    def agree(self, ranks: Ranks, budget: int) -> list[int] | None:
        """Waits until all ranks have their plans and their memory. Returns the number of rounds of each tensor; None
        if a rank is not able. Fails on every rank if one has failed."""
        why = self.failure and (type(self.failure).__name__, _text_of(self.failure))
        meanwhile = self.moves[0].prepare_beside if self.moves and not self.failure else lambda: None
        replies = ranks.gather((why, self.is_able, [move.count_rounds(budget) for move in self.moves]), meanwhile)
        for rank, (failed, *_) in enumerate(replies):
            if failed:
                kind = getattr(_errors, failed[0], _errors.Error)
                raise kind(f"global_shuffle: rank {rank}: {failed[1]}")
        if not all(is_able for _, is_able, _ in replies):
            return None
        return [max(of_ranks) for of_ranks in zip(*(rounds for *_, rounds in replies))]


def _budget_of(budget: int | None, leaves: list[torch.Tensor]) -> int:
    if budget is not None:
        return budget
    return _BUDGET_OF_GPU if leaves[0].device.type == "cuda" else _BUDGET_OF_HOST


# ---- The whole -----------------------------------------------------------------------------------


def global_shuffle(
    data: Any,
    group: Any = None,
    *,
    seed: int | None = None,
    epoch: int = 0,
    output_size: int | None = None,
    inverse: bool = False,
    key: str | None = None,
    algorithm: str = "primefold",
    budget: int | None = None,
    client: Any = None,
) -> Any:
    """Shuffles the records of all ranks together. All ranks of the group call this function. The result
    is the same as if one process put the inputs of all ranks one after the other, called
    Client.shuffle(), and gave each rank its part of the result, in the order of the ranks.

    data         a tensor of records along its first dimension; or a list, tuple or dict of tensors with
                 the same number of records. Records with the same index stay together. The tensors have
                 any type and shape. Ranks may have different numbers of records, also 0.
    group        None: all ranks of torch.distributed, which must be initialised if the launcher has several
                 ranks; in a single process this process. A rank with
                 any other value fails alone, and the other ranks wait for it until it ends
    seed, epoch, key
                 as in Client.permute()
    output_size  the number of records that this rank gets; None: as many as it has
    inverse      undoes global_shuffle(); `output_size` is then the number before that shuffle
    algorithm    "primefold"
    budget       bytes of temporary memory on this rank beside data, result and plan; None: 2 GiB on a
                 GPU, else 256 MiB. A round has at least one record for each pair of ranks
    client       by default shufd.connect(), or with a single rank shufd.default_client()

    Returns new tensors in the same structure. With NCCL the host does not wait for the GPU: the work is
    queued on the current CUDA stream. The plan takes 8 bytes a record in the memory of the daemon, and
    another 8 bytes while it is computed. It is in the memory of the GPU if all tensors are on the GPU of
    the daemon, else in host memory. If arguments of the ranks differ, all ranks fail with the same
    Mismatch, which names the rank and the field. Other errors: Invalid, those of
    Client.permute(), and IOFailure if the exchange fails, for example because a rank has ended.
    """
    settings = {"seed": seed, "key": key, "epoch": epoch, "algorithm": algorithm, "inverse": inverse}
    with torch.inference_mode(False):  # the threads of gloo may not write to tensors made in that mode
        return _shuffle(Ranks(group), data, settings, output_size, budget, client)


def _shuffle(ranks: Ranks, data: Any, settings: dict[str, Any], output_size: Any, budget: int | None, client: Any) -> Any:
    own, stage = _describe(ranks, data, settings, output_size, budget)
    leaves = [] if own.error else list(_leaves(data).values())
    planner = _Planner(client, ranks, own, leaves)
    all_arguments = ranks.gather(own, planner.begin)
    try:
        _agree(all_arguments)
        sizes, outputs = _sizes(all_arguments)
    except _errors.Error:
        planner.early = None  # the traceback would keep the lease
        raise
    if sum(sizes) == 0:
        return _rebuild(data, [leaf.detach().clone() for leaf in leaves])
    memory = PeerMemory(leaves[0].device)
    all_offers = [arguments.offers for arguments in all_arguments]
    budget = _budget_of(budget, leaves)
    attempt = _Attempt()

    def prepare(part: int) -> None:
        attempt.lists = _lists_of(planner.take(sizes, outputs, part))
        outs = [leaf.new_empty((outputs[ranks.rank], *leaf.shape[1:])) for leaf in leaves]
        if isinstance(attempt.lists, Lists):
            attempt.moves = [_moves.staged_move(ranks, attempt.lists, *pair) for pair in zip(leaves, outs)]
            return
        moves = _moves.one_sided_moves(ranks, attempt.lists, leaves, outs, stage, all_offers, outputs, memory)
        attempt.moves, attempt.is_able = moves or [], moves is not None
        if moves and ranks.gathers_by_nccl:
            moves[0].prepare()

    try:
        rounds = None
        part = _moves.part_of(all_offers, sizes, outputs)
        while rounds is None:
            try:
                prepare(part)
            except Exception as error:  # the other ranks must hear of it, or they would wait
                attempt.failure = error.with_traceback(None)  # its frames would keep the lease
            rounds = attempt.agree(ranks, budget)
            if rounds is None:
                _wait(attempt)
                part, attempt = 0, _Attempt()
        results = [move.run(of_tensor) for move, of_tensor in zip(attempt.moves, rounds)]
    except BaseException:
        _wait(attempt)
        memory.close()
        if stage and attempt.moves:
            stage.keep()
        raise
    assert attempt.lists
    _end(attempt.lists, memory)
    return _rebuild(data, results)


def _lists_of(plan: Plan | OneSidedPlan) -> Lists | Sources:
    return Lists(plan) if isinstance(plan, Plan) else Sources(plan)


def _wait(attempt: _Attempt) -> None:
    if attempt.lists:
        attempt.lists.wait()


def _end(lists: Lists | Sources, memory: PeerMemory) -> None:
    """Gives the plan and the memory of the peers back when the GPU no longer reads them. The caller does not
    wait for this."""

    def end() -> None:
        try:
            lists.wait()
        finally:
            memory.close()

    if lists.on_host:
        end()
        return
    lists.mark()
    thread = threading.Thread(target=end, name="shufd-global-shuffle")
    try:
        thread.start()
    except RuntimeError:  # no thread can start
        end()
