# SPDX-License-Identifier: MIT
"""The part of the samplers that does not depend on a framework: the indices that a rank draws, and
the place where an epoch continues.

The *order* of an epoch is its permutation of the indices. All ranks together have one global position
in the order: the number of indices that they have drawn. From the global position `start`, rank r of
`world` draws the index at position start + r + k * world in its step k. So a job can continue from a
position with any number of ranks, and each rank finds its place in constant time.
"""

from __future__ import annotations

import copy
import gc
import itertools
import operator
import warnings
import weakref
from typing import (
    TYPE_CHECKING, Any, Callable, Collection, Iterable, Iterator, Mapping, NamedTuple, NoReturn, Sized, cast,
)  # fmt: skip

from . import _errors, _frameworks, _request
from ._arguments import integer, seed_of, shown, u64
from ._permutation import Sizes, named, window_of
from ._order import Order
from ._orders import Cursor, Share

# ---- States --------------------------------------------------------------------------------------
# They are dicts of plain values.

if TYPE_CHECKING:
    from ._orders import Epoch

_VERSION = 1

# Why a field of a state has another value.
_OF_THIS = "as in this sampler; make the sampler with the {name} of the state"
_REASONS = {
    "version": "the version of this release; the state is of another release of shufd",
    "n": "the length of the dataset of this sampler",
}

# Kinds of samplers, by a field that only their states have.
_KINDS = {
    "weights": "a WeightedRandomSampler",
    "subset": "a sampler of a subset",
    "mixture": "a sampler of a mixture",
    "num_samples": "a RandomSampler",
}
_OPTIONAL = {*_KINDS, "length", "replacement"}


def _kind_of(fields: Mapping[str, Any]) -> str:
    return next((kind for name, kind in _KINDS.items() if name in fields), "a DistributedSampler")


