# SPDX-License-Identifier: MIT
"""Where a sampler reads the order of an epoch, and the share of it that a rank draws. This process computes an order by
primefold, chunk by chunk, because that takes less time and memory than a lease of the whole. philox24 and lcg need the
counts of a daemon."""

from __future__ import annotations

import collections
import dataclasses
import operator
import warnings
from typing import Any, Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from . import _errors, _request
from ._arguments import shown
from ._order import Order
from ._permutation import Permutation, Sizes

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


def check(order: Any, **others: tuple[Any, Any]) -> None:
    """Fails if a sampler cannot take this order, or if it has one of the other arguments, (value, usual value), which an
    order decides."""
    if not isinstance(order, Order):
        raise _errors.Invalid(f"order: {shown(order)}: expected an order of shufd.local, such as Permutation(n, seed)")
    for name, (value, usual) in others.items():
        if value != usual:
            raise _errors.Invalid(f"{name}: {shown(value)}: expected no {name} beside order=, which decides it")
    if order.length is None:
        raise _errors.Invalid(f"order: {shown(order)}: it has no end; expected one with length=")


def check_length(name: str, n: int, order: Order) -> None:
    if n != order.n:
        raise _errors.Invalid(f"{name}: length {n}: expected {order.n}, the n of the order")


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


class _Ahead:
    """Reads an order, in the smaller type that holds n - 1: Python makes integers of these in less time. A call for several
    values computes some thousand, and the next calls take their values from these. Any number of threads may call it."""

    def __init__(self, order: Order) -> None:
        self._order, self._length = order, len(order)
        self._kind = np.uint32 if order.n <= 2**32 else np.int64
        self._ahead: tuple[int, int, Indices] = 0, 0, np.empty(0, self._kind)  # first position, stride, values

    def __call__(self, first: int, count: int, stride: int) -> Indices:
        begin, step, values = self._ahead
        skipped = (first - begin) // step if step == stride and first >= begin else len(values)
        if skipped + count <= len(values) and begin + skipped * step == first:
            return values[skipped : skipped + count]
        left = (self._length - 1 - first) // stride + 1
        values = self._order.range(first, min(left, max(count, CHUNK if count > 1 else 1)), stride).astype(self._kind)
        if len(values) > count:
            self._ahead = first, stride, values
        return values[:count]


def order_of(connect: Callable[[], Any], epoch: Epoch | Order) -> Read:
    """The order of an epoch. connect() gives a client, if a daemon is needed."""
    if isinstance(epoch, Order):
        return _Ahead(epoch)
    if not epoch.shuffle:
        return _counted
    if epoch.algorithm == "primefold":
        return _Ahead(Permutation(epoch.n, epoch.seed, epoch.epoch, chunk=epoch.chunk, window=epoch.window))
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


# ---- The indices that a rank draws ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Share:
    """The positions of one rank from the global position `start` on."""

    n: int
    rank: int
    world: int
    drop_last: bool
    start: int = 0

    def __len__(self) -> int:
        rest = max(0, self.n - self.start)
        return rest // self.world if self.drop_last else -(-rest // self.world)

    def position(self, step: int) -> int:
        """The global position after `step` steps of all ranks."""
        return min(self.n, self.start + step * self.world) if step < len(self) else self.n

    def read(self, order: Read, begin: int, end: int) -> Indices:
        """The indices of the steps begin .. end - 1. Positions of n or more are padding: they repeat
        the order from its beginning."""
        first = self.start + self.rank + begin * self.world
        whole = min(end - begin, max(0, -((first - self.n) // self.world)))
        part = order(first, whole, self.world) if whole else None
        if whole == end - begin and part is not None:
            return part
        padding = [
            order((first + k * self.world) % self.n, 1, 1) for k in range(whole, end - begin)
        ]
        return np.concatenate(([] if part is None else [part]) + padding)


class Cursor:
    """The place of an iteration. It converts the indices to integers of Python chunk by chunk. The
    iterator of a chunk knows how many indices are left in it, so this class need not count each one."""

    def __init__(self, share: Share, order: Read, ranks: int = 1) -> None:
        self.share, self.ranks = share, ranks  # a framework divides the indices of the share between so many ranks
        self.description: dict[str, Any] = {}  # the fields of a state apart from the position
        self.is_skipped = False  # a loader skips its first batches
        self._order = order
        self._drawn = 0  # steps, with the whole chunk
        self._chunk: Iterator[int] = iter(())

    @property
    def step(self) -> int:
        """The number of steps that this rank has drawn."""
        return self._drawn - operator.length_hint(self._chunk)

    @property
    def position(self) -> int:
        """The global position."""
        return self.share.position(self.step)

    def take(self, most: int) -> Indices:
        """The next indices, at most so many, as an array: a view of the order where possible."""
        begin, end = self._drawn, min(len(self.share), self._drawn + most)
        indices = self.share.read(self._order, begin, end) if end > begin else np.empty(0, np.int64)
        self._drawn = end
        return indices

    def drop_chunk(self) -> None:
        """Leaves out the rest of the chunk."""
        collections.deque(self._chunk, maxlen=0)

    def chunks(self) -> Iterator[Iterable[int]]:
        """Iterators over the next indices, chunk by chunk."""
        while (chunk := self.next_chunk()) is not None:
            yield chunk

    def next_chunk(self) -> Iterator[int] | None:
        """An iterator over the next indices; None at the end."""
        values: Any = self.take(CHUNK)
        if not values.size:
            return None
        self._chunk = iter(values.tolist())
        return self._chunk
