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
from ._chunks import Sizes
from .local import Permutation

Indices = npt.NDArray[Any]
Read = Callable[[int, int, int], Indices]  # (first position, count, stride) of an order
CHUNK = 8192  # indices that are computed, and converted to Python's, at once


@dataclasses.dataclass(frozen=True)
class Epoch:
    """Selects an order of [0, n)."""

    n: int
    seed: int
    epoch: int
    algorithm: str = "primefold"
    shuffle: bool = True
    chunk: int | Sizes | None = None  # with window: a windowed order
    window: int | None = None


def sliced(order: Indices) -> Read:
    """The order that an array has."""

    def read(first: int, count: int, stride: int) -> Indices:
        return order[first : first + (count - 1) * stride + 1 : stride]

    return read


def _counted(first: int, count: int, stride: int) -> Indices:
    """The order without a shuffle."""
    return np.arange(first, first + count * stride, stride, dtype=np.int64)


def nothing(first: int, count: int, stride: int) -> Indices:
    """The order of an empty share."""
    raise AssertionError


class _Computed:
    """The order by primefold, in the smaller unsigned type that holds n - 1. A call for several values computes some
    thousand, and the next calls take their values from these. Any number of threads may call it."""

    def __init__(self, epoch: Epoch) -> None:
        self._order = Permutation(epoch.n, epoch.seed, epoch.epoch, chunk=epoch.chunk, window=epoch.window)
        self._kind = np.uint32 if epoch.n <= 2**32 else np.uint64
        self._ahead: tuple[int, int, Indices] = 0, 0, np.empty(0, self._kind)  # first position, stride, values

    def __call__(self, first: int, count: int, stride: int) -> Indices:
        begin, step, values = self._ahead
        skipped = (first - begin) // step if step == stride and first >= begin else len(values)
        if skipped + count <= len(values) and begin + skipped * step == first:
            return values[skipped : skipped + count]
        left = (self._order.n - 1 - first) // stride + 1
        out = np.empty(min(left, max(count, CHUNK if count > 1 else 1)), self._kind)
        self._order._fill(first, stride, out)
        if len(out) > count:
            self._ahead = first, stride, out
        return out[:count]


def order_of(connect: Callable[[], Any], epoch: Epoch) -> Read:
    """The order of an epoch. connect() gives a client, if a daemon is needed."""
    if not epoch.shuffle:
        return _counted
    if epoch.algorithm == "primefold":
        return _Computed(epoch)
    return sliced(connect().permute(epoch.n, epoch.seed, epoch.epoch, algorithm=epoch.algorithm))


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
