# SPDX-License-Identifier: MIT
"""Frameworks that divide the indices of a sampler between the ranks, or set its epoch. They do so while they iterate
over it, so they are found on the stack."""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any, Iterator

from ._ranks import launched_ranks

_DIVIDERS = {
    "accelerate.data_loader": ("BatchSamplerShard", "DataLoaderDispatcher", "IterableDatasetShard"),
    "lightning.fabric.utilities.distributed": ("DistributedSamplerWrapper",),
    "lightning_fabric.utilities.distributed": ("DistributedSamplerWrapper",),
    "lightning.pytorch.overrides.distributed": ("UnrepeatedDistributedSamplerWrapper",),
    "pytorch_lightning.overrides.distributed": ("UnrepeatedDistributedSamplerWrapper",),
}
OF_ACCELERATE = _DIVIDERS["accelerate.data_loader"]
_LOADERS = (
    "accelerate.data_loader",
    *(f"{name}.{module}" for name in ("lightning.fabric", "lightning_fabric") for module in ("utilities.data", "wrappers")),
)
# An attribute of each loader that draws indices ahead, by module.
_READERS = {
    "torch.utils.data.dataloader": "_rcvd_idx",
    "torchdata.stateful_dataloader.stateful_dataloader": "_rcvd_idx",
    "accelerate.data_loader": "end_of_dataloader",
}
_PACKAGE = os.path.dirname(__file__)


def _frames() -> Iterator[FrameType]:
    """The frames below the function that asks: its callers, the nearest first. Reading f_locals of a frame keeps its
    objects, so do it only for known modules."""
    frame = sys._getframe(2).f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def divider() -> tuple[str, Any]:
    """The object of a framework that iterates over the caller's sampler, and its class; or ("", None)."""
    for frame in _frames():
        classes = _DIVIDERS.get(frame.f_globals.get("__name__", ""))
        if classes:
            owner = frame.f_locals.get("self")
            if type(owner).__name__ in classes:
                return type(owner).__name__, owner
    return "", None


def ranks_of(owner: Any) -> int:
    """The number of ranks between which an object of divider() divides indices; 1 for None. An object that is still
    being made divides between all."""
    for place in (owner, getattr(owner, "state", None)):
        for name in ("num_processes", "num_replicas"):
            if hasattr(place, name):
                return int(getattr(place, name))
    return 1 if owner is None else launched_ranks()


def divides_again() -> bool:
    """Whether accelerate divides the indices of the caller between several ranks."""
    framework, owner = divider()
    return framework in OF_ACCELERATE and ranks_of(owner) > 1


def sets_epoch_by_itself() -> bool:
    """Whether a loader of accelerate or Lightning Fabric calls the caller, as it does when it begins an iteration. It
    counts the iterations of this job that were not left early, so after a restart or a break its number is wrong."""
    for frame in _frames():
        if frame.f_globals.get("__name__") in _LOADERS:
            if frame.f_code.co_name == "__iter__":
                return True
        elif os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            return False
    return False


class Readers:
    """The loaders that draw the indices of the caller: of torch with workers, or of accelerate. They draw ahead."""

    def __init__(self) -> None:
        self._loaders: list[weakref.ref[Any]] = []
        for frame in _frames():
            attribute = _READERS.get(frame.f_globals.get("__name__", ""))
            if attribute and hasattr(loader := frame.f_locals.get("self"), attribute):
                self._loaders.append(weakref.ref(loader))

    def are_ahead(self, has_ended: bool) -> bool:
        """Whether the job has not got all drawn indices. `has_ended`: all are drawn."""
        return any(self._is_ahead(of(), has_ended) for of in self._loaders)

    @staticmethod
    def _is_ahead(loader: Any, has_ended: bool) -> bool:
        if hasattr(loader, "_rcvd_idx"):  # of torch: the numbers of the batches that it has sent and received
            return bool(loader._rcvd_idx < loader._send_idx)
        return not getattr(loader, "end_of_dataloader", has_ended)  # None: left early, or at the end


def is_called_by_torchdata() -> bool:
    """Whether a loader of torchdata calls the caller. It counts the indices that are drawn ahead itself."""
    for frame in _frames():
        if os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            return str(frame.f_globals.get("__name__")).startswith("torchdata.")
    return False


def starts_process() -> bool:
    """Whether the caller is copied into a process that starts, by the methods spawn and forkserver."""
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None
