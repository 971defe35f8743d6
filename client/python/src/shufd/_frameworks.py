# SPDX-License-Identifier: MIT
"""Frameworks that divide the indices of a sampler between the ranks, or set its epoch. They do so while they iterate
over it, so they are found on the stack."""

from __future__ import annotations

import itertools
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
_STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader"
_BATCHES = "torchdata.stateful_dataloader.sampler"
_NODES = "torchdata.nodes.adapters"
_TRAINERS = {"lightning": "Lightning", "pytorch_lightning": "Lightning", "transformers": "the Trainer of transformers"}
_PASSES_EPOCH = ("set_epoch", "_set_sampler_epoch")  # functions that pass on the epoch of their caller
_PACKAGE = os.path.dirname(__file__)


def _frames() -> Iterator[FrameType]:
    """The frames below the function that asks: its callers, the nearest first. Reading f_locals of a frame keeps its
    objects, so do it only for known modules."""
    frame = sys._getframe(2).f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def _caller() -> FrameType:
    """The nearest frame of another package, or else this one."""
    others = (frame for frame in _frames() if os.path.dirname(frame.f_code.co_filename) != _PACKAGE)
    return next(others, sys._getframe())


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


def is_dispatched() -> bool:
    """Whether accelerate's dispatcher calls the caller, for several ranks. It reads a batch for each rank at once."""
    framework, owner = divider()
    return framework == "DataLoaderDispatcher" and ranks_of(owner) > 1


def skips_batches() -> bool:
    """Whether accelerate leaves out the first batches of the caller's order, to continue an epoch."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            owner: Any = frame.f_locals.get("self")
            if type(owner).__name__ == "SkipBatchSampler" and owner.skip_batches > 0:
                return True
    return False


def fast_forwards() -> bool:
    """Whether a loader of torchdata leaves out the first indices of the caller, to continue the state of something that
    has no state itself, such as batches of torch."""
    for frame in _frames():
        place = frame.f_globals.get("__name__"), frame.f_code.co_name
        if place == (_STATEFUL, "_next_index"):
            loader = frame.f_locals["self"]
            return isinstance(loader._sampler_iter, itertools.islice) and loader._sampler_iter_yielded > 0
        if place == (_NODES, "reset"):
            node = frame.f_locals["self"]
            source = getattr(node, "sampler", getattr(node, "iterable", None))
            return frame.f_locals.get("initial_state") is not None and not hasattr(source, "load_state_dict")
    return False


def node_that_resets(loads: bool) -> Any:
    """The node of torchdata that begins the caller, from a state or without one, or None. A SamplerWrapper has the number
    of its epoch, which it counts from the start of the job."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == _NODES and frame.f_code.co_name == "reset":
            return frame.f_locals["self"] if (frame.f_locals.get("initial_state") is not None) == loads else None
    return None


def trainer_that_calls() -> str:
    """The name of the trainer that calls set_epoch() of the caller with its own count of epochs, or ""."""
    for frame in _frames():
        if frame.f_code.co_name not in _PASSES_EPOCH and os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            return _TRAINERS.get(str(frame.f_globals.get("__name__")).partition(".")[0], "")
    return ""


def is_called_by_torchdata() -> bool:
    """Whether a loader of torchdata calls the caller. It saves a state before it draws further."""
    return any(str(frame.f_globals.get("__name__")).startswith("torchdata.") for frame in _frames())


def is_saved_with_iterator() -> bool:
    """Whether a StatefulDataLoader itself saves the caller. It saves the iterator of the caller too, which has its place."""
    return str(_caller().f_globals.get("__name__")).startswith("torchdata.stateful_dataloader.")


def least_batch(sampler: Any) -> int:
    """The size of the smallest batch of the StatefulDataLoader that loads this sampler, and drops a smaller one; or 1. The
    indices of a sampler in another one need not be those of the batches."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == _BATCHES and frame.f_code.co_name == "load_state_dict":
            batches = frame.f_locals["self"]
            return int(batches.batch_size) if batches.drop_last and batches.sampler is sampler else 1
    return 1


def iterator_of_node() -> Any:
    """The iterator of a node of torchdata that saves the caller, or None. The node saves no iterator, and the caller may
    have several."""
    frame = _caller()
    is_node = frame.f_globals.get("__name__") == _NODES and frame.f_code.co_name == "get_state"
    return getattr(frame.f_locals.get("self"), "_it", None) if is_node else None


def loader_of_torch() -> weakref.ref[Any] | None:
    """The iterator of the DataLoader that draws from the caller."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == "torch.utils.data.dataloader" and frame.f_code.co_name == "_next_index":
            return weakref.ref(frame.f_locals["self"])
    return None


def is_beginning(loader: Any, has_drawn_all: bool) -> bool:
    """Whether this iterator of a DataLoader has more batches, and has delivered two at most: the first one, and one that
    accelerate reads ahead. Its workers may have drawn all indices."""
    has_more = not has_drawn_all or getattr(loader, "_rcvd_idx", 0) < getattr(loader, "_send_idx", 0)
    return loader._num_yielded == 0 or (has_more and loader._num_yielded <= 2)


def is_discarded() -> bool:
    """Whether torchdata discards the iteration of the caller: a loader with workers begins one to continue a state at the
    end of an epoch, and then another."""
    for frame in _frames():
        if frame.f_globals.get("__name__") == _STATEFUL and frame.f_code.co_name == "__init__":
            state = frame.f_locals.get("next_iter_state")
            return bool(state and state.get("_iterator_finished"))
    return False
