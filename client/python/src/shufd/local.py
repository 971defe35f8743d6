# SPDX-License-Identifier: MIT
"""Look-ups in this process, without a daemon: single values and positions of `primefold`, from the
inline functions of libshuf. A look-up costs some 100 ns for n above 256, and up to 1 us below. Calls release the GIL.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arguments import seed_of, u64
from ._dtype import as_u64
from ._errors import Invalid
from ._shuf import ffi, lib

_MOST = 1 << 62


class Permutation:
    """One permutation of [0, n) by `primefold`, as a read-only sequence that computes its values.

    n      1 to 2^62
    seed, epoch
           0 to 2^64 - 1
    """

    def __init__(self, n: int, seed: int, epoch: int = 0) -> None:
        self.n, self.seed, self.epoch = u64("n", n), seed_of(seed), u64("epoch", epoch)
        if not 1 <= self.n <= _MOST:
            raise Invalid(f"n: {n}: expected 1 to 2^62")
        self._order: Any = ffi.new("shufpy_order *")
        lib.shufpy_order_make(self._order, self.n, self.seed, self.epoch)

    def index(self, positions: npt.ArrayLike) -> Any:
        """The values at positions below n: a new uint64 array of the same shape, or an int for a
        single position. Fails with Invalid for a position out of range."""
        return self._look_up("positions", positions, False)

    def inverse_index(self, values: npt.ArrayLike) -> Any:
        """The positions of values: the inverse of index()."""
        return self._look_up("values", values, True)

    def range(self, offset: int, count: int, stride: int = 1) -> npt.NDArray[np.uint64]:
        """The `count` values at offset, offset + stride, ..., from the beginning again after the
        end."""
        out = np.empty(count, np.uint64)
        first, step = u64("offset", offset), u64("stride", stride)
        lib.shufpy_order_range(self._order, first, step, count, ffi.from_buffer("uint64_t[]", out))
        return out

    def _look_up(self, name: str, at: npt.ArrayLike, inverse: bool) -> Any:
        places = as_u64(name, at)
        out = np.empty(places.shape, np.uint64)
        flat = places.reshape(-1)
        done = lib.shufpy_order_look_up(
            self._order,
            inverse,
            ffi.from_buffer("uint64_t[]", flat),
            flat.size,
            ffi.from_buffer("uint64_t[]", out.reshape(-1)),
        )
        if done < flat.size:
            raise Invalid(f"{name}: {flat[done]}: expected less than n, which is {self.n}")
        return out if out.ndim else int(out)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, position: int) -> int:
        place = operator.index(position)
        if not -self.n <= place < self.n:
            raise IndexError(f"position {place}: expected less than n, which is {self.n}")
        return int(self.index(place % self.n))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Permutation, (self.n, self.seed, self.epoch))

    def __repr__(self) -> str:
        return f"shufd.local.Permutation(n={self.n}, seed={self.seed}, epoch={self.epoch})"


def index(positions: npt.ArrayLike, n: int, seed: int, epoch: int = 0) -> Any:
    """As shufd.index(), computed in this process."""
    return Permutation(n, seed, epoch).index(positions)


def inverse_index(values: npt.ArrayLike, n: int, seed: int, epoch: int = 0) -> Any:
    """As shufd.inverse_index(), computed in this process."""
    return Permutation(n, seed, epoch).inverse_index(values)
