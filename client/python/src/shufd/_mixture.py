# SPDX-License-Identifier: MIT
"""Mixtures of data sets by weights: a function from positions to records of sources."""

from __future__ import annotations

import dataclasses
import fractions
import functools
import hashlib
import math
import re
from collections.abc import KeysView, Mapping, Set
from typing import Any, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _in_process
from ._arguments import integer, is_below, real, seed_of, shown, u64
from ._dtype import as_u64
from ._errors import Invalid
from ._in_process import address_of_integers, check
from ._names import advise_arguments
from ._order import END, Integers, Order
from ._shuf import ffi, lib

_WEIGHTS = 1 << 61  # the sum of the weights is below it
_PARTS, _LEAST = 1 << 60, fractions.Fraction(1, 1 << 30)  # of weights that are rounded
_STOPS = {"first_exhausted": min, "all_exhausted": max}


class Places(NamedTuple):
    """What stands at some positions of a mixture: arrays of one length."""

    source: npt.NDArray[np.uint32]  # numbers of sources
    epoch: Integers  # of the source
    record: Integers  # of the source


# ---- Arguments -----------------------------------------------------------------------------------


def _list(name: str, values: Any) -> list[Any]:
    try:
        if isinstance(values, (str, bytes, Mapping, Set)) and not isinstance(values, KeysView):
            raise TypeError
        return list(values)
    except TypeError:
        raise Invalid(f"{name}: {shown(values)}: expected a list, with one element for each source") from None


def _per_source(name: str, values: Any, count: int) -> tuple[int, ...]:
    """Integers, one for each source: a number is that of all, and None is 0."""
    given = _list(name, values) if np.iterable(values) else [values] * count
    numbers = [0 if value is None else u64(f"{name}[{i}]", value) for i, value in enumerate(given)]
    if len(numbers) != count:
        raise Invalid(f"{name}: {len(numbers)} of them, expected {count}, one for each source")
    for i, (number, value) in enumerate(zip(numbers, given)):
        if number == 0 and value is not None:
            raise Invalid(f"{name}[{i}]: 0: expected 1 or more, or None")
    return tuple(numbers)


def _shortest(numbers: tuple[int, ...]) -> Any:
    """The argument of these numbers: one for all, or a list."""
    values = [number or None for number in numbers]
    return values[0] if len({*values}) == 1 else values


def _fraction(name: str, value: Any) -> fractions.Fraction:
    """A weight as an exact ratio. A float is the decimal that Python shows for it: 0.1 is 1/10."""
    try:
        text = str(value) if isinstance(value, (float, np.generic)) else value
        if not isinstance(text, str) or "/" not in text:
            if not math.isfinite(float(text)):
                raise ValueError
        number = fractions.Fraction(text)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise Invalid(f"{name}: {shown(value)}: expected a finite number, or text such as '0.7' or '2/3'") from None
    if number < 0:
        raise Invalid(f"{name}: {shown(value)}: expected 0 or more")
    return number


