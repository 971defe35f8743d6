# SPDX-License-Identifier: MIT
"""Places in random streams: `Stream` for `Client.normal()` and `.uniform()`, `BitGenerator` for NumPy
and all code that takes a `numpy.random.Generator`.

A seed has 2^64 independent streams of 2^62 values each.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from typing import Any, cast

import numpy as np

from ._arguments import seed_of, u64
from ._errors import Invalid
from ._shuf import ffi, lib


def _child(stream: int, number: int) -> int:
    """The stream of a child. Among a million children, two are equal with probability 3e-8."""
    digest = hashlib.blake2b(struct.pack("<QQ", stream, number), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Stream:
    """A place in a random stream, for the argument `generator` of normal() and uniform(). These calls
    advance the place by the number of values that they return.

    seed, stream  0 to 2^64 - 1
    offset        number of the next value, 0 to 2^62
    """

    def __init__(self, seed: int, stream: int = 0, offset: int = 0) -> None:
        self.seed = seed_of(seed)
        self.stream = u64("stream", stream)
        self.offset = u64("offset", offset)
        self._spawned = 0

    def advance(self, count: int) -> Stream:
        """Moves by `count` values, also backwards. Returns the stream."""
        self.offset = u64("offset", self.offset + count)
        return self

    def spawn(self, n_children: int) -> list[Stream]:
        """Independent streams of the same seed. Each call returns new ones."""
        first, self._spawned = self._spawned, self._spawned + n_children
        return [Stream(self.seed, _child(self.stream, first + i)) for i in range(n_children)]

    def __repr__(self) -> str:
        return f"shufd.Stream(seed={self.seed}, stream={self.stream}, offset={self.offset})"


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_NO_SEEDS = np.random.SeedSequence(0)  # NumPy would make one for each generator


class BitGenerator(np.random.BitGenerator):
    """NumPy's interface to the uniform stream of 64-bit integers:
    `numpy.random.Generator(shufd.BitGenerator(seed))`.

    `Generator.random()` returns the values of `shufd.uniform(seed=seed)`, and `random_raw()` those
    with dtype "u64". Needs no daemon. Arguments as in `Stream`; pickles.
    """

    def __init__(self, seed: int, stream: int = 0, offset: int = 0) -> None:
        super().__init__(_NO_SEEDS)
        self._draw: Any = ffi.new("shufpy_draw *")
        lib.shufpy_draw_make(self._draw, seed_of(seed), u64("stream", stream), u64("offset", offset))
        self._spawned = 0
        address = _get_pointer(cast(Any, self).capsule, b"BitGenerator")
        lib.shufpy_bitgen_fill(ffi.cast("void *", address), self._draw)

    @property
    def state(self) -> Any:
        """The place in the stream, as a dict."""
        draw = self._draw
        return {
            "bit_generator": "shufd",
            "state": {"seed": draw.seed, "stream": draw.number, "offset": draw.offset},
            "has_uint32": int(draw.has_half),
            "uinteger": int(draw.half),
            "spawned": self._spawned,
        }

    @state.setter
    def state(self, value: Any) -> None:
        if value.get("bit_generator") != "shufd":
            raise Invalid(f"state: of {value.get('bit_generator')!r}: expected one of 'shufd'")
        place = value["state"]
        with self.lock:
            lib.shufpy_draw_make(self._draw, place["seed"], place["stream"], place["offset"])
            self._draw.has_half, self._draw.half = bool(value["has_uint32"]), value["uinteger"]
            self._spawned = value["spawned"]

    def advance(self, delta: int) -> BitGenerator:
        """Moves by `delta` 64-bit values, also backwards. Returns the generator."""
        with self.lock:
            self._draw.offset = u64("offset", self._draw.offset + delta)
            self._draw.has_half = False
        return self

    def spawn(self, n_children: int) -> Any:
        """A list of generators of independent streams of the same seed. Each call returns new ones."""
        first, self._spawned = self._spawned, self._spawned + n_children
        draw = self._draw
        return [BitGenerator(draw.seed, _child(draw.number, first + i)) for i in range(n_children)]

    def __reduce__(self) -> Any:
        """NumPy 1.24 makes a Generator from these three values: Generator(BitGenerator(seed)), then the
        state. Later versions pickle this object."""
        return (BitGenerator, (self._draw.seed,), self.state)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __repr__(self) -> str:
        draw = self._draw
        return f"shufd.BitGenerator(seed={draw.seed}, stream={draw.number}, offset={draw.offset})"
