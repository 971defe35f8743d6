# SPDX-License-Identifier: MIT
"""One shuffle of records that lie on the ranks of a process group of torch.distributed.

First the ranks compare their arguments, while each asks the daemon for its plan. Then they exchange the records. If one
rank fails before that, it tells the others, and all ranks fail with the same message. Otherwise the others would wait for
its records. _moves.py has the exchange.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import traceback
from typing import Any, Callable

import torch

from . import _agreement, _errors, _peer_memory, _wait
from ._agreement import Arguments
from ._device import DeviceArray, block_of
from ._moves import BothSidesLists, Move, OneSidedLists
from ._one_sided import Stage
from ._peer_memory import PeerMemory
from ._plan import OneSidedPlan, Plan
from ._process_group import Ranks

_RENAMED = {"OutOfMemoryError": "OutOfMemory", "MemoryError": "OutOfMemory"}  # errors of torch and of Python


class _Attempt:
    """The moves of a rank by plans of one kind."""

    def __init__(self) -> None:
        self.lists: BothSidesLists | OneSidedLists | None = None
        self.moves: list[Move] = []
        self.failure: Exception | None = None
        self.is_able = True  # this rank can move its tensors so
        self.rounds: list[int] = []  # that this rank needs for each tensor
        self.prepared: Any = None  # the event of Move.prepare()
        self.is_common = False  # an error now is one that all ranks raise

    def agree(self, ranks: Ranks, memory: PeerMemory) -> list[int] | None:
        """Waits until all ranks have their plans and their memory, and for the events of Move.prepare(). Begins the first
        move meanwhile. Returns the number of rounds of each tensor; None if a rank is not able. Fails on every rank if one
        has failed. But if the move of a rank does not begin after the others have heard from it, they fail later: in the
        next call, or after the timeout of the group."""
        begin = self.moves[0].begin if self.moves and self.is_able and not self.failure else None
        if begin and not ranks.tells_first:
            try:
                begin()
            except Exception as error:
                self.failure = error.with_traceback(None)
            begin = None
        why = self.failure and (type(self.failure).__name__, _agreement.text_of(self.failure))
        replies = ranks.gather((why, self.is_able, self.rounds), self.prepared, begin)
        if all(is_able and not failed for failed, is_able, _ in replies):
            return [max(of_ranks) for of_ranks in zip(*(rounds for *_, rounds in replies))]
        self._stop(ranks, memory)
        for rank, (failed, *_) in enumerate(replies):
            if failed:
                kind = getattr(_errors, _RENAMED.get(failed[0], failed[0]), _errors.Error)
                raise kind(f"global_shuffle: rank {rank}: {failed[1]}")
        self.is_common = False
        return None

    def _stop(self, ranks: Ranks, memory: PeerMemory) -> None:
        """Waits until no rank has the stages of the others any more. They have agreed on this."""
        self.wait()
        memory.close(at_once=True)
        ranks.gather(None)
        self.is_common = True

    def wait(self) -> None:
        """Waits until the GPU has read the plan."""
        if self.lists:
            self.lists.wait()


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
    next_epoch: int | None = None,
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
    next_epoch   the daemon computes the plan of epoch `next_epoch` for a later call, during the exchange of this one
    client       by default shufd.connect(), or with a single rank shufd.default_client()

    Returns new tensors in the same structure. With NCCL the rows move on the current CUDA stream, and the host does
    not wait for that. It may wait for earlier work of this stream, before other ranks read or write the tensors.
    The plan takes 8 bytes a record in the memory of the daemon, and up to another 8 bytes while it is computed; that
    of `next_epoch` takes as much. It is in the memory of the GPU if all tensors are on the GPU of the daemon, else in
    host memory.

    If arguments of the ranks differ, all ranks fail with the same Mismatch, which names the rank and the field. Other
    errors: Invalid, OutOfMemory, those of Client.permute(), and IOFailure if the exchange fails, for example because
    a rank has ended. After an error that the other ranks do not have, with NCCL each later call with this group
    fails with IOFailure on all ranks.
    """
    settings = {"seed": seed, "key": key, "epoch": epoch, "algorithm": algorithm, "inverse": inverse}
    with torch.inference_mode(False):  # the threads of gloo may not write to tensors made in that mode
        return _Call(Ranks(group), data, settings, output_size, budget, next_epoch, client).run()