def _check_kind(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Fails if the state is a whole state of another kind of samplers."""
    of, own = _kind_of(state), _kind_of(expected)
    if of != own and {*expected, "position"} - _OPTIONAL <= {*state}:
        raise _errors.Invalid(f"state: of {of}: expected one of {own}, as this sampler is")


def check_state(state: Any, expected: Mapping[str, Any], free: Collection[str]) -> tuple[int, int]:
    """Checks that a state fits a sampler, whose own state has the values `expected`, apart from the fields
    `free`. Returns its epoch and position."""
    if not isinstance(state, Mapping):
        raise _errors.Invalid(f"state: {shown(state)}: expected a dict of state_dict()")
    _check_kind(state, expected)
    for name in [*expected, "position"]:
        if name not in state:
            raise _errors.Invalid(f"state: no field {name}: expected a whole dict of state_dict()")
    for name in expected:
        if name not in free and state[name] != expected[name]:
            reason = _REASONS.get(name, _OF_THIS).format(name=name)
            raise _errors.Invalid(f"state: {name} {shown(state[name])}: expected {expected[name]!r}, {reason}")
    if "seed" in free and state["seed"] is not None:
        seed_of(state["seed"])
    most = expected.get("length", expected.get("num_samples", expected["n"]))
    position = integer("state: position", state["position"])
    if not 0 <= position <= most:
        raise _errors.Invalid(f"state: position {position}: expected 0 to {most}")
    return u64("state: epoch", state["epoch"]), position


def state_of(epoch: Epoch | Order, **more: Any) -> dict[str, Any]:
    """An order as a dict of plain values."""
    details = epoch._details() if isinstance(epoch, Order) else {}
    return {
        "version": _VERSION,
        "algorithm": epoch.algorithm,
        "n": epoch.n,
        "seed": epoch.seed,
        "shuffle": getattr(epoch, "shuffle", True),
        "chunk": named(epoch.chunk),
        "window": epoch.window,
        "epoch": epoch.epoch,
        **details,
        **more,
    }


# ---- Samplers ------------------------------------------------------------------------------------

_UNKNOWN = (
    "used: None: loaders draw indices ahead: pass used=, the number of indices that this rank has used since the iteration "
    "began; a class around the sampler may save the state_dict() of its iterator for a loader of torchdata"
)


def check(dataset: Any, seed: Any, algorithm: Any, client: Any, chunk: Any = None, window: Any = None) -> int:
    """Checks arguments of a sampler, without a daemon. `chunk` is a chunk_of(). Returns the length of the dataset."""
    try:
        n = len(dataset)
    except TypeError:
        raise _errors.Invalid(f"dataset: {shown(dataset)}: expected a dataset with a length") from None
    if isinstance(chunk, Sizes):
        if n != chunk.n:
            raise _errors.Invalid(f"dataset: length {n}: expected {chunk.n}, the sum of the sizes of its chunks")
        chunk, window = 1, window_of(window)  # for the check of the algorithm
    _request.bytes_of(_request.whole(max(1, n), seed_of(seed), None, 0, algorithm, chunk, window))
    if client is not None and not callable(getattr(client, "permute", None)):
        raise _errors.Invalid(f"client: {shown(client)}: expected a shufd.Client, such as shufd.connect()")
    return n


def iterates_itself(sampler: Any) -> bool:
    """Whether it is of a subclass with its own __iter__, which may map, filter or draw ahead."""
    return is_own(sampler, "__iter__")


def is_own(sampler: Any, method: str) -> bool:
    """Whether a subclass outside this package has replaced the method."""
    return not getattr(type(sampler), method).__module__.startswith("shufd.")


class Resumable:
    """The common part of the samplers: the epoch, and the place where the next iteration begins.

    An iteration begins with its first index, so unused iterators cost nothing. The length n is taken once an
    epoch: by set_epoch() and load_state_dict(), or else by iter().
    """

    _free = frozenset({"epoch"})  # the fields that a loaded state may change
    seed: Any  # an int; None: not drawn yet

    def __init__(self, data: Sized) -> None:
        self._data = data
        self._n: int | None = None  # of the epoch, once it is known
        self._epoch = 0
        self._resume: int | None = 0  # the global position of the next iteration; None: that of a new one
        self._is_set = False  # set_epoch() has selected the epoch of the next iteration
        self._loaded_by = ""  # "job" or "loader": load_state_dict() has selected the place of the next iteration
        self._loads = 0  # of the job, which unused iterators take too
        self._selected: int | None = None  # by the last set_epoch() of the job
        self._is_counted = False  # a framework counts the iterations, so each one is the next epoch
        self._cursor: Cursor | None = None  # of the iteration that began last
        self._begun: list[_Begun] = []  # since the last set_epoch() or load_state_dict()

    @property
    def n(self) -> int:
        """The length of the data in this epoch."""
        return len(self._data) if self._n is None else self._n

    @property
    def epoch(self) -> int:
        """The epoch to continue with: that of the sampler, or the next one if a loaded state is at the
        end of its epoch."""
        is_next = self._cursor is None and self._resume is not None and self._is_end(self._resume)
        return (self._epoch + is_next) % 2**64

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration, and takes the length of the data. An iteration that continues
        a loaded state of this epoch keeps its place, any other begins at the beginning. Loaders of accelerate and
        Lightning Fabric, and nodes of torchdata, call it with a number that they count from the start of the job. Such a
        number selects only the first epoch of a node: from then on, each iteration is the next epoch, if the job selects
        no other. Warns (RuntimeWarning) if an earlier epoch discards the place of a loaded state."""
        epoch = u64("epoch", epoch)
        if counter := _frameworks.epoch_counter():
            is_new = not (self._is_counted or self._is_set or self._loaded_by) and self._resume == 0
            self._is_counted = True
            if counter == "node" and is_new:
                self._epoch = epoch
            elif counter == "node" and self._loaded_by == "loader":  # the iterator that had this place is gone
                self._move(self._following() if self._is_end(self._resume or 0) else self._epoch, 0)
            return
        n = len(self._data)
        if epoch == self._epoch and self._resume and n != self.n:
            raise _errors.Invalid(f"dataset: length {n}: expected {self.n}, the length of the loaded state")
        if epoch != self._epoch:
            if self._loaded_by and epoch < self._epoch:
                warnings.warn(
                    f"sampler: set_epoch({epoch}): the loaded place, epoch {self._epoch} and position {self._resume}, is discarded: "
                    "continue a trainer, which counts its epochs, from its own checkpoint, as docs/loaders.md shows",
                    RuntimeWarning, stacklevel=2,
                )  # fmt: skip
            self._move(epoch, 0)
        elif self._resume is None:
            self._resume = 0  # the cursor stays: Lightning calls this after workers have drawn
        self._n, self._is_set, self._selected, self._begun = n, True, epoch, []

    @property
    def remaining(self) -> int:
        """The number of indices that this rank has not drawn in the epoch, from the place of a loaded state
        on. len() is the length of the whole epoch."""
        cursor = self._cursor
        if cursor is None or self._resume is not None:  # set_epoch() may select a place during an iteration
            return len(self._share(self._resume or 0))
        return len(cursor.share) - cursor.step

    def _share(self, start: int) -> Share:
        """The positions of this rank from `start` on."""
        raise NotImplementedError

    def _has_ended(self) -> bool:
        """Whether all indices of the iteration that began last are drawn."""
        return self._cursor is not None and self._cursor.step == len(self._cursor.share)

    def _is_end(self, position: int) -> bool:
        return position > 0 and len(self._share(position)) == 0

    def _following(self) -> int:
        """The epoch of an iteration without set_epoch(), after one that has begun."""
        raise NotImplementedError

    def _begin(self) -> Cursor:
        """Begins an iteration. If the daemon fails, the next iteration begins at the same place."""
        self._cursor = None  # its lease ends before the next one begins
        self._go_on()
        if self._is_end(self._resume or 0) and not self._is_set:
            self._move((self._epoch + 1) % 2**64, 0)
            self._n, self._loaded_by = len(self._data), "job"
        if skipper := _frameworks.skipper():
            self._check_skips(skipper, self._resume or 0)
        elif self._resume and not self._is_end(self._resume) and _frameworks.counts_batches():
            raise _errors.Invalid(
                f"sampler: its state, at position {self._resume}, is loaded below a batch sampler without a state, so the state "
                "of the StatefulDataLoader would count from there: use shufd.torch.BatchSampler"
            )
        self._cursor = cursor = self._cursor_from(self._resume or 0)
        cursor.description, cursor.is_skipped = self._description(), skipper != "" or _frameworks.is_replayed()
        self._end_place()
        return cursor

    def _go_on(self) -> None:
        """Goes on to the next epoch, if an iteration of this one has begun."""
        if self._resume is None:
            self._move(self._following(), 0)

    def _check_skips(self, skipper: str, start: int) -> None:
        """Fails if a loader leaves out the first indices of another place than it means."""
        if skipper == "node":
            raise _errors.Invalid(
                "sampler: a node of torchdata leaves out the first indices of a class without a state, and its epoch may have "
                "ended: give the class state_dict() and load_state_dict(), as shufd.torch.BatchSampler has them"
            )
        if start > 0 and not self._is_end(start):
            raise _errors.Invalid(
                f"sampler: its state, at position {start}, is loaded, and the loader leaves out its first batches too: load "
                "one state, of the sampler or of the loader, and skip no batches after that of the sampler"
            )
        if not (self._is_set or self._loaded_by) and self._following() != self._epoch:
            raise _errors.Invalid(
                "sampler: a loader continues an epoch, which it does not tell this sampler: call its set_epoch() before "
                "skip_first_batches() or the iteration, or in the Trainer add the callback of docs/loaders.md"
            )

    def _end_place(self) -> None:
        """The iteration of the place has begun."""
        self._resume, self._is_set, self._loaded_by = None, False, ""

    def _choose_seed(self) -> None:
        """A sampler without a seed draws one."""

    def _selection(self) -> _Selection:
        return _Selection(self._epoch, self._resume or 0, self._is_set, self.seed, self._n)

    def _select(self, selection: _Selection) -> None:
        self._epoch, self._resume, self._is_set, self.seed, self._n = selection
        self._loaded_by = "job"

    def _cursor_from(self, start: int) -> Cursor:
        """A cursor at the global position of the epoch."""
        raise NotImplementedError

    def _description(self) -> dict[str, Any]:
        """The state without the position: what must be equal to continue."""
        raise NotImplementedError

    def _move(self, epoch: int, position: int) -> None:
        self._epoch, self._resume, self._cursor = epoch, position, None
        self._is_set, self._loaded_by = False, ""

    def iterate(self, parts: Callable[[Cursor], Iterator[Iterable[Any]]], least: int = 1, is_lazy: bool = False) -> Iteration:
        """An iteration over the parts that `parts` makes of its cursor, if `least` indices are left. Lazy: of the epoch that
        set_epoch() has selected at its first part, not at iter()."""
        if not self._resume and not self._is_set:
            self._n = len(self._data)
        place = _Place(self, least, is_lazy)
        iteration = cast(Iteration, Iteration.from_iterable(place.run(parts)))
        iteration.place = place
        return iteration

    def __iter__(self) -> Iterator[int]:
        """The indices of this rank, as integers of Python."""
        return self.iterate(Cursor.chunks)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """The place in the epoch, as a new dict of plain values. It is the same on all ranks that have
        drawn equally many indices, and load_state_dict() takes it with any number of ranks.

        used  the number of this rank's indices that the job has used or skipped since the iteration began: after a
              load_state_dict() it counts from 0. Needed once an iteration has begun, because loaders draw indices before
              the job gets them. After a smaller last batch, steps * batch_size is more than the number of drawn indices:
              once all are drawn, any larger number means the end. Batches must come in the order in which their indices
              are drawn, so a DataLoader needs in_order=True, its default

        Fails with Invalid without `used` once an index is drawn; if a loader has skipped the first batches, before the end of
        the iteration; if `used` is more than the number of drawn indices, and some are left; if it is 0, and the iteration may
        be over: without set_epoch() before it, or once all indices are drawn; if two iterations of the epoch run; or if a
        subclass has its own __iter__, but not this method. Loaders of torchdata save the place of the iterator.
        """
        return self._state_for(self, used)

    def _state_for(self, owner: Any, used: int | None) -> dict[str, Any]:
        """state_dict() of the owner of the iteration: this sampler, or the batches of a class that iterates itself."""
        if used is None:
            iteration = _frameworks.saved_iterator()
            if isinstance(iteration, Iteration) and iteration.place.sampler is self:
                return iteration.state_dict()
        used = None if used is None else integer("used", used)
        if self._cursor is not None or (used is None and _frameworks.is_called_by_torchdata()):
            self._check_saving(owner, used)
        elif not used:
            following = copy.copy(self)
            following._go_on()
            return following._state()
        return self._state_after(used or 0, self._cursor)

    def _state(self) -> dict[str, Any]:
        """Of the next iteration."""
        return {**self._description(), "position": self._resume or 0}

    def _common_state(self) -> dict[str, Any]:
        """What the ranks have in common. A class may leave indices out, and its loader then has another place on each rank."""
        return self._description() if self._loaded_by == "loader" else self._state()

    def _state_after(self, used: int, cursor: Cursor | None) -> dict[str, Any]:
        most, ranks = (0, 1) if cursor is None else (cursor.step, cursor.ranks)
        if cursor is None or used < 0 or (used * ranks > most and not self._has_ended()):
            raise _errors.Invalid(f"used: {used * ranks}: expected 0 to {most}, the indices drawn since the iteration began")
        return {**cursor.description, "position": cursor.share.position(used * ranks)}

    def _check_saving(self, owner: Any, used: int | None) -> None:
        """Fails if the place of the iteration that began last is unknown."""
        cursor, iterates, counts = self._cursor, iterates_itself(owner), is_own(owner, "state_dict")
        if iterates and not counts and used != 0:
            raise _errors.Invalid(
                f"sampler: {type(owner).__name__}: its own __iter__ may draw ahead or leave indices out, so its place is "
                "unknown: give the class a state_dict() that passes used= to this one, the number of drawn indices"
            )
        if used is None:
            raise _errors.Invalid(_UNKNOWN)
        if cursor is None:
            return
        is_early = cursor.is_skipped and used * cursor.ranks < len(cursor.share)
        if is_early and not _frameworks.is_called_by_torchdata():  # through a class, which counts what it draws
            raise _errors.Invalid(
                f"used: {used}: the loader has skipped the first batches of this iteration, so the place is unknown: save the "
                "loader's own state or steps, or continue by load_state_dict() of the sampler and skip no batches"
            )
        if used == 0 and (cursor.step > 0 or self._is_set) and not (self._is_at_beginning(cursor) or (iterates and counts)):
            raise _errors.Invalid(
                "used: 0: the iteration that began last may be over, so the place is ambiguous: after its end pass "
                f"used={len(cursor.share)}, for the next one call set_epoch() first, and at its beginning save a "
                "state_dict() from before it"
            )
        if self._runs_twice():
            raise _errors.Invalid(
                "sampler: another iteration began before the last one has ended, so the place is ambiguous: use a second "
                "sampler to look at data, or call set_epoch() before the iteration that counts"
            )
        if self._selected not in (None, epoch := cursor.description["epoch"]):
            raise _errors.Invalid(
                f"sampler: an iteration after epoch {self._selected}, which set_epoch() selected, has gone on to epoch "
                f"{epoch}: use a second sampler to look at data, or call set_epoch() before each iteration"
            )

    def _is_at_beginning(self, cursor: Cursor) -> bool:
        """Whether a job that has used no index is at the beginning of the iteration that began last."""
        epoch = cursor.description["epoch"]
        if self._is_set:  # the job may be at the next iteration
            return (epoch, cursor.share.start) == (self._epoch, self._resume)
        return self._selected == epoch and not self._has_ended()

    def _runs_twice(self) -> bool:
        """Whether another iteration began and has neither ended nor been left, or its loader has batches left."""

        def is_other(begun: _Begun) -> bool:
            place, loader = begun.place(), begun.loader()
            cursor = None if place is None else place.cursor
            draws = cursor is not None and cursor is not self._cursor and cursor.step < len(cursor.share)
            return draws or (loader is not self._begun[-1].loader() and _frameworks.is_ahead(loader))

        if any(map(is_other, self._begun)):
            gc.collect()  # a loader of torch that was left may be part of a cycle of references
        return any(map(is_other, self._begun))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Lets the next iteration continue at the place of a state, which any number of ranks may have
        saved. Takes constant time. If the state is at the end of its epoch, this iteration and `epoch` are the next
        epoch, but set_epoch() with the ended epoch makes it empty. Fails with Invalid for a state of other data, seed,
        algorithm or class; and if a loader of torchdata loads the middle of an epoch before that which set_epoch() has
        selected."""
        cursor = self._cursor
        self._load(self._rounded(state_dict))
        if not _frameworks.is_called_by_torchdata():
            self._loads += 1
            if cursor is not None:
                cursor.drop_chunk()  # a loader that draws further must ask for a chunk, which fails

    def _load(self, state: dict[str, Any]) -> None:
        loaded = self._renewed()
        epoch, position = check_state(state, loaded._description(), self._free)
        is_of_loader = _frameworks.is_called_by_torchdata()  # which loads after set_epoch()
        if is_of_loader and _frameworks.is_discarded():
            position = loaded._share(0).n
        if is_of_loader and self._is_set and epoch < self._epoch:
            if position > 0 and not loaded._is_end(position):
                raise _errors.Invalid(
                    f"state: epoch {epoch}, position {position}: expected set_epoch({epoch}), which continues this epoch, but "
                    f"set_epoch() has selected epoch {self._epoch}"
                )
            if self._resume:  # a place in the selected epoch, which the loader has loaded before
                self._resume = 0
            return
        stays = is_of_loader and self._is_set and epoch == self._epoch  # an ended epoch is then empty
        self._move(epoch, position)
        self._loaded_by, self._is_set = "loader" if is_of_loader else "job", stays
        self._n, self._selected, self._begun = loaded._n, None, []

    def _renewed(self) -> Resumable:
        """A copy that has taken the length of the data."""
        renewed = copy.copy(self)
        renewed._n = len(self._data)
        return renewed

    def _rounded(self, state: Any, least: int = 1) -> Any:
        """A state with fewer than `least` indices left, which make no batch, is at the end of its epoch."""
        position: Any = state.get("position") if isinstance(state, Mapping) else None
        least = 1 if iterates_itself(self) else max(least, _frameworks.least_batch())
        if least > 1 and hasattr(position, "__index__") and position > 0:
            share = self._renewed()._share(operator.index(position))
            if 0 < len(share) < least:
                return {**state, "position": share.n}
        return state

    def __getstate__(self) -> dict[str, Any]:
        """Once an iteration has begun, copies begin the one that follows: only state_dict() knows what is used."""
        return {**self.__dict__, "_cursor": None, "_begun": []}


class _Selection(NamedTuple):
    """The place that the job or a loader has selected for an iteration."""

    epoch: int
    position: int
    is_set: bool
    seed: int | None
    n: int | None


class _Place:
    """The place of one iteration. It is not part of the iterator, so that no cycle of references keeps a lease."""

    def __init__(self, sampler: Resumable, least: int, is_lazy: bool) -> None:
        self.sampler, self.least, self.is_lazy = sampler, least, is_lazy
        self.cursor: Cursor | None = None
        self.is_of_loader = False  # a loader draws the indices, and may be ahead of the job
        self.seed: int | None = None  # drawn for a state before the first index
        self.selection = sampler._selection() if sampler._is_set or sampler._loaded_by else None
        self.loads: int | None = sampler._loads  # a later load of the job counts instead; None: a loader has loaded it
        self.is_discarded = _frameworks.is_discarded()
        if _frameworks.is_node_loading():
            self.take_loaded()
        if sampler._is_set and not sampler._is_end(sampler._resume or 0) and self.is_discarded:
            self.take_end()

    def take_end(self) -> None:
        """torchdata begins this iteration at the end of an epoch, and set_epoch() has selected a later one. If torchdata draws
        batches from it first, it is the whole epoch before."""
        sampler = self.sampler
        position = 0 if _frameworks.is_replayed() else sampler._share(0).n
        self.selection, self.loads = sampler._selection()._replace(epoch=(sampler._epoch - 1) % 2**64, position=position), None

    def take_loaded(self) -> None:
        """A loader has loaded the place of this iteration into the sampler. At the end of an epoch it is empty."""
        sampler = self.sampler
        self.selection, self.loads = sampler._selection(), None
        if sampler._loaded_by and not sampler._is_set and sampler._is_end(self.selection.position):
            self.selection = self.selection._replace(is_set=True)
            sampler._end_place()

    def is_latest(self) -> bool:
        """Whether the selection counts: a loader has loaded it, or the job has selected no other one after iter()."""
        is_other = self.selection is not None and self.sampler._selected not in (None, self.selection.epoch)
        return self.loads is None or (self.loads == self.sampler._loads and not (self.is_lazy and is_other))

    def selected(self, is_copy: bool) -> Resumable:
        """The sampler at the place of this iteration, or a copy of it, if another place is that of the next one."""
        sampler = self.sampler
        selection = self.selection if self.is_latest() else None
        is_other = selection is not None and selection[:2] != (sampler._epoch, sampler._resume)
        if is_copy or is_other:
            sampler = copy.copy(sampler)
        if selection is not None and is_other:
            sampler._select(selection)
        sampler._go_on()
        sampler.seed = sampler.seed if self.seed is None else self.seed
        return sampler

    def run(self, parts: Callable[[Cursor], Iterator[Iterable[Any]]]) -> Iterator[Iterable[Any]]:
        sampler = self.selected(self.is_discarded)
        self.cursor, self.loads = sampler._begin(), self.sampler._loads
        self.is_of_loader = _frameworks.is_called_by_loader()
        if not self.is_discarded:
            self.sampler._cursor = self.cursor
            begun = _Begun(weakref.ref(self), _frameworks.loader())
            kept = [one for one in self.sampler._begun if one.is_kept(begun.loader())]
            self.sampler._begun = [*kept, begun]
        failure = _errors.Error  # at the end of Python, modules have no names any more
        try:
            for part in parts(self.cursor):
                self.check_loads()
                yield part
            self.check_loads()
        except failure:  # such as the loss of the daemon: the next iteration continues here
            if sampler is self.sampler and sampler._cursor is self.cursor:
                sampler._move(sampler._epoch, self.cursor.position)
                sampler._loaded_by = "job"
            raise

    def check_loads(self) -> None:
        """Fails if the job has loaded a state since this iteration began, such as by workers that a loader has started."""
        if self.loads != self.sampler._loads:
            raise _errors.Invalid(
                "sampler: load_state_dict() came after this iteration had begun: load the state before iter(loader), and "
                "before state_dict() of a StatefulDataLoader or prepare() of accelerate, which let workers draw"
            )

    def state_dict(self) -> dict[str, Any]:
        if self.cursor is None:
            following = self.selected(is_copy=True)
            if following.seed is None:
                following._choose_seed()
                self.seed = following.seed
            return following._state()
        self.check_loads()
        if self.is_of_loader and not _frameworks.is_called_by_torchdata():  # which saves before it draws further
            raise _errors.Invalid(_UNKNOWN)
        if _frameworks.is_dispatched():
            raise _errors.Invalid(
                "state: accelerate dispatches batches, which it has drawn for all ranks ahead: expected "
                "dispatch_batches=False with a StatefulDataLoader"
            )
        return {**self.cursor.description, "position": self.cursor.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.cursor is not None:
            raise _errors.Invalid("state: the iteration has begun: load it before the first index")
        state = self.sampler._rounded(state, self.least)
        self.sampler._load(state)
        self.take_loaded()
        self.is_discarded = self.is_discarded or _frameworks.is_discarded()
        if self.is_discarded:
            self.selection = _Selection(state["epoch"], state["position"], True, self.sampler.seed, self.sampler._n)


class _Begun(NamedTuple):
    """An iteration that has begun. Its loader may live longer than its place."""

    place: Callable[[], _Place | None]
    loader: Callable[[], Any]

    def is_kept(self, latest: Any) -> bool:
        """Whether the program still has the iteration, or its loader, which is not that of the latest one."""
        loader = self.loader()
        return self.place() is not None or (loader is not None and loader is not latest)


class Iteration(itertools.chain):  # type: ignore[type-arg]
    """The iterator of a sampler. torchdata saves and loads its place. A state at the end makes it empty at once, also
    if the loader never reads it."""

    place: _Place

    def state_dict(self) -> dict[str, Any]:
        """The place of this iteration, or where it will begin."""
        return self.place.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Lets this iteration continue at the place of a state, before its first index."""
        self.place.load_state_dict(state_dict)

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot copy or pickle an iterator of a sampler: copy the sampler, or load a state_dict()")
