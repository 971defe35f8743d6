# SPDX-License-Identifier: MIT
"""The ranks of a torch.distributed process group, which send bytes to each other."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist

from . import _errors, _ranks


class Ranks:
    """The ranks of a process group. Without torch.distributed, this process is the only rank, unless the
    launcher has started several."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.world = 0, 1
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

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks."""
        values = [value] * self.world
        if self.world > 1:
            self._call(dist.all_gather_object, values, value, group=self.group)
        return values

    def _exchanges_on_device(self, device: torch.device) -> bool:
        """Whether the engine has an all-to-all for tensors on the device. gloo only sends between pairs."""
        engine = dist.get_backend(self.group)
        return engine in ("mpi", "ucc") or (device.type == "cuda" and "nccl" in engine)

    def start(self, received: torch.Tensor, sent: torch.Tensor, arriving: list[int], to: list[int]) -> Any:
        """Starts an exchange of bytes. Returns a function that waits for its end, and keeps the tensors
        until then."""
        if self._exchanges_on_device(sent.device):
            work = [self._call(dist.all_to_all_single, received, sent, arriving, to, self.group, True)]
            return lambda tensors=(received, sent): self._finish(work)
        there = received if received.device.type == "cpu" else torch.empty(received.shape, dtype=torch.uint8)
        here = sent.cpu()
        work = list(self._send_between_pairs(there, here, arriving, to))

        def finish(here: torch.Tensor = here) -> None:
            self._finish(work)
            if there is not received:
                received.copy_(there)

        return finish

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