class _Call:
    """A call of one rank."""

    def __init__(
        self, ranks: Ranks, data: Any, settings: dict[str, Any], output_size: Any, budget: Any,
        next_epoch: Any, client: Any,
    ) -> None:  # fmt: skip
        self.ranks, self.data = ranks, data
        self.own = _agreement.describe(data, settings, output_size, budget, next_epoch)
        self.stage: Stage | None = None
        self.leaves = [] if self.own.error else list(_agreement.leaves_of(data).values())
        self.planner = Planner(client, ranks, self.own, self.leaves)
        self.attempt = _Attempt()
        self.all_offers: list[_agreement.Offers] = []
        self.memory: PeerMemory | None = None
        self.budget, self.next_epoch = _agreement.int_of(budget), _agreement.int_of(next_epoch)

    def run(self) -> Any:
        """With the device of the tensors as the current one. NCCL would wait for ever if a rank with wrong arguments came
        with another device."""
        device = _agreement.gpu_of(self.data) or self.ranks.gpu
        with torch.cuda.device(device) if device else contextlib.nullcontext():
            return self._run()

    def _run(self) -> Any:
        try:
            sizes, outputs = self._compare(self._gather_arguments())
            if sum(sizes) == 0:
                self.planner.drop_early()
                self.ranks.finish()
                return _agreement.rebuild(self.data, [leaf.detach().clone() for leaf in self.leaves])
            part, rounds = self._prepare(sizes, outputs)
            results = [move.run(of_tensor) for move, of_tensor in zip(self.attempt.moves, rounds)]
        except BaseException as error:
            self._leave(error)
            raise
        assert self.attempt.lists and self.memory
        try:
            self.planner.keep_mapped(self.attempt.lists.plan)
        finally:
            _end(self.attempt.lists, self.memory)
        if self.next_epoch is not None:
            self.planner.prefetch(self.next_epoch, sizes, outputs, part)
        self.ranks.tidy()
        return _agreement.rebuild(self.data, results)

    def _leave(self, error: BaseException) -> None:
        """Gives everything up after an error: the traceback refers to this call. If the others do not have the error,
        they may still write into the stage, and wait for this rank. The GPU may then wait for them too."""
        stage, self.stage = self.stage, None
        is_common = self.attempt.is_common and isinstance(error, _errors.Error)
        try:
            if is_common:
                self.ranks.finish()
            else:
                if stage and self.ranks.has_told:
                    stage.keep()
                self.ranks.leave()
        finally:
            lists, self.attempt.lists, self.attempt.moves = self.attempt.lists, None, []
            traceback.clear_frames(error.__traceback__)  # they refer to the plan and the result
            try:
                self.planner.drop_early() if isinstance(error, Exception) else self.planner.cancel_early()
            finally:
                if lists:
                    _end(lists, self.memory, waits=is_common)
                elif self.memory:  # no work of the GPU uses it
                    self.memory.close()

    def _gather_arguments(self) -> list[Arguments]:
        """The arguments of all ranks. Afterwards they may write into the stages, whose memory earlier work of the GPU
        no longer uses."""
        self.planner.request_early()
        self.own, self.stage = _agreement.with_offers(self.own, self.ranks, self.leaves, self.budget)
        device = self.leaves[0].device if self.stage else None
        after = torch.cuda.current_stream(device).record_event() if device and device.type == "cuda" else None
        return self.ranks.gather(self.own, after)

    def _compare(self, all_arguments: list[Arguments]) -> tuple[list[int], list[int]]:
        """The sizes of all ranks. All ranks fail here alike, or none."""
        self.attempt.is_common = True
        _agreement.agree(all_arguments)
        sizes = _agreement.sizes_of(all_arguments)
        self.attempt.is_common = False
        self.all_offers = [arguments.offers for arguments in all_arguments]
        for arguments in all_arguments:
            if arguments.freed:
                _peer_memory.forget(arguments.freed)
        return sizes

    def _prepare(self, sizes: list[int], outputs: list[int]) -> tuple[int, list[int]]:
        """Prepares the moves by one-sided plans if all ranks can make them, else by plans of both sides. Returns the
        places of a part, and the number of rounds of each tensor."""
        self.memory = PeerMemory(self.leaves[0].device)
        part = _agreement.part_of(self.all_offers, sizes, outputs)
        while True:
            if not part:
                self.stage = None  # the rounds need its memory
            try:
                self._make_moves(part, sizes, outputs)
            except Exception as error:  # the other ranks must hear of it, or they would wait
                self.attempt.failure = error.with_traceback(None)  # its frames would keep the lease
            rounds = self.attempt.agree(self.ranks, self.memory)
            if rounds is not None:
                return part, rounds
            part, self.attempt = 0, _Attempt()

    def _make_moves(self, part: int, sizes: list[int], outputs: list[int]) -> None:
        """While the daemon computes the plan, does all that needs no plan."""
        try:
            outs = [leaf.new_empty((outputs[self.ranks.rank], *leaf.shape[1:])) for leaf in self.leaves]
            is_expected = part and self.planner.expects(sizes, outputs, part)
            one_sided = self._open_peers(outs) if is_expected else None
            is_open = one_sided is None or one_sided.is_able
            plan = self.planner.take(sizes, outputs, part) if is_open else None
            if plan is None:  # or of a kind that the daemon cannot make on the GPU
                self.attempt.is_able = False
                return
            lists = self.attempt.lists = _lists_of(plan)
            if isinstance(lists, BothSidesLists):
                self.attempt.moves = [_agreement.staged_move(self.ranks, lists, *pair) for pair in zip(self.leaves, outs)]
            else:
                self._prepare_one_sided(lists, one_sided or self._open_peers(outs), outputs)
        except torch.cuda.OutOfMemoryError:
            if self.stage is None:
                raise
            self.attempt.is_able = False  # without the stage there may be room
            return
        budget = _agreement.budget_of(self.budget, self.leaves)
        self.attempt.rounds = [move.reserve(budget) for move in self.attempt.moves]

    def _open_peers(self, outs: list[torch.Tensor]) -> _agreement.OneSided:
        assert self.memory
        self.ranks.make_token(self.leaves[0].device)  # before the ranks agree: only this rank may lack memory
        return _agreement.OneSided(self.ranks, self.leaves, outs, self.stage, self.all_offers, self.memory)

    def _prepare_one_sided(self, sources: OneSidedLists, one_sided: _agreement.OneSided, outputs: list[int]) -> None:
        moves = one_sided.moves(sources, outputs)
        self.attempt.moves, self.attempt.is_able = moves or [], moves is not None
        if moves:
            self.attempt.prepared = moves[0].prepare()


