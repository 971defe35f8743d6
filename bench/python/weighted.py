# SPDX-License-Identifier: MIT
"""Measures weighted draws and samples on a GPU beside torch: the time from a call to the end of its work, as a caller who
waits sees it. Before that, it compares draws with those of the CPU.

    PYTHONPATH=build/gpu/client/python python bench/python/weighted.py
"""

import statistics
import time

import numpy as np
import shufd
import shufd.torch as shuftorch
import torch

SAMPLES = 9


def measure(label, count, work):
    taken = []
    for _ in range(1 + SAMPLES):  # the first is a warm-up
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begin)
        del result
    ms, best = statistics.median(taken[1:]) * 1e3, min(taken[1:]) * 1e3
    print(f"{label:58} {count:>12} {ms:10.3f} {best:10.3f} {count / ms / 1e6:10.2f}", flush=True)


def same_as_the_cpu(weights, table):
    expected = shufd.local.Weighted(weights.cpu().numpy(), 7).range(12345, 100_000)
    np.testing.assert_array_equal(table.draw(100_000, seed=7, offset=12345).cpu().numpy(), expected)


def shufd_rows(n, kind):
    weights = 1 - torch.rand(n, device="cuda", dtype=kind)  # above 0
    name = str(kind).removeprefix("torch.")
    measure(f"WeightTable of {name}", n, lambda: shuftorch.WeightTable(weights))
    table = shuftorch.WeightTable(weights)
    if n <= 2**24:
        same_as_the_cpu(weights, table)
    for count in (2**16, 2**24, 2**28):
        measure(f"draws, {n} weights", count, lambda: table.draw(count, seed=7, epoch=1))
    measure(f"every eighth draw, {n} weights", 2**28, lambda: table.draw(2**28, seed=7, stride=8, offset=3))
    for count in (min(n, 10**6), n):
        measure(f"sample of {count} without replacement, {n} weights", n, lambda: shuftorch.weighted_sample(weights, count, seed=7))


def torch_rows(n):
    weights = 1 - torch.rand(n, device="cuda", dtype=torch.float32)
    if n <= 2**24:  # its limit
        for count in (2**16, 2**24):
            measure(f"torch.multinomial, {n} weights", count, lambda: torch.multinomial(weights, count, replacement=True))
        measure(f"torch.multinomial, all of {n} without replacement", n, lambda: torch.multinomial(weights, n))

    def search(count):
        sums = weights.to(torch.float64).cumsum(0)
        return torch.searchsorted(sums, torch.rand(count, device="cuda", dtype=torch.float64) * sums[-1])

    measure(f"torch cumsum, rand and searchsorted, {n} weights", 2**24, lambda: search(2**24))
    measure(
        f"torch exponential_, division and sort, {n} weights", n,
        lambda: (torch.empty_like(weights, dtype=torch.float64).exponential_() / weights).sort()[1],
    )  # fmt: skip


def main():
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, shufd {shufd.__version__}")
    print(f"{'':58} {'numbers':>12} {'median ms':>10} {'best ms':>10} {'G/s':>10}")
    values = torch.empty(2**28, dtype=torch.int64, device="cuda")
    measure("Tensor.zero_, int64", 2**28, values.zero_)
    for n in (10**6, 2**24, 10**8):
        shufd_rows(n, torch.float32)
        torch_rows(n)
    shufd_rows(10**8, torch.float64)


if __name__ == "__main__":
    main()
