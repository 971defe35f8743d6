# SPDX-License-Identifier: MIT
"""Frameworks that divide the indices of a sampler between the ranks, or set its epoch. They do so while they iterate
over it, so they are found on the stack."""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any, Callable, Iterator

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
_STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader"


def _open_tasks(loader: Any) -> Callable[[Any], bool]:
    """The tasks of this epoch that the workers have got, and the job not yet. They outlive the loader."""
    tasks = loader._task_info
    return lambda loader: bool(tasks)


def _until_the_end(attribute: str, end: Any) -> Callable[[Any], Callable[[Any], bool]]:
    """A loader that has an attribute of this value at the end. A loader that was left early may be gone."""
    return lambda loader: lambda loader: loader is None or getattr(loader, attribute) is not end


# Loaders that draw indices ahead, by module: an attribute, and a function that makes the function that tells whether
# the job has not got all drawn indices.
_READERS = {
    "torch.utils.data.dataloader": ("_task_info", _open_tasks),
    _STATEFUL: ("_task_info", _open_tasks),
    "accelerate.data_loader": ("end_of_dataloader", _until_the_end("end_of_dataloader", True)),
    "ray.train.torch.train_loop_utils": ("next_batch", _until_the_end("next_batch", None)),
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
        elif frame.f_code.co_name != "set_epoch" and os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            return False
    return False


class Readers:
    """The loaders that draw the indices of the caller ahead: of torch with workers, of accelerate, or of Ray Train."""

    def __init__(self) -> None:
        self._loaders: list[tuple[weakref.ref[Any], Callable[[Any], bool]]] = []
        for frame in _frames():
            reader = _READERS.get(frame.f_globals.get("__name__", ""))
            if reader and hasattr(loader := frame.f_locals.get("self"), reader[0]):
                self._loaders.append((weakref.ref(loader), reader[1](loader)))

    def are_ahead(self) -> bool:
        """Whether the job has not got all drawn indices."""
        return any(is_ahead(of()) for of, is_ahead in self._loaders)

    def have_given_nothing(self) -> bool:
        """Whether a loader with workers has drawn indices, and the job has got none of them."""
        loaders: list[Any] = [of() for of, _ in self._loaders]
        return any(hasattr(loader, "_rcvd_idx") and loader._send_idx > 0 == loader._rcvd_idx for loader in loaders)


def is_called_by_torchdata() -> bool:
    """Whether a loader of torchdata calls the caller. It counts the indices that are drawn ahead itself."""
    return any(str(frame.f_globals.get("__name__")).startswith("torchdata.") for frame in _frames())


def is_discarded() -> bool:
    """Whether torchdata discards the iteration of the caller: a loader with workers begins one to continue a state at the
    end of an epoch, and then another."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == _STATEFUL and frame.f_code.co_name == "__init__":
            state = frame.f_locals.get("next_iter_state")
            return bool(state and state.get("_iterator_finished"))
    return False


def starts_process() -> bool:
    """Whether the caller is copied into a process that starts, by the methods spawn and forkserver."""
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None
