# SPDX-License-Identifier: MIT
"""Objects that hand out random numbers: `Stream` for `Client.normal()` and its neighbours, `BitGenerator` for NumPy and
all code that takes a `numpy.random.Generator`.

A seed has 2^64 independent streams. A stream has 2^60 draws of 128 random bits. Unless it is moved back, no object makes
two numbers from the same bits, apart from the numbers of one block or pair of a normal law, which are
independent up to the limits in docs/quality.md.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from typing import Any, Callable, cast

import numpy as np

from . import _dtype, _process
from ._arguments import integer, seed_of, shown, u64
from ._errors import Invalid
from ._shuf import ffi, lib

_DRAWS = 2**60  # of a stream
_OF_DRAW = 2  # 64-bit numbers of a draw


def _child(kind: str, stream: int, number: int) -> int:
    """The stream of a child. Among a million children, two are equal with probability 3e-8."""
    text = kind.encode() + struct.pack("<QQ", stream, number)
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _place(name: str, value: Any, most: int) -> int:
    number = integer(name, value)
    if not 0 <= number <= most:
        raise Invalid(f"{name}: {number}: expected 0 to 2^{most.bit_length() - 1}, the end of the stream")
    return number


def kind_of(law: str, dtype: int) -> tuple[str, int]:
    """The kind of numbers for a Stream: their law, and how many a draw has."""
    return law, 2 if law == "table" or dtype in _dtype.OF_64_BITS else 4


class Stream:
    """A place in a random stream, for the argument `generator` of normal() and its neighbours. These calls move the
    place behind the numbers that they return. Calls of one function and method continue in a draw if a draw has equally
    many numbers of their types: parts of any sizes are together the same numbers of a type, and with the method "table" of
    all types. Any other call begins with the next draw.

    seed, stream  0 to 2^64 - 1
    draw          number of the next draw, 0 to 2^60

    A draw has four numbers of f32 and u32, and of box-muller f16 and bf16. It has two of 64 bits, and of the method
    "table". Threads may share a stream; their calls take turns. Pickles and copies.
    """

    def __init__(self, seed: int, stream: int = 0, draw: int = 0) -> None:
        self.seed = seed_of(seed)
        self.stream = u64("stream", stream)
        self._draw = _place("draw", draw, _DRAWS)
        self._used, self._kind = 0, ("", 1)  # numbers of that kind, the law and those of a draw, used of _draw
        self._spawned = 0
        self._lock, self._busy = _process.locks_for(self)

    @property
    def draw(self) -> int:
        """The number of the first draw that is not used."""
        return self._draw + (self._used > 0)

    def advance(self, draws: int) -> Stream:
        """Moves from the first unused draw by `draws`, also backwards. Returns the stream."""
        self._turn(lambda: self._move(integer("draws", draws)))
        return self

    def _move(self, draws: int) -> None:
        self._draw, self._used = _place("draw", self.draw + draws, _DRAWS), 0

    def _turn(self, call: Callable[[], Any]) -> Any:
        """call(), while other threads wait. A signal handler cannot wait for the call that it interrupts. Python lets no
        exception of a handler between a lock and its `with`, so none leaves the stream locked."""
        with self._lock:
            if self._busy.locked():
                raise Invalid("generator: a call of this thread uses it: expected another stream in a signal handler")
            with self._busy:
                return call()

    def _take(self, kind: tuple[str, int], count: int, call: Callable[[int], Any]) -> Any:
        """call(offset), for the offset of the next `count` numbers of a kind. The place moves if the call returns."""
        return self._turn(lambda: self._taken(kind, count, call))

    def _taken(self, kind: tuple[str, int], count: int, call: Callable[[int], Any]) -> Any:
        used = self._used if self._kind == kind else 0
        offset = (self._draw if used else self.draw) * kind[1] + used
        draw, used = divmod(offset + count, kind[1])
        _place("draw", draw + (used > 0), _DRAWS)
        result = call(min(offset, 4 * _DRAWS - 1))  # a call for no numbers may be at the end, which is no offset
        if count > 0:
            self._draw, self._used, self._kind = draw, used, kind
        return result

    def spawn(self, n_children: int) -> list[Stream]:
        """Independent streams of the same seed. Each call returns new ones; a copy, or a stream at another draw, has the
        same children."""
        n_children = u64("n_children", n_children)
        with self._lock:
            first, self._spawned = self._spawned, self._spawned + n_children
        return [Stream(self.seed, _child("Stream", self.stream, first + i)) for i in range(n_children)]

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_busy")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._busy = _process.locks_for(self)

    def __repr__(self) -> str:
        return f"shufd.Stream(seed={self.seed}, stream={self.stream}, draw={self.draw})"


def check_generator(generator: Any, stream: int, offset: int) -> None:
    if isinstance(generator, Stream):
        if u64("stream", stream) or u64("offset", offset):
            raise Invalid(f"stream: {stream}, offset: {offset}: expected neither with a generator, which has its own place")
        return
    other = (
        "tensors, use shufd.torch.Generator and its methods" if "torch" in type(generator).__module__
        else "a generator of NumPy, use numpy.random.Generator(shufd.BitGenerator(seed)) and its methods"
    )  # fmt: skip
    raise Invalid(f"generator: {shown(generator)}: expected a shufd.Stream; for {other}")


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _NoSeeds(np.random.bit_generator.ISeedSequence):
    """A BitGenerator has a seed and no SeedSequence."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        raise Invalid("seed_seq: shufd.BitGenerator has none: use its spawn()")

    def spawn(self, n_children: int) -> Any:
        return self.generate_state(n_children)