def whole_weights(name: str, weights: Any, count: int) -> tuple[int, ...]:
    """The weights as whole numbers in the same ratios, as small as possible. If their sum would be 2^61 or more, they are
    rounded to parts of 2^60."""
    ratios = [_fraction(f"{name}[{i}]", value) for i, value in enumerate(_list(name, weights))]
    if len(ratios) != count:
        raise Invalid(f"{name}: {len(ratios)} of them, expected {count}, one for each source")
    total = sum(ratios)
    if not total:
        raise Invalid(f"{name}: all are 0, expected one above 0")
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    whole = [int(ratio * common) for ratio in ratios]
    divisor = math.gcd(*whole)
    whole = [weight // divisor for weight in whole]
    if sum(whole) < _WEIGHTS:
        return tuple(whole)
    for i, ratio in enumerate(ratios):
        if 0 < ratio / total < _LEAST:
            raise Invalid(f"{name}[{i}]: {shown(float(ratio))}: expected at least 2^-30 of the sum, or 0")
    return tuple(round(ratio / total * _PARTS) for ratio in ratios)


def tempered(sizes: Sequence[int], alpha: float) -> list[int]:
    """Weights in proportion to size ** alpha, to 10^-9 of the largest: alpha = 1 reads each source equally often (None instead
    of weights does so exactly), 0 gives all sources equal shares, 0.3 to 0.7 is usual for languages of different size (temperature 1 / alpha)."""
    exponent = real("alpha", alpha)
    if not 0 <= exponent <= 1:
        raise Invalid(f"alpha: {shown(alpha)}: expected 0 to 1")
    numbers = [integer(f"sizes[{i}]", size) for i, size in enumerate(_list("sizes", sizes))]
    if not numbers or min(numbers) < 1:
        raise Invalid("sizes: expected at least one, and each at least 1")
    largest = max(numbers)
    return [max(1, round(10**9 * (number / largest) ** exponent)) for number in numbers]


# ---- The mixture ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Mixture(Order):
    """Records of several sources, mixed by weights: an order, as Order describes it, of the sources one after the other.

    sizes    the records of each source: 1 to 4096 sources, together at most 2^62 records
    weights  a number of 0 or more for each source; only their ratios matter. Each counts *records*: a source of weight
             0.2 among a sum of 1 has every fifth record. A float counts as the decimal that Python shows, so 0.1 is
             exactly 1/10; text such as "2/3" and fractions.Fraction are exact, too. Weights whose whole numbers would have
             a sum of 2^61 or more are rounded to parts of 2^60, and must be at least 2^-30 of the sum. None: the sizes
    seed     as in permute()
    epochs   a source ends after so many epochs: a number, or one for each source; None: never. The others share its
             weight. With k sources, and without `stages`, at least 2^21 / k of them may end at positions of
             their own: all stages together have at most 2^21 sources
    chunk, window
             sources in windowed orders (permute()): both numbers, or both lists with one element for each source
    stages   [(position, weights), ...]: other weights from these positions on, which ascend. What a source has read
             stays read; a source of weight 0 rests. A stage cuts the block in which it begins, and so changes the order
             inside this block: a job adds one at least `block` positions after the place that it has reached
    block    after each whole block each source has its exact share, to less than 1.68 records until the weights change or a
             source ends; inside a block the order is random. At least the number of sources, at most 2^20
    length   the number of positions. "first_exhausted": until each record of one source was there; "all_exhausted":
             of all sources. None: until all sources of the last stage end, or without end

    mixture[i] is an index of the sources one after the other, as torch.utils.data.ConcatDataset and
    datasets.concatenate_datasets count them; `offsets` are the first indices of the sources.

    With the default block an element takes some ten microseconds, and the elements of a slice some nanoseconds each, at any
    position. docs/spec.md, "Mixtures", defines them. Errors: Invalid; OutOfMemory.
    """

    n: int
    sizes: tuple[int, ...]
    weights: tuple[int, ...]
    seed: int
    epoch: int  # 0
    stages: tuple[tuple[int, tuple[int, ...]], ...]
    block: int
    length: int | None
    offsets: Integers
    _numbers: dict[str, tuple[int, ...]]  # of each option that has one for each source
    _mixture: Any
    _is_cut: bool  # it has a length of its own
    algorithm = "mixture"

    @advise_arguments
    def __init__(
        self,
        sizes: Any,
        weights: Any = None,
        seed: int = 0,
        *,
        epochs: Any = None,
        chunk: Any = None,
        window: Any = None,
        stages: Any = (),
        block: int = 4096,
        length: int | str | None = None,
    ) -> None:
        own = vars(self)
        own["sizes"] = tuple(u64(f"sizes[{i}]", size) for i, size in enumerate(_list("sizes", sizes)))
        count = len(self.sizes)
        if count == 0:
            raise Invalid("sizes: []: expected the records of at least one source")
        own.update(n=sum(self.sizes), seed=seed_of(seed), epoch=0, block=u64("block", block))
        if self.block == 0:
            raise Invalid("block: 0: expected at least the number of sources")
        options = {"epochs": epochs, "chunk": chunk, "window": window}
        own["_numbers"] = {name: _per_source(name, value, count) for name, value in options.items()}
        own["weights"] = whole_weights("weights", self.sizes if weights is None else weights, count)
        own["stages"] = tuple(self._stage(s, stage) for s, stage in enumerate(_list("stages", stages)))
        own["_mixture"] = self._make()
        own["offsets"] = np.cumsum([0, *self.sizes[:-1]], dtype=np.int64)
        self.offsets.flags.writeable = False
        own["length"], own["_is_cut"] = self._length(length), length is not None

    def _stage(self, number: int, stage: Any) -> tuple[int, tuple[int, ...]]:
        try:
            first, weights = stage
        except (TypeError, ValueError):
            raise Invalid(f"stages[{number}]: {shown(stage)}: expected (position, weights)") from None
        name = f"stages[{number}]"
        return u64(f"{name}: position", first), whole_weights(f"{name}: weights", weights, len(self.sizes))

    def _make(self) -> Any:
        out, numbers = ffi.new("shuf_mixture **"), self._numbers
        stages = [(0, self.weights), *self.stages]
        status = lib.shufpy_mixture_make(
            self.seed, self.block, len(self.sizes), ffi.new("uint64_t[]", self.sizes), ffi.new("uint64_t[]", numbers["epochs"]),
            ffi.new("uint64_t[]", numbers["chunk"]), ffi.new("uint64_t[]", numbers["window"]), len(stages),
            ffi.new("uint64_t[]", [first for first, _ in stages]),
            ffi.new("uint64_t[]", [weight for _, weights in stages for weight in weights]), out,
        )  # fmt: skip
        try:
            check(status)
        except Invalid as error:  # libshuf counts the weights of position 0 as stage 0
            text = re.sub(r"\bstage ([1-9]\d*)", lambda stage: f"stages[{int(stage[1]) - 1}]", str(error))
            raise Invalid(text) from None
        return ffi.gc(out[0], lib.shuf_mixture_free)

    def _length(self, length: Any) -> int | None:
        """The number of positions; None: without end."""
        end = int(lib.shuf_mixture_length(self._mixture))
        if length is None:
            return end if end < END else None
        if isinstance(length, str):
            if length not in _STOPS:
                raise Invalid(f"length: {shown(length)}: expected an integer, {', '.join(map(repr, _STOPS))} or None")
            found = _STOPS[length](int(x) % 2**64 for x in self._exhausted())
            if found > end:
                raise Invalid(f"length: {length}: the mixture never has all records of source {self._never()}")
            return found
        number = integer("length", length)
        if not 1 <= number <= end:
            raise Invalid(f"length: {number}: expected 1 to {end if end < END else '2^62'}, where the sources end")
        return number

    def _exhausted(self) -> npt.NDArray[np.uint64]:
        positions = np.empty(len(self.sizes), np.uint64)
        check(lib.shufpy_mixture_exhausted(self._mixture, positions.ctypes.data))
        return positions

    def _never(self) -> int:
        return int(np.argmax(self._exhausted()))

    # ---- Places ----

    def _fill(self, first: int, count: int, stride: int, threads: int, arrays: Sequence[Any]) -> None:
        number = _in_process.threads_of(threads)
        if count:
            addresses = [0 if array is None else address_of_integers(array) for array in arrays]
            check(lib.shufpy_mixture_fill(self._mixture, first, count, stride, number, *addresses))

    def places(self, offset: int, count: int, stride: int = 1, *, threads: int = 1) -> Places:
        """What stands at the positions offset, offset + stride, ..., `count` of them, as new arrays: sources (uint32), their
        epochs and records (int64)."""
        first, number, step = self._checked(offset, count, stride)
        source = _in_process.new((number,), np.dtype(np.uint32))
        epoch, record = (_in_process.new((number,), np.dtype(np.int64)) for _ in range(2))
        self._fill(first, number, step, threads, (None, source, epoch, record))
        return Places(source, epoch, record)

    def range(self, offset: int, count: int, stride: int = 1, *, threads: int = 1) -> Integers:
        """As Order.range()."""
        first, number, step = self._checked(offset, count, stride)
        out: Integers = _in_process.new((number,), np.dtype(np.int64))
        self._fill(first, number, step, threads, (out, None, None, None))
        return out

    def with_epoch(self, epoch: int) -> Mixture:
        """The mixture, for epoch 0. Others are refused."""
        if u64("epoch", epoch) != 0:
            raise Invalid(
                f"epoch: {epoch}: expected 0, because a mixture is one run, whose sources have epochs of their own; after the "
                "state of its end no position is left"
            )
        return self

    def __contains__(self, index: Any) -> bool:
        if not is_below(index, self.n):
            return False
        source = int(np.searchsorted(self.offsets, int(index), "right")) - 1
        return bool(self.positions(source, 0, int(index) - int(self.offsets[source])) >= 0)  # its first epoch is the earliest

    def positions(self, source: npt.ArrayLike, epoch: npt.ArrayLike, record: npt.ArrayLike) -> Any:
        """The inverse: the position of each (source, epoch, record), or -1 for one that does not stand in the mixture. An int64
        array of the common shape, or an int for single numbers."""
        given = {"source": source, "epoch": epoch, "record": record}
        sources, epochs, records = np.broadcast_arrays(*(as_u64(name, value) for name, value in given.items()))
        if sources.size and int(sources.max()) >= len(self.sizes):
            raise Invalid(f"source: {int(sources.max())}: expected less than {len(self.sizes)}")
        flat = [np.ascontiguousarray(a, dtype) for a, dtype in ((sources, np.uint32), (epochs, np.uint64), (records, np.uint64))]
        out = _in_process.new(sources.shape, np.dtype(np.int64))
        check(lib.shufpy_mixture_positions(self._mixture, out.size, *(a.ctypes.data for a in flat), out.ctypes.data))
        out[out >= self._end] = -1
        return out if out.ndim else int(out)

    def counts(self, position: int) -> Integers:
        """How many records of each source stand before `position`, exactly."""
        number = u64("position", position)
        if number > self._end:
            raise Invalid(f"position: {number}: expected at most {self._end}")
        out = np.empty(len(self.sizes), np.int64)
        check(lib.shufpy_mixture_counts(self._mixture, number, out.ctypes.data))
        return out

    def exhausted(self) -> Integers:
        """For each source the number of positions after which each of its records was there once, or -1 if that never
        happens."""
        positions = self._exhausted().view(np.int64)
        return np.where((positions < 0) | (positions > self._end), -1, positions)

    # ---- A value ----

    def _arguments(self) -> dict[str, Any]:
        options = {name: _shortest(numbers) for name, numbers in self._numbers.items()}
        return {**options, "stages": self.stages, "block": self.block, "length": self.length if self._is_cut else None}

    def _details(self) -> dict[str, Any]:
        arguments = repr((self.sizes, self.weights, self._arguments()))
        return {"length": self.length, "mixture": f"0x{hashlib.blake2b(arguments.encode(), digest_size=8).hexdigest()}"}

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), **self._arguments()), (self.sizes, self.weights, self.seed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        ours, theirs = ((m.sizes, m.weights, m.seed, m._arguments()) for m in (self, other))
        return type(self) is type(other) and bool(ours == theirs)

    def __hash__(self) -> int:
        return hash((self.sizes, self.weights, self.seed))

    def __repr__(self) -> str:
        usual = {"stages": (), "block": 4096}
        shortened = {name: shown(value) for name, value in self._arguments().items() if value != usual.get(name)}
        more = "".join(f", {name}={text}" for name, text in shortened.items())
        return f"shufd.local.Mixture(sizes={shown(list(self.sizes))}, weights={shown(list(self.weights))}, seed={self.seed}{more})"
