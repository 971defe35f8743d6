# SPDX-License-Identifier: MIT
"""The part of the samplers that does not depend on a framework: the indices that a rank draws, and
the place where an epoch continues.

The *order* of an epoch is its permutation of the indices. All ranks together have one global position
in the order: the number of indices that they have drawn. From the global position `start`, rank r of
`world` draws the index at position start + r + k * world in its step k. So a job can continue from a
position with any number of ranks, and each rank finds its place in constant time.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, cast

import numpy as np
import numpy.typing as npt

from . import _errors, _request
from ._arguments import integer, seed64, shown, u64
from .local import Permutation

Indices = npt.NDArray[Any]
Read = Callable[[int, int, int], Indices]  # (first position, count, stride) of an order

STATE_VERSION = 1
_CHUNK = 8192  # indices that are converted at once


@dataclasses.dataclass(frozen=True)
class Epoch:
    """Selects an order of [0, n)."""

    n: int
    seed: int
    epoch: int
    algorithm: str = "primefold"
    shuffle: bool = True


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


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`. After 2^64 - 1 comes 0."""
    return (epoch + 1) % 2**64


def check(dataset: Any, seed: Any, algorithm: Any, client: Any) -> int:
    """Checks arguments of a sampler, without a daemon. Returns the length of the dataset."""
    try:
        n = len(dataset)
    except TypeError:
        raise _errors.Invalid(f"dataset: {shown(dataset)}: expected a dataset with a length") from None
    _request.bytes_of(_request.whole(max(1, n), seed64(seed), None, 0, algorithm))
    if client is not None and not callable(getattr(client, "permute", None)):
        raise _errors.Invalid(f"client: {shown(client)}: expected a shufd.Client, such as shufd.connect()")
    return n


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
    if not epoch.shuffle:
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


class Cursor:
    """The place of an iteration. It converts the indices to integers of Python chunk by chunk. The
    iterator of a chunk knows how many indices are left in it, so this class need not count each one."""

    def __init__(self, share: Share, order: Read) -> None:
        self.share = share
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

    def next_chunk(self) -> Iterator[int] | None:
        """An iterator over the next indices; None at the end."""
        values = self.take(_CHUNK).tolist()
        if not values:
            return None
        self._chunk = iter(values)
        return self._chunk