_NO_SEEDS = _NoSeeds()


class BitGenerator(np.random.BitGenerator):
    """NumPy's interface to the uniform stream of 64-bit integers:
    `numpy.random.Generator(shufd.BitGenerator(seed))`.

    `Generator.random()` returns the values of `shufd.uniform(seed=seed)`, and `random_raw()` those
    with dtype "u64". Needs no daemon. Pickles.

    seed, stream  0 to 2^64 - 1
    offset        number of the next 64-bit value, 0 to 2^61. Values beyond are made, but such a generator cannot be
                  copied, nor restored from a pickle or a state
    """

    _kind, _source = "BitGenerator", lib.SHUFPY_UNIFORM

    def __init__(self, seed: int, stream: int = 0, offset: int = 0) -> None:
        super().__init__(cast(Any, _NO_SEEDS))
        self._draw: Any = ffi.new("shufpy_draw *")
        self._make(seed_of(seed), u64("stream", stream), offset)
        self._spawned = 0
        address = _get_pointer(cast(Any, self).capsule, b"BitGenerator")
        lib.shufpy_bitgen_fill(ffi.cast("void *", address), self._draw)

    def _make(self, seed: int, stream: int, offset: int) -> None:
        lib.shufpy_draw_make(self._draw, self._source, seed, stream, _place("offset", offset, _OF_DRAW * _DRAWS))

    @property
    def state(self) -> Any:
        """The place in the stream, as a dict."""
        draw = self._draw
        with self.lock:
            return {
                "bit_generator": f"shufd.{self._kind}",
                "state": {"seed": draw.seed, "stream": draw.number, "offset": draw.offset},
                "has_uint32": int(draw.has_half),
                "uinteger": int(draw.half),
                "spawned": self._spawned,
            }

    @state.setter
    def state(self, value: Any) -> None:
        if value.get("bit_generator") != f"shufd.{self._kind}":
            raise Invalid(f"state: of {value.get('bit_generator')!r}: expected one of 'shufd.{self._kind}'")
        place = value["state"]
        seed, stream, offset = place["seed"], place["stream"], place["offset"]
        has_half, half, spawned = bool(value["has_uint32"]), value["uinteger"], value["spawned"]
        with self.lock:
            self._make(seed, stream, offset)
            self._draw.has_half, self._draw.half, self._spawned = has_half, half, spawned

    def advance(self, delta: int) -> BitGenerator:
        """Moves by `delta` 64-bit values, also backwards. Returns the generator."""
        with self.lock:
            self._draw.offset = _place("offset", self._draw.offset + integer("delta", delta), _OF_DRAW * _DRAWS)
            self._draw.has_half = False
        return self

    def spawn(self, n_children: int) -> Any:
        """A list of generators of independent streams of the same seed. Each call returns new ones; a copy, or a
        generator at another offset, has the same children."""
        n_children = u64("n_children", n_children)
        with self.lock:
            first, self._spawned = self._spawned, self._spawned + n_children
        draw = self._draw
        return [type(self)(draw.seed, _child(self._kind, draw.number, first + i)) for i in range(n_children)]

    def __reduce__(self) -> Any:
        """NumPy 1.24 makes a Generator from these three values: Generator(BitGenerator(seed)), then the
        state. Later versions pickle this object."""
        return (type(self), (self._draw.seed,), self.state)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __repr__(self) -> str:
        draw = self._draw
        return f"shufd.{self._kind}(seed={draw.seed}, stream={draw.number}, offset={draw.offset})"


class ReplacementGenerator(BitGenerator):
    """The choices of shufd.torch.RandomSampler(replacement=True), which no object of another kind draws."""

    _kind, _source = "ReplacementGenerator", lib.SHUFPY_REPLACEMENT


class RecordGenerator(BitGenerator):
    """The generator that shufd.jax.IndexSampler gives to each record, from bits that no object of another
    kind draws."""

    _kind, _source = "RecordGenerator", lib.SHUFPY_RECORD
