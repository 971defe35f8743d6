# SPDX-License-Identifier: MIT
"""The plan of global_shuffle(), from the daemon. Usually all sizes are as in the call before. So a rank asks for that
plan before it knows the sizes of the others, in another thread, and has the plan of the next epoch computed during this
one."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable

import torch

from . import _errors, _kept_mappings, _wait
from ._agreement import Arguments
from ._device import DeviceArray, block_of
from ._plan import OneSidedPlan, Plan
from ._process_group import Ranks

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
                _kept_mappings.keep(self._client()._connection(), *block_of(plan.numbers))

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
