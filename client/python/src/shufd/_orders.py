# SPDX-License-Identifier: MIT
"""The orders of epochs: where a sampler reads them. Leased from a daemon, computed in this process, or without a
shuffle."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from . import _errors, _request
from .local import Permutation

Indices = npt.NDArray[Any]
Read = Callable[[int, int, int], Indices]  # (first position, count, stride) of an order


@dataclasses.dataclass(frozen=True)
class Epoch:
    """Selects an order of [0, n)."""

    n: int
    seed: int
    epoch: int
    algorithm: str = "primefold"
    shuffle: bool = True


def _sliced(order: Indices) -> Read:
    def read(first: int, count: int, stride: int) -> Indices:
        return order[first : first + (count - 1) * stride + 1 : stride]

    return read


def _counted(first: int, count: int, stride: int) -> Indices:
    """The order without a shuffle."""
    return np.arange(first, first + count * stride, stride, dtype=np.int64)


def nothing(first: int, count: int, stride: int) -> Indices:
    """The order of an empty share."""
    raise AssertionError


def _computed(epoch: Epoch) -> Read:
    return Permutation(epoch.n, epoch.seed, epoch.epoch).range


def order_of(client: Any, epoch: Epoch) -> Read:
    """Leases the permutation, which all ranks of the machine share. The daemon may have no room for
    it, for example while other ranks still hold the epoch before. Then this process computes the
    values, which is slower."""
    if not epoch.shuffle:
        return _counted
    try:
        values = client.permute(epoch.n, epoch.seed, epoch.epoch, algorithm=epoch.algorithm)
    except (_errors.OutOfMemory, _errors.Busy):
        if epoch.algorithm != "primefold":
            raise
        return _computed(epoch)
    return _sliced(values)


def prefetch(client: Any, epoch: Epoch) -> None:
    """Lets the daemon compute an epoch for later. Warns if the daemon has no room for it now."""
    if not epoch.shuffle or epoch.epoch >= 2**64:
        return
    try:
        lack = client._prefetch(_request.whole(epoch.n, epoch.seed, None, epoch.epoch, epoch.algorithm), None)
    except (_errors.OutOfMemory, _errors.Busy, _errors.NoDaemon):
        return
    if lack is not None:
        why, name = lack
        warnings.warn(
            f"sampler: the next epoch, n {epoch.n}, {why}; the daemon may compute it only when it begins; "
            f"to compute it during this one, give the daemon a larger {name}",
            RuntimeWarning, stacklevel=2,
        )  # fmt: skip