class Iteration(itertools.chain[Any]):
    """The indices of one iteration of a sampler, or its batches. torchdata's loaders save an iterator beside
    its sampler and load both. An iterator that had ended ends at once then, so indices that workers ask for in
    advance do not begin the next epoch."""

    sampler: Resumable
    has_ended: list[bool]  # shared with the generator of the indices

    @classmethod
    def of(cls, sampler: Resumable, chunks: Callable[[], Iterator[Iterable[Any]]]) -> Iteration:
        has_ended = [False]

        def rest() -> Iterator[Iterable[Any]]:
            if not has_ended[0]:
                yield from chunks()

        iteration = cast(Iteration, cls.from_iterable(rest()))
        iteration.sampler, iteration.has_ended = sampler, has_ended
        return iteration

    def state_dict(self) -> dict[str, Any]:
        return {"ended": self.has_ended[0] or self.sampler._is_at_end()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.has_ended[0] = bool(state["ended"])
        if self.has_ended[0]:
            self.sampler._end_iteration()


# Why a field of a state has another value.
_OF_THIS = "as in this sampler; make the sampler with the {name} of the state"
_REASONS = {
    "version": "the version of this release; the state is of another release of shufd",
    "n": "the length of the dataset of this sampler",
}


def _check_class(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Fails if the state is a whole state of the other class of samplers."""
    of, own = (("DistributedSampler", "RandomSampler")["num_samples" in fields] for fields in (state, expected))
    common = {*expected, "position"} - {"num_samples", "replacement"}
    if of != own and common <= {*state}:
        raise _errors.Invalid(f"state: of a {of}: expected one of a {own}, as this sampler is")


def _check_state(state: Any, expected: Mapping[str, Any]) -> tuple[int, int]:
    """Checks that a state fits a sampler, whose own state has the values `expected`. Returns its epoch and
    position."""
    if not isinstance(state, Mapping):
        raise _errors.Invalid(f"state: {shown(state)}: expected a dict of state_dict()")
    _check_class(state, expected)
    for name in [*expected, "position"]:
        if name not in state:
            raise _errors.Invalid(f"state: no field {name}: expected a whole dict of state_dict()")
    for name in expected:
        if name != "epoch" and state[name] != expected[name]:
            reason = _REASONS.get(name, _OF_THIS).format(name=name)
            raise _errors.Invalid(f"state: {name} {shown(state[name])}: expected {expected[name]!r}, {reason}")
    most = expected.get("num_samples", expected["n"])
    position = integer("state: position", state["position"])
    if not 0 <= position <= most:
        raise _errors.Invalid(f"state: position {position}: expected 0 to {most}")
    return u64("state: epoch", state["epoch"]), position


class Resumable:
    """The common part of the samplers: an iteration that begins at the place of load_state_dict(),
    or at the beginning. An iteration begins with its first index, so unused iterators cost
    nothing."""

    def __init__(self) -> None:
        self._epoch = 0
        self._resume = 0  # the global position where the next iteration begins
        self._cursor: Cursor | None = None  # of the iteration that began last

    @property
    def epoch(self) -> int:
        """The epoch to continue with: that of the sampler, or the next one if a loaded state is at the
        end of its epoch."""
        return next_epoch(self._epoch) if self._cursor is None and self._is_end(self._resume) else self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = u64("epoch", epoch)

    @property
    def remaining(self) -> int:
        """The number of indices that this rank has not drawn in the epoch, from the place of a loaded state
        on. len() is the length of the whole epoch."""
        cursor = self._cursor
        return len(self._share(self._resume)) if cursor is None else len(cursor.share) - cursor.step

    def _share(self, start: int) -> Share:
        """The positions of this rank from `start` on."""
        raise NotImplementedError

    def _is_end(self, position: int) -> bool:
        return position > 0 and len(self._share(position)) == 0

    def _is_at_end(self) -> bool:
        """Whether all indices of the epoch are drawn."""
        return self._is_end(self._resume if self._cursor is None else self._cursor.position)

    def _end_iteration(self) -> None:
        """After the end of an iteration that was loaded: without set_epoch() the next one repeats the epoch."""
        if self._cursor is None and self._is_end(self._resume):
            self._move(self._epoch, 0)

    def _begin(self) -> Cursor:
        """Begins an iteration. If the daemon fails, the next iteration begins at the same place."""
        self._cursor = None  # its lease ends before the next one begins
        self._cursor = cursor = self._cursor_from(self._resume)
        self._resume = 0
        return cursor

    def _cursor_from(self, start: int) -> Cursor:
        """A cursor at the global position. Changes the sampler only after the requests to the daemon."""
        raise NotImplementedError

    def _description(self) -> dict[str, Any]:
        """The state without the position: what must be equal to continue."""
        raise NotImplementedError

    def _move(self, epoch: int, position: int) -> None:
        self._epoch, self._resume, self._cursor = epoch, position, None

    def _chunks(self) -> Iterator[Iterator[int]]:
        cursor = self._begin()
        while (chunk := cursor.next_chunk()) is not None:
            yield chunk

    def __iter__(self) -> Iterator[int]:
        """The indices of this rank, as integers of Python."""
        return Iteration.of(self, self._chunks)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """The place in the epoch, as a new dict of plain values. It is the same on all ranks that have
        drawn equally many indices, and load_state_dict() takes it with any number of ranks.

        used  the number of this rank's indices that the job has used since the iteration began, so after a
              resume it counts from 0 again. The default is the number of drawn indices, which is too
              large if a DataLoader's workers draw ahead. After a smaller last batch, steps * batch_size
              is more than the number of drawn indices. So once all indices are drawn, any larger number
              means the end.

        Fails with Invalid if `used` is more than the number of drawn indices, and some are left.
        """
        if used is not None:
            position = self._position_of(integer("used", used))
        else:
            position = self._resume if self._cursor is None else self._cursor.position
        return {**self._description(), "position": position}

    def _position_of(self, used: int) -> int:
        most = 0 if self._cursor is None else self._cursor.step
        has_ended = self._cursor is not None and most == len(self._cursor.share)
        if used < 0 or (used > most and not has_ended):
            raise _errors.Invalid(
                f"used: {used}: expected 0 to {most}, the indices drawn since the iteration began"
            )
        return self._resume if self._cursor is None else self._cursor.share.position(used)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Lets the next iteration continue at the place of a state, which any number of ranks may have
        saved. Takes constant time. If the state is at the end of its epoch, `epoch` is the next one.
        Fails with Invalid for a state of other data, seed, algorithm or class."""
        epoch, position = _check_state(state_dict, self._description())
        if self._epoch == next_epoch(epoch) and self._is_end(position):
            epoch, position = self._epoch, 0  # StatefulDataLoader loads its state after set_epoch()
        self._move(epoch, position)

    def __getstate__(self) -> dict[str, Any]:
        """Copies continue at this place. After the last index they repeat the epoch, as this sampler
        does without set_epoch()."""
        has_ended = self._cursor is not None and self._cursor.step == len(self._cursor.share)
        resume = 0 if has_ended else self.state_dict()["position"]
        return {**self.__dict__, "_resume": resume, "_cursor": None}


def state_of(epoch: Epoch, **more: Any) -> dict[str, Any]:
    """An order as a dict of plain values."""
    return {
        "version": STATE_VERSION,
        "algorithm": epoch.algorithm,
        "n": epoch.n,
        "seed": epoch.seed,
        "shuffle": epoch.shuffle,
        "epoch": epoch.epoch,
        **more,
    }
