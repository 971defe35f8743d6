# SPDX-License-Identifier: MIT
"""The golden tables of tests/vectors, which make.py writes from the specification alone."""

import pathlib
from typing import NamedTuple

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "tests/vectors"


class Order(NamedTuple):
    """A row of permute.txt. `values` are all of them if n <= 40, else the first 8 and the last 4."""

    algorithm: str
    n: int
    seed: int
    epoch: int
    fingerprint: str
    values: list


class Numbers(NamedTuple):
    """A row of streams.txt. `values` are the bits of the first 8."""

    distribution: str  # "gauss" and "box-muller" are methods of the normal law
    dtype: str
    seed: int
    stream: int
    mean: float  # of integers, the bound
    std: float
    offset: int
    count: int
    fingerprint: str
    values: list

    def draw(self, normal, uniform, exponential, bits, integers, **place):
        """The call of the row's function with its parameters and the place of its values."""
        if self.distribution == "uniform":
            return uniform(**place)
        if self.distribution in ("exponential", "bernoulli"):
            return (exponential if self.distribution == "exponential" else bits)(self.mean, **place)
        if self.distribution == "integers":
            return integers(self.mean, **place)
        method = "box-muller" if self.distribution == "box-muller" else "table"
        return normal(self.mean, self.std, method=method, **place)


def _rows(name):
    lines = (VECTORS / name).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def orders(most=2**62):
    """The permutations of up to `most` values."""
    rows = (Order(a, int(n), int(s, 16), int(e, 16), f, [*map(int, values)])
            for a, n, s, e, f, *values in _rows("permute.txt"))  # fmt: skip
    return [row for row in rows if row.n <= most]


def numbers():
    return [Numbers(law, dtype, int(seed, 0), int(stream, 0), int(mean) if law == "integers" else float(mean), float(std),
                    int(offset), int(count), f, [int(bits, 16) for bits in values])
            for law, dtype, seed, stream, mean, std, offset, count, f, *values in _rows("streams.txt")]  # fmt: skip


def shards():
    """n, world, rank, drop_last, step and the first positions."""
    return [(*map(int, row[:4]), int(row[5]), [*map(int, row[7:])]) for row in _rows("shard.txt")]