def _lists_of(plan: Plan | OneSidedPlan) -> BothSidesLists | OneSidedLists:
    return BothSidesLists(plan) if isinstance(plan, Plan) else OneSidedLists(plan)


def _end(lists: BothSidesLists | OneSidedLists, memory: PeerMemory | None, waits: bool = False) -> None:
    """Gives the plan and the memory of the peers back when the GPU no longer reads them. Waits for this only if it
    `waits`, or if the plan is in host memory."""

    def end() -> None:
        try:
            lists.wait()
        finally:
            if memory:
                memory.close()

    if not lists.on_host:
        lists.mark()
    if waits or lists.on_host:
        end()
        return
    thread = threading.Thread(target=end, name="shufd-global-shuffle")
    try:
        thread.start()
    except BaseException as error:  # no thread can start, or an exception of a signal handler
        if thread.ident is None:
            end()
        if not isinstance(error, RuntimeError):
            raise


# ---- The plan of a call, from the daemon ---------------------------------------------------------
# Usually all sizes are as in the call before. So a rank asks for that plan before it knows the sizes of the others, in
# another thread, and has the plan of the next epoch computed during this one.

_NO_PLAN_ON_GPU = (_errors.Invalid, _errors.Denied, _errors.DeviceError, _errors.OutOfMemory)

Sizes = tuple[list[int], list[int], int]  # of all ranks, before and after, and of a part; 0: a plan of both sides
_last_sizes: dict[tuple[Any, ...], Sizes] = {}  # of the last call, by rank, world and own sizes
_prefetching: list[Any] = []  # at most one client of the calls without a client


def _device_of(leaves: list[torch.Tensor]) -> torch.device | None:
    """The GPU that has all tensors."""
    devices = {leaf.device for leaf in leaves}
    device = devices.pop()
    return device if device.type == "cuda" and not devices else None


