# SPDX-License-Identifier: MIT
"""Frameworks that divide the indices of a sampler between the ranks, or set its epoch. They do so while they iterate
over it, so they are found on the stack."""

from __future__ import annotations

import itertools
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
_FABRIC = tuple(f"{name}.{module}" for name in ("lightning.fabric", "lightning_fabric") for module in ("utilities.data", "wrappers"))
_LOADER = "torch.utils.data.dataloader"
_STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader"
_WORKER = ("torchdata.stateful_dataloader.worker", "_worker_loop")  # deletes `worker_state` once the first iteration has begun
_BATCHES = "torchdata.stateful_dataloader.sampler"
_NODES = "torchdata.nodes.adapters"
# The functions that count the iterations of a job: accelerate and nodes not those that were left early or not used.
_COUNTERS = {(name, "__iter__"): "loader" for name in ("accelerate.data_loader", *_FABRIC)} | {(_NODES, "reset"): "node"}
_PACKAGE = os.path.dirname(__file__)


def _frames() -> Iterator[FrameType]:
    """The frames of the callers outside this package, the nearest first. Reading f_locals of a frame keeps its objects, so
    do it only for known modules."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            yield frame
        frame = frame.f_back


def _place_of(frame: FrameType) -> tuple[str, str]:
    """Its module and its function."""
    return str(frame.f_globals.get("__name__")), frame.f_code.co_name


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


def epoch_counter() -> str:
    """The kind of the framework that sets the epoch of the caller by itself when it begins an iteration: "loader" or "node";
    or "". Its number counts the iterations of this job, so after a restart or a break it is wrong."""
    for frame in _frames():
        if kind := _COUNTERS.get(_place_of(frame)):
            return kind
        if frame.f_code.co_name not in ("set_epoch", "_set_sampler_epoch"):
            break
    return ""


def is_dispatched() -> bool:
    """Whether accelerate's dispatcher calls the caller, for several ranks. It reads a batch for each rank at once."""
    framework, owner = divider()
    return framework == "DataLoaderDispatcher" and ranks_of(owner) > 1


def skipper() -> str:
    """Whether a "loader" or "node" leaves out the first indices of the caller, to continue an epoch, or "": of accelerate
    after skip_first_batches(), of torchdata for a source without a state."""
    if is_discarded():
        return ""
    for frame in _frames():
        module, function = _place_of(frame)
        if module not in ("accelerate.data_loader", _STATEFUL, _BATCHES, _NODES):
            continue
        owner: Any = frame.f_locals.get("self")
        if getattr(owner, "skip_batches", 0) > 0:
            return "loader"
        if function == "_next_index" and isinstance(owner._sampler_iter, itertools.islice) and owner._sampler_iter_yielded > 0:
            return "loader"
        if function == "load_state_dict" or (function == "reset" and frame.f_locals.get("initial_state") is not None):
            sources = (getattr(owner, name, None) for name in ("sampler", "iterable", "_dataset"))
            if not any(hasattr(source, "load_state_dict") for source in sources):
                return "node" if module == _NODES else "loader"
    return ""


def counts_batches() -> bool:
    """Whether a StatefulDataLoader draws the indices of the caller through a class without a state. The state of the loader
    then has the number of batches since the loader began, and its next job leaves out so many of the whole epoch."""
    for frame in _frames():
        if _place_of(frame) == (_STATEFUL, "_next_index"):
            owner = frame.f_locals["self"]
            return not any(hasattr(source, "state_dict") for source in (owner._index_sampler, owner._sampler_iter))
    return False


def _torchdata() -> Any:
    """The object of torchdata that calls the caller directly, or None."""
    for frame in _frames():
        if not _place_of(frame)[0].startswith("torchdata."):
            return None
        if "self" in frame.f_locals:
            return frame.f_locals["self"]
    return None


def is_called_by_torchdata() -> bool:
    """Whether a loader of torchdata calls the caller, also through a class of a user."""
    return any(_place_of(frame)[0].startswith("torchdata.") for frame in _frames())


def is_called_by_loader() -> bool:
    """Whether a loader of torch or torchdata calls the caller."""
    return any(_place_of(frame)[0].startswith(("torch.utils.data.", "torchdata.")) for frame in _frames())


def loader() -> Callable[[], Any]:
    """A weak reference to the iterator of a loader of torch or torchdata that draws the indices of the caller, or to None."""
    for frame in _frames():
        if _place_of(frame) in ((_LOADER, "_next_index"), (_STATEFUL, "_next_index")):
            return weakref.ref(frame.f_locals["self"])
    return lambda: None


def is_ahead(loader: Any) -> bool:
    """Whether the workers of such a loader have batches that the job has not taken."""
    return getattr(loader, "_rcvd_idx", 0) < getattr(loader, "_send_idx", 0)


def saved_iterator() -> Any:
    """The iterator of the caller that a loader of torchdata has, which saves the caller; or None."""
    owner = _torchdata()
    iterators = (getattr(owner, name, None) for name in ("_it", "sampler_iter", "_sampler_iter"))
    return next((iterator for iterator in iterators if iterator is not None), None)


def is_node_loading() -> bool:
    """Whether a node of torchdata begins the caller at the state that it has just loaded, also through a class of a user."""
    frame = next((frame for frame in _frames() if _place_of(frame)[0].startswith("torchdata.")), None)
    return frame is not None and _place_of(frame) == (_NODES, "reset") and frame.f_locals.get("initial_state") is not None


def least_batch() -> int:
    """The size of the smallest batch of the StatefulDataLoader that loads the caller, and drops a smaller one; or 1."""
    owner = _torchdata()
    return int(owner.batch_size) if getattr(owner, "drop_last", False) and hasattr(owner, "samples_yielded") else 1


def _continues(field: str) -> bool:
    """Whether a StatefulDataLoader begins the caller to continue a state, in which the field is not 0. A forked worker also
    has the frames in which its parent continued the state, for as long as it lives. They count for its first iteration."""
    for frame in _frames():
        if _place_of(frame) == _WORKER and not frame.f_locals.get("worker_state"):
            return False
        if _place_of(frame) == (_STATEFUL, "__init__") and (frame.f_locals.get("next_iter_state") or {}).get(field):
            return True
    return False


def is_discarded() -> bool:
    """Whether torchdata discards the iteration of the caller: a loader with workers begins one to continue a state at the
    end of an epoch, and then another."""
    return _continues("_iterator_finished")


def is_replayed() -> bool:
    """Whether torchdata draws the first batches of the caller again and discards them, because its state is of some steps
    before: a loader with workers and snapshot_every_n_steps above 1."""
    return _continues("_steps_since_snapshot")
