# SPDX-License-Identifier: MIT
"""Frameworks that divide the indices of a sampler between the ranks, or set its epoch. They do so while they iterate
over it, so they are found on the stack."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Iterator

_DIVIDERS = {
    "accelerate.data_loader": ("BatchSamplerShard", "DataLoaderDispatcher"),
    "lightning.fabric.utilities.distributed": ("DistributedSamplerWrapper",),
    "lightning_fabric.utilities.distributed": ("DistributedSamplerWrapper",),
    "lightning.pytorch.overrides.distributed": ("UnrepeatedDistributedSamplerWrapper",),
    "pytorch_lightning.overrides.distributed": ("UnrepeatedDistributedSamplerWrapper",),
}
_LOADERS = ("accelerate.data_loader", "lightning.fabric.wrappers", "lightning_fabric.wrappers")


def _frames() -> Iterator[FrameType]:
    """The frames below the function that asks: its callers, the nearest first."""
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


def sets_epoch_by_itself() -> bool:
    """Whether a loader of accelerate or Lightning Fabric calls the caller, as it does when it begins an iteration. It
    counts the iterations of this job that were not left early, so after a restart or a break its number is wrong."""
    return any(f.f_globals.get("__name__") in _LOADERS and f.f_code.co_name == "__iter__" for f in _frames())
