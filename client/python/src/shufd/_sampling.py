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
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping, Sized, cast

from . import _errors, _frameworks, _request, _sampler_state
from ._arguments import integer, seed_of, shown, u64
from ._chunks import Sizes, window_of
from ._share import Cursor, Share


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
        self._is_loaded = False  # load_state_dict() has selected the place of the next iteration
        self._counted: int | None = None  # by a framework that sets the epoch by itself: its number of this epoch
        self._shift = 0  # from such numbers to epochs
        self._number_of_node: int | None = None  # of the last set_epoch(), if a node of torchdata called it
        self._is_counted_by_node = False  # torchdata's wrapper has loaded the place, and selects the next epoch itself
        self._is_set_by_node = False  # such a wrapper has called set_epoch() last
        self._selected: int | None = None  # by the last set_epoch() of the job
        self._later: int | None = None  # an epoch that set_epoch() selected before an earlier one was loaded
        self._cursor: Cursor | None = None  # of the iteration that began last
        self._following_place: weakref.ref[_Place] | None = None  # of the iteration that was made last
        self._begun: list[weakref.ref[_Place]] = []  # since the last set_epoch() or load_state_dict()

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
        a loaded state of this epoch keeps its place, any other begins at the beginning. A loader of accelerate or
        Lightning Fabric, or a node of torchdata, calls it by itself, with a number that it counts from the start of the
        job: that does not change a place that the job has selected, and later ones count from there. Warns
        (RuntimeWarning) if a trainer's own count discards the place of a loaded state."""
        epoch = u64("epoch", epoch)
        is_counted = _frameworks.sets_epoch_by_itself()
        is_of_node = not is_counted and _frameworks.node_that_resets(loads=False) is not None
        self._number_of_node = epoch if is_of_node else None
        if is_counted or is_of_node:
            is_selected = self._is_selected_by_job(is_of_node)
            if is_selected:
                self._shift = self.epoch - epoch
                if not self._is_end(self._resume or 0):
                    return
            self._counted, epoch = epoch if is_counted and not is_selected else None, (epoch + self._shift) % 2**64
        self._begun = []
        if epoch != self._epoch:
            self._warn_of_lost_place(epoch)
            self._move(epoch, 0)
        elif self._resume is None or (self._is_counted_by_node and is_of_node):
            self._resume = 0  # the cursor stays: Lightning calls this after workers have drawn
        n = len(self._data)
        if self._resume and n != self.n:
            raise _errors.Invalid(f"dataset: length {n}: expected {self.n}, the length of the loaded state")
        self._n, self._is_set, self._later = n, True, None
        self._is_set_by_node = is_of_node
        self._selected = None if is_counted else epoch
        self._counted = self._counted if is_counted else None

    def _is_selected_by_job(self, is_of_node: bool) -> bool:
        """Whether the job itself has loaded or set the place of the next iteration."""
        if is_of_node:
            return (self._is_loaded and not self._is_counted_by_node) or (self._is_set and not self._is_set_by_node)
        return self._is_loaded or (self._is_set and self._selected is not None)

    def _warn_of_lost_place(self, epoch: int) -> None:
        """Warns if a trainer sets an epoch that it has counted, and no iterator has the place that the job has loaded."""
        if not self._is_loaded or epoch == self.epoch:
            return
        place = None if self._following_place is None else self._following_place()
        trainer = _frameworks.trainer_that_calls()
        if trainer and not (place is not None and not place.has_begun and place.chosen is not None):
            warnings.warn(
                f"sampler: {trainer} sets epoch {epoch}, so the loaded place, epoch {self._epoch} and position "
                f"{self._resume}, is discarded: continue {trainer} from its own checkpoint, as docs/loaders.md shows",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip

    @property
    def remaining(self) -> int:
        """The number of indices that this rank has not drawn in the epoch, from the place of a loaded state
        on. len() is the length of the whole epoch."""
        cursor = self._cursor
        return len(self._share(self._resume or 0)) if cursor is None else len(cursor.share) - cursor.step

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
        if self._resume is None:
            self._move(self._next(), 0)
        elif self._is_end(self._resume) and not (self._is_set or self._is_counted_by_node):
            self._move((self._epoch + 1) % 2**64 if self._later is None else self._next(), 0)
        self._check_skips(self._resume or 0)
        self._cursor = cursor = self._cursor_from(self._resume or 0)
        cursor.description = self._description()
        if self._is_loaded or not _frameworks.is_discarded():
            self._end_place()
        return cursor

    def _check_skips(self, start: int) -> None:
        """Fails if a loader leaves out indices from the middle of the epoch on, because the job has loaded both places."""
        if start > 0 and not self._is_end(start) and (_frameworks.skips_batches() or _frameworks.fast_forwards()):
            raise _errors.Invalid(
                f"sampler: its state, at position {start}, is loaded, and the loader leaves out its first batches too: load "
                "one state, of the sampler or of the loader, and skip no batches after that of the sampler"
            )

    def _next(self) -> int:
        """The epoch of an iteration after the current one."""
        epoch, self._later = self._following() if self._later is None else self._later, None
        return epoch

    def _end_place(self) -> None:
        """The iteration of the place has begun."""
        self._resume, self._is_set, self._is_loaded = None, False, False

    def _choose_seed(self) -> None:
        """A sampler without a seed draws one."""

    def _select(self, epoch: int, position: int, seed: int | None) -> None:
        """The next iteration begins there, and an epoch that set_epoch() has selected meanwhile follows."""
        if (epoch, position) != (self._epoch, self._resume):
            later = self._epoch if self._is_set else self._later
            self._move(epoch, position)
            self._later = later if later != epoch else None
        self.seed = seed

    def _cursor_from(self, start: int) -> Cursor:
        """A cursor at the global position of the epoch."""
        raise NotImplementedError

    def _description(self) -> dict[str, Any]:
        """The state without the position: what must be equal to continue."""
        raise NotImplementedError

    def _move(self, epoch: int, position: int) -> None:
        self._epoch, self._resume, self._cursor = epoch, position, None
        self._is_set = self._is_loaded = False

    def iterate(self, parts: Callable[[Cursor], Iterator[Iterable[Any]]], least: int = 1) -> Iteration:
        """An iteration over the parts that `parts` makes of its cursor, if `least` indices are left."""
        if not self._resume and not self._is_set:
            self._n = len(self._data)
        place = _Place(self, least)
        self._following_place = weakref.ref(place)
        iteration = cast(Iteration, Iteration.from_iterable(place.run(parts)))
        iteration.place = place
        return iteration

    def __iter__(self) -> Iterator[int]:
        """The indices of this rank, as integers of Python."""
        return self.iterate(Cursor.chunks)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """The place in the epoch, as a new dict of plain values. It is the same on all ranks that have
        drawn equally many indices, and load_state_dict() takes it with any number of ranks.

        used  the number of this rank's indices that the job has used since the iteration began, so after a
              resume it counts from 0 again. Needed once an iteration has begun, because loaders draw indices
              before the job gets them. After a smaller last batch, steps * batch_size is more than the number of
              drawn indices: once all are drawn, any larger number means the end. Batches must come in the order in
              which their indices are drawn, so a DataLoader needs in_order=True, its default. 0 is the beginning of the
              iteration that began last, or after set_epoch() that of the next one

        Fails with Invalid without `used` after the first index; if `used` is more than the number of drawn indices, and
        some are left; if it is 0, and the last iteration may be over; if two iterations of the epoch run; or if a
        subclass has its own __iter__, but not this method. Loaders of torchdata save this state themselves, without
        `used`.
        """
        return self._state_for(self, used)

    def _state_for(self, owner: Any, used: int | None) -> dict[str, Any]:
        """state_dict() of the owner of the iteration: this sampler, or the batches of a class that iterates itself."""
        node = None if used is not None else _frameworks.iterator_of_node()
        if isinstance(node, Iteration):
            return node.state_dict()
        place = None if self._following_place is None else self._following_place()
        needs_seed = self._cursor is None and self.seed is None
        is_before_first = used == 0 if used is not None else self._has_ended() or needs_seed
        if place is not None and not place.has_begun and is_before_first:
            return place.state_dict()  # loaders make an iterator, and save the sampler before its first index
        if self._cursor is not None:
            if used == 0 and self._cursor.step > 0 and self._is_set and self._cursor.share.start == self._resume:
                return _Place(self).state_dict()  # of the next iteration, which begins at the same place as this one
            self._check_saving(owner, used, self._cursor)
        if used is not None and self._selected not in (None, self._epoch):
            raise _errors.Invalid(
                f"sampler: an iteration after epoch {self._selected}, which set_epoch() selected, has gone on to epoch "
                f"{self._epoch}: use a second sampler to look at data, or call set_epoch() before each iteration"
            )
        if used is not None:
            position = self._position_of(integer("used", used))
        else:
            position = (self._resume or 0) if self._cursor is None else self._cursor.position
        description = self._description() if self._cursor is None else self._cursor.description
        return {**description, "position": position}

    def _check_saving(self, owner: Any, used: int | None, cursor: Cursor) -> None:
        """Fails if the place of the iteration that began last is unknown."""
        if used is None and not _frameworks.is_called_by_torchdata():
            raise _errors.Invalid(
                "used: None: loaders draw indices ahead: pass used=, the number of indices that this rank has used since "
                "the iteration began, or save the state of a StatefulDataLoader"
            )
        is_known = not iterates_itself(owner) or (used is not None and is_own(owner, "state_dict"))
        if not is_known and used != 0:
            raise _errors.Invalid(
                f"sampler: {type(owner).__name__}: its own __iter__ may draw ahead or leave indices out, so its place is "
                "unknown: give the class a state_dict() that passes used= to this one, the number of drawn indices"
            )
        counts = iterates_itself(owner) and is_own(owner, "state_dict")
        if used == 0 and cursor.step > 0 and not counts and not self._is_beginning(cursor):
            raise _errors.Invalid(
                "used: 0: the iteration that began last may be over, so the place is ambiguous: after its end pass "
                f"used={len(cursor.share)}, for the next one call set_epoch() first, and at its beginning save a "
                "state_dict() from before it"
            )
        if not (used is None and _frameworks.is_saved_with_iterator()) and self._runs_twice():
            raise _errors.Invalid(
                "sampler: another iteration began before the last one has ended, so the place is ambiguous: use a second "
                "sampler to look at data, or call set_epoch() before the iteration that counts"
            )

    def _is_beginning(self, cursor: Cursor) -> bool:
        """Whether the job has certainly not gone on from the beginning of the iteration that began last."""
        if self._is_set:
            return False  # the next iteration will begin elsewhere
        gc.collect()  # a loader of torch that was left may be part of a cycle of references
        if cursor.loader is None:
            return cursor in self._running() and not self._has_ended()
        loader = cursor.loader()
        return loader is not None and _frameworks.is_beginning(loader, self._has_ended())

    def _runs_twice(self) -> bool:
        """Whether another iteration began and has neither ended nor been left."""

        def is_other(cursor: Cursor) -> bool:
            return cursor is not self._cursor and cursor.step < len(cursor.share)

        if any(map(is_other, self._running())):
            gc.collect()  # a loader of torch that was left may be part of a cycle of references
        return any(map(is_other, self._running()))

    def _running(self) -> list[Cursor]:
        """The cursors of the iterations that began and whose iterators still exist."""
        return [place.cursor for place in (of() for of in self._begun) if place is not None and place.cursor is not None]

    def _position_of(self, used: int) -> int:
        used *= 1 if self._cursor is None else self._cursor.ranks
        most = 0 if self._cursor is None else self._cursor.step
        if used < 0 or (used > most and not self._has_ended()):
            raise _errors.Invalid(
                f"used: {used}: expected 0 to {most}, the indices drawn since the iteration began"
            )
        return (self._resume or 0) if self._cursor is None else self._cursor.share.position(used)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Lets the next iteration continue at the place of a state, which any number of ranks may have
        saved. Takes constant time. If the state is at the end of its epoch, this iteration and `epoch` are the next
        epoch, but set_epoch() with the ended epoch makes it empty. A later epoch that set_epoch() has selected already
        stays. If the state is before the end, the later epoch follows after the rest of this one.
        Fails with Invalid for a state of other data, seed, algorithm or class."""
        state_dict = self._rounded(state_dict)
        kept, self._n = self._n, len(self._data)
        try:
            epoch, position = _sampler_state.check(state_dict, self._description(), self._free)
        except _errors.Invalid:
            self._n = kept
            raise
        node, is_of_job = _frameworks.node_that_resets(loads=True), not _frameworks.is_called_by_torchdata()
        is_selected = self._is_set and self._epoch == epoch
        self._begun, self._selected = [], None
        if is_of_job:  # torchdata's iterators load places of their own
            self._unchoose_place()
        if self._counted is not None:  # the number of a framework selects nothing
            following = (epoch + self._is_end(position)) % 2**64
            self._shift = following - self._counted
            self._move(following, 0)
            self._is_set = following != epoch
        chosen = self._epoch if self._is_set else self._later
        later = chosen if chosen is not None and chosen > epoch else None
        if not (self._is_set and later is not None and self._is_end(position)):
            self._move(epoch, position)  # StatefulDataLoader loads its state after set_epoch()
            self._is_loaded, self._later = True, later
            self._is_counted_by_node = node is not None
        if hasattr(node, "epoch"):
            self._shift = epoch - node.epoch
        elif is_of_job and self._number_of_node is not None:
            self._shift = self.epoch - self._number_of_node
        if is_selected and not is_of_job and self._is_end(self._resume or 0):
            self._is_set = True  # an empty rest of the epoch that the job has selected

    def _rounded(self, state: Any, least: int = 1) -> Any:
        """A state with fewer than `least` indices left, which make no batch, is at the end of its epoch."""
        position = state.get("position") if isinstance(state, Mapping) else None
        least = 1 if iterates_itself(self) else max(least, _frameworks.least_batch(self))
        if least > 1 and isinstance(position, int) and position > 0:
            kept, self._n = self._n, len(self._data)
            share, self._n = self._share(position), kept
            if 0 < len(share) < least:
                return {**state, "position": share.n}
        return state

    def _unchoose_place(self) -> None:
        """Lets an iterator that was made before, but has no index yet, begin at the place that is loaded."""
        place = None if self._following_place is None else self._following_place()
        if place is not None and not place.has_begun:
            place.chosen = None

    def __getstate__(self) -> dict[str, Any]:
        """Once an iteration has begun, copies begin the one that follows: only state_dict() knows what is used."""
        return {**self.__dict__, "_cursor": None, "_following_place": None, "_begun": []}


class _Place:
    """The place of one iteration. It is not part of the iterator, so that no cycle of references keeps a lease."""

    def __init__(self, sampler: Resumable, least: int = 1) -> None:
        self.sampler, self.least = sampler, least
        self.cursor: Cursor | None = None
        self.end: dict[str, Any] | None = None  # the loaded state, which was at its end
        # Epoch, position and seed, if they are chosen before the start: the sampler may be moved until then.
        self.chosen: tuple[int, int, int | None] | None = None
        if sampler._is_set or sampler._is_loaded:
            self.choose(sampler)

    @property
    def has_begun(self) -> bool:
        return self.cursor is not None or self.end is not None

    def choose(self, sampler: Resumable) -> None:
        self.chosen = sampler._epoch, sampler._resume or 0, sampler.seed

    def run(self, parts: Callable[[Cursor], Iterator[Iterable[Any]]]) -> Iterator[Iterable[Any]]:
        sampler = self.sampler
        if self.end is not None:
            return
        if self.chosen is not None:
            sampler._select(*self.chosen)
        self.cursor = sampler._begin()
        sampler._begun = [of for of in sampler._begun if of() is not None] + [weakref.ref(self)]
        try:
            yield from parts(self.cursor)
        except _errors.Error:  # such as the loss of the daemon: the next iteration continues here
            if sampler._cursor is self.cursor:
                sampler._move(sampler._epoch, self.cursor.position)
                sampler._is_loaded = True
            raise

    def state_dict(self) -> dict[str, Any]:
        if self.cursor is not None and _frameworks.is_dispatched():
            raise _errors.Invalid(
                "state: accelerate dispatches batches, which it has drawn for all ranks ahead: expected "
                "dispatch_batches=False with a StatefulDataLoader"
            )
        if self.cursor is not None:
            return {**self.cursor.description, "position": self.cursor.position}
        if self.end is not None:
            return dict(self.end)
        following = copy.copy(self.sampler)
        if self.chosen is not None:
            following._select(*self.chosen)
        elif following._resume is None:
            following._move(following._next(), 0)
        if following.seed is None:
            following._choose_seed()
            self.choose(following)
        return {**following._description(), "position": following._resume or 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.cursor is not None:
            raise _errors.Invalid("state: the iteration has begun: load it before the first index")
        state = self.sampler._rounded(state, self.least)
        self.chosen = None
        self.sampler._following_place = weakref.ref(self)
        self.sampler.load_state_dict(state)
        share = self.sampler._share(state["position"])
        if state["position"] > 0 and len(share) == 0 and not self.sampler._is_set:
            self.end = dict(state)
            if self.sampler._resume == state["position"]:
                self.sampler._end_place()
        elif self.sampler._is_loaded:
            self.choose(self.sampler)


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
