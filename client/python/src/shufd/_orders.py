# SPDX-License-Identifier: MIT
"""The orders of epochs: where a sampler reads them. This process computes an order by primefold, chunk by chunk, because
that takes less time and memory than a lease of the whole. philox24 and lcg need the counts of a daemon."""

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
    """The order by primefold, in the smaller unsigned type that holds n - 1."""
    order = Permutation(epoch.n, epoch.seed, epoch.epoch)
    kind = np.uint32 if epoch.n <= 2**32 else np.uint64

    def read(first: int, count: int, stride: int) -> Indices:
        out = np.empty(count, kind)
        order.fill_range(first, stride, out)
        return out

    return read


def order_of(connect: Callable[[], Any], epoch: Epoch) -> Read:
    """The order of an epoch. connect() gives a client, if a daemon is needed."""
    if not epoch.shuffle:
        return _counted
    if epoch.algorithm == "primefold":
        return _computed(epoch)
    return _sliced(connect().permute(epoch.n, epoch.seed, epoch.epoch, algorithm=epoch.algorithm))


def prefetch(connect: Callable[[], Any], epoch: Epoch) -> None:
    """Lets the daemon compute an epoch for later, if it computes it. Warns if it has no room for it now."""
    if not epoch.shuffle or epoch.algorithm == "primefold" or epoch.epoch >= 2**64:
        return
    try:
        lack = connect()._prefetch(_request.whole(epoch.n, epoch.seed, None, epoch.epoch, epoch.algorithm), None)
    except (_errors.OutOfMemory, _errors.Busy, _errors.NoDaemon):
        return
    if lack is not None:
        why, name = lack
        warnings.warn(
            f"sampler: the next epoch, n {epoch.n}, {why}; the daemon may compute it only when it begins; "
            f"to compute it during this one, give the daemon a larger {name}",
            RuntimeWarning, stacklevel=2,
        )  # fmt: skip