class Planner:
    """The plans of a call. They are in the memory of the GPU that has all tensors, if the daemon computes there and may
    lend it."""

    def __init__(self, client: Any, ranks: Ranks, own: Arguments, leaves: list[torch.Tensor]) -> None:
        self.client, self.ranks, self.own, self.leaves = client, ranks, own, leaves
        self.has_own_client = client is None
        self.key = (ranks.rank, ranks.world, own.records, own.output_size)
        self.early: tuple[Sizes, _wait.Work] | None = None

    def request_early(self) -> None:
        """Asks for the plan for the sizes of the call before. After an error take() asks again, and fails."""
        sizes = _last_sizes.get(self.key)
        if sizes is None or self.own.error:
            return
        with contextlib.suppress(Exception):
            client = self._client()
            ask = functools.partial(client._with, client._connection(), functools.partial(self._ask, *sizes))
            work = _wait.Work(ask, _wait.start_in_idle_thread)
            self.early = sizes, work
            work.wait_for_start()  # the daemon computes for longer than this thread needs for the rest

    def expects(self, sizes: list[int], outputs: list[int], part: int) -> bool:
        """Whether request_early() has asked for this plan."""
        return self.early is not None and self.early[0] == (sizes, outputs, part)

    def drop_early(self) -> None:
        """Waits for the plan of request_early(), and gives it back."""
        with contextlib.suppress(Exception):
            self._take_early()

    def _take_early(self) -> tuple[Sizes, Plan | OneSidedPlan] | None:
        early, self.early = self.early, None
        if early is None:
            return None
        sizes, work = early
        try:
            work.wait()
        except BaseException:
            self._client()._cancel()
            raise
        return sizes, work.result()

    def cancel_early(self) -> None:
        """Ends the request of request_early() without a wait, after an exception such as KeyboardInterrupt."""
        if self.early:
            self._client()._cancel()

    def take(self, sizes: list[int], outputs: list[int], part: int) -> Plan | OneSidedPlan | None:
        """None instead of a one-sided plan that is not in the memory of the GPU."""
        with contextlib.suppress(Exception):
            early = self._take_early()
            if early and early[0] == (sizes, outputs, part):
                return early[1]
            early = None  # its memory may be needed
        try:
            plan = self._ask(sizes, outputs, part)
        except _NO_PLAN_ON_GPU:
            if part:
                return None
            raise
        _last_sizes.clear()
        _last_sizes[self.key] = sizes, outputs, part
        return plan

    def keep_mapped(self, plan: Plan | OneSidedPlan) -> None:
        """Lets the memory of the plan stay mapped for a while, if the daemon uses it for later plans. Call it while the
        plan is leased."""
        if isinstance(plan.numbers, DeviceArray):
            with contextlib.suppress(_errors.Error):
                _peer_memory.keep(self._client()._connection(), *block_of(plan.numbers))

    def prefetch(self, epoch: int, sizes: list[int], outputs: list[int], part: int) -> None:
        """Has the plan of another epoch computed. If the daemon cannot, a later call computes it."""
        with contextlib.suppress(_errors.Error):
            client = self._client()
            self._request(functools.partial(client.prefetch_exchange, part=part), epoch, sizes, outputs, part)
            if self.has_own_client:
                _prefetching[:] = [client]  # keeps it open: closing it would end the prefetched result

    def _ask(self, sizes: list[int], outputs: list[int], part: int) -> Plan | OneSidedPlan:
        client = self._client()
        ask = functools.partial(client.exchange_one_sided, part=part) if part else client.exchange
        plan: Plan | OneSidedPlan = self._request(ask, self.own.epoch, sizes, outputs, part)
        return plan

    def _client(self) -> Any:
        from . import connect, default_client

        if self.client is None and _prefetching and not _prefetching[0]._closed:
            self.client = _prefetching[0]
        elif self.client is None:
            self.client = connect() if self.ranks.world > 1 else default_client()
        return self.client

    def _request(
        self, ask: Callable[..., Any], epoch: int, sizes: list[int], outputs: list[int], part: int
    ) -> Any:
        """Asks for a plan in the memory of the GPU or, for a plan of both sides, else in that of the host."""
        settings = {name: getattr(self.own, name) for name in ("seed", "key", "algorithm", "inverse")}
        arguments = dict(
            settings, epoch=epoch, rank=self.ranks.rank, world=self.ranks.world, input=sizes, output=outputs
        )
        device = _device_of(self.leaves)
        if device is not None:
            try:
                return ask(sum(sizes), **arguments, device=f"cuda:{device.index}")
            except _NO_PLAN_ON_GPU:
                if part:
                    raise
        return ask(sum(sizes), **arguments)
