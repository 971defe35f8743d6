# SPDX-License-Identifier: MIT
"""The ranks of a torch.distributed process group, which send bytes to each other."""

from __future__ import annotations

import contextlib
import pickle
import time
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist

from . import _errors, _ranks
from ._arguments import shown
from ._store_gather import StoreGather, known_store_gather_of, store_gather_of


def _check(group: Any) -> None:
    """Fails if `group` is no process group. This rank fails alone: without a group it cannot tell the others."""
    member = getattr(dist, "GroupMember", None)  # torch may have no distributed package
    if group is None or (member and (isinstance(group, dist.ProcessGroup) or group is member.NON_GROUP_MEMBER)):
        return
    seed = f"; did you mean seed={group}?" if isinstance(group, int) else ""
    raise _errors.Invalid(f"group: {shown(group)}: expected a process group of torch.distributed or None{seed}")


class Ranks:
    """The ranks of a process group. Without torch.distributed, this process is the only rank, unless the
    launcher has started several."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.world = 0, 1
        self._token: torch.Tensor | None = None
        self.has_told = False  # the others may have a value of this call
        _check(group)
        _ranks.check_group()
        if group is not None or _ranks.group_of_torch() is not None:
            self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise _errors.Invalid("group: this process is not in it; expected a group with this rank")

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except RuntimeError as error:
            raise _errors.IOFailure(
                f"global_shuffle: rank {self.rank} of {self.world}: the exchange with the other ranks failed; "
                f"a rank may have ended: {error}"
            ) from error

    @property
    def gpu(self) -> torch.device | None:
        """The GPU to which init_process_group() has bound this rank, by its `device_id`."""
        if self.world == 1:
            return None
        device = getattr(dist.group.WORLD if self.group is None else self.group, "bound_device_id", None)
        return device if device is not None and device.type == "cuda" else None

    @property
    def _engine(self) -> str:
        """The name of the engine, or those of several by device. init_process_group() may have chosen it."""
        name = str(dist.get_backend(self.group))
        return str(dist.get_backend_config(self.group)) if name == "undefined" else name

    @property
    def has_only_nccl(self) -> bool:
        """Other engines exchange values on the host, and soon notice a rank that has ended."""
        return self._engine in ("nccl", "cuda:nccl")

    def gather(self, value: Any, after: Any = None, meanwhile: Callable[[], None] | None = None) -> list[Any]:
        """The values of all ranks, which have one type. Each rank first waits for the event `after`, so it knows that
        this event of every rank has occurred. Calls `meanwhile` while the values travel; if it fails, the others may
        have the value of this rank."""
        meanwhile = meanwhile or (lambda: None)
        if self.world == 1:
            meanwhile()
            return [value]
        if after is not None:
            self._call(self._wait_for, after)
        values = self._gather(value, meanwhile)
        for rank, other in enumerate(values):
            if type(other) is not type(value):
                raise _errors.IOFailure(
                    f"global_shuffle: rank {rank} is at another point than rank {self.rank}; a call may have been "
                    "interrupted on one of them: start all ranks again"
                )
        return values

    def _gather(self, value: Any, meanwhile: Callable[[], None]) -> list[Any]:
        gatherer = None
        if self.has_only_nccl:
            gatherer = store_gather_of(self._group, self.rank, self.world, self._gather_by_engine)
        if gatherer is None:
            meanwhile()
            return self._gather_by_engine(value)
        self._call(gatherer.check)
        self.has_told = True
        self._call(gatherer.send, pickle.dumps(value))
        meanwhile()
        return [pickle.loads(own) for own in self._call(gatherer.receive)]

    @property
    def _group(self) -> Any:
        return self.group if self.group is not None else dist.distributed_c10d._get_default_group()

    @property
    def _gatherer(self) -> StoreGather | None:
        return known_store_gather_of(self._group) if self.world > 1 else None

    @property
    def tells_first(self) -> bool:
        """Whether gather() gives the others the value of this rank before it calls `meanwhile`. If not, an error of
        `meanwhile` can be part of the value. Known after the first gather()."""
        return self._gatherer is not None

    def _wait_for(self, event: Any) -> None:
        """Waits for the event. Fails if a rank has left: the work before the event may wait for this rank."""
        pause, looked = 10e-6, time.monotonic()
        while not event.query():
            time.sleep(pause)
            pause = min(2 * pause, 200e-6)
            if time.monotonic() > looked + 1:
                gatherer, looked = self._gatherer, time.monotonic()
                if gatherer:
                    gatherer.check_others()

    def leave(self) -> None:
        """After an error that the other ranks may not have. If they gather through their store, they fail in this gather()
        or in the next one."""
        if gatherer := self._gatherer:
            gatherer.leave()

    def tidy(self) -> None:
        """After a call, while the GPU works. If the store fails now, the next call will notice."""
        if gatherer := self._gatherer:
            with contextlib.suppress(RuntimeError):
                gatherer.tidy()

    def finish(self) -> None:
        """After the last gather() of a call that all ranks leave here, because their processes may end now."""
        self.tidy()
        if gatherer := self._gatherer:
            gatherer.finish()

    def _gather_by_engine(self, value: Any) -> list[Any]:
        values = [value] * self.world
        self.has_told = True
        self._call(dist.all_gather_object, values, value, group=self.group)
        return values

    def exchanges_on(self, device: torch.device) -> bool:
        """Whether the engine has an all-to-all for tensors on the device. gloo only sends between pairs."""
        return self._engine in ("mpi", "ucc") or self.uses_nccl(device)

    def uses_nccl(self, device: torch.device) -> bool:
        """Whether NCCL exchanges the tensors of the device, or this rank is alone. The work follows the order of CUDA
        streams."""
        return device.type == "cuda" and (self.world == 1 or "nccl" in self._engine)

    def start(self, received: torch.Tensor, sent: torch.Tensor, arriving: list[int], to: list[int]) -> Any:
        """Starts an exchange of bytes. Returns a function that waits for its end, and keeps the tensors
        until then."""
        if self.exchanges_on(sent.device):
            work = [self._call(dist.all_to_all_single, received, sent, arriving, to, self.group, True)]
            return lambda tensors=(received, sent): self._finish(work)
        there = received if received.device.type == "cpu" else torch.empty(received.shape, dtype=torch.uint8, device="cpu")
        here = sent.cpu()
        work = list(self._send_between_pairs(there, here, arriving, to))

        def finish(here: torch.Tensor = here) -> None:
            self._finish(work)
            if there is not received:
                received.copy_(there)

        return finish

    def make_token(self, device: torch.device) -> None:
        """Allocates the memory that wait_for_all() needs."""
        if self.world > 1 and (self._token is None or self._token.device != device):
            self._token = torch.zeros(1, device=device)

    def wait_for_all(self, device: torch.device) -> None:
        """The current stream of the device waits until all ranks have come to this point in theirs."""
        if self.world == 1:
            return
        self.make_token(device)
        self._call(dist.all_reduce, self._token, group=self.group)

    def _send_between_pairs(
        self, received: torch.Tensor, sent: torch.Tensor, arriving: list[int], to: list[int]
    ) -> Iterator[Any]:
        inputs, outputs = sent.split(to), received.split(arriving)
        for distance in range(self.world):
            target, source = (self.rank + distance) % self.world, (self.rank - distance) % self.world
            if distance == 0:
                outputs[source].copy_(inputs[target])
                continue
            if arriving[source]:
                yield self._call(dist.irecv, outputs[source], self._number(source), self.group)
            if to[target]:
                yield self._call(dist.isend, inputs[target], self._number(target), self.group)

    def _number(self, rank: int) -> int:
        """The number of a rank of the group among all processes."""
        if self.group is None or self.group is dist.group.WORLD:
            return rank
        find = getattr(dist, "get_global_rank", None) or dist.distributed_c10d.get_global_rank
        return int(find(self.group, rank))

    def _finish(self, work: list[Any]) -> None:
        for one in work:
            self._call(one.wait)
