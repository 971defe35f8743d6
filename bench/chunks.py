#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windowed orders over chunks of equal and unequal sizes, on one thread: docs/benchmarks.md.

    chunks.py [--records N] [--chunks K]

For about N records in chunks of about 1000, the values a second of processor time, in windows of 64 and of 512 chunks, as
u32; the best of five runs. Then the time to make an order over K chunks, and of single look-ups in it.
"""
import argparse
import time

import numpy as np

from shufd.local import Permutation


def sizes_of(chunks, rng):
    return {
        "one number, 1000": None,
        "a list, all 1000": np.full(chunks, 1000),
        "500 to 1500": rng.integers(500, 1501, chunks),
        "1 to 2000": rng.integers(1, 2001, chunks),
        "log-normal, sigma 1": np.maximum(1, rng.lognormal(6.4, 1, chunks).astype(np.int64)),
        "one of ten 9000, others 100": np.where(rng.random(chunks) < 0.1, 9000, 100),
    }


def seconds(call):
    """The processor time of a call."""
    begin = time.thread_time()
    call()
    return time.thread_time() - begin


def rate(sizes, records, window):
    order = Permutation(records if sizes is None else None, 7, chunk=1000 if sizes is None else sizes, window=window)
    out = np.empty(order.n, np.uint32)
    return order.n / min(seconds(lambda: order.range(0, order.n, out=out)) for _ in range(5)) / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=lambda text: int(float(text)), default=20_000_000)
    parser.add_argument("--chunks", type=lambda text: int(float(text)), default=1 << 24)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{'sizes':<30} {'window 64':>12} {'window 512':>12}  M values/s")
    for name, sizes in sizes_of(arguments.records // 1000, rng).items():
        print(f"{name:<30} " + " ".join(f"{rate(sizes, arguments.records, window):12.0f}" for window in (64, 512)))
    first = Permutation(seed=7, chunk=rng.integers(1, 2001, arguments.chunks), window=512)
    made = seconds(lambda: Permutation(seed=7, epoch=1, chunk=first.chunk, window=512))
    places = rng.integers(first.n, size=20_000)
    found = []
    forward = seconds(lambda: found.append(first.index(places)))
    inverse = seconds(lambda: found.append(first.inverse_index(found[0])))
    assert np.array_equal(found[1], places)
    print(f"{arguments.chunks} chunks: {made:.2f} s for the next epoch; a random position in {forward / 20_000 * 1e6:.1f} us, "
          f"a record in {inverse / 20_000 * 1e6:.1f} us")


main()
