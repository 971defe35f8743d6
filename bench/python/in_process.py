#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the functions that compute in this process, beside those of torch and NumPy.

    in_process.py cuda | cpu

A row has the median and the 99th percentile of one call, by the host's clock. On a GPU the call ends when the device is
done: torch.cuda.synchronize() is a part of it. "queued" is the time until the call returns.
"""
import platform
import statistics
import sys
import time

import numpy as np
import torch

import shufd
import shufd.torch


def timed(call, done, rounds):
    total, queued = [], []
    for _ in range(max(3, rounds // 10)):
        call()
    done()
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        call()
        middle = time.perf_counter_ns()
        done()
        total.append(time.perf_counter_ns() - begin)
        queued.append(middle - begin)
    return total, queued


def row(name, n, call, done, rounds):
    total, queued = timed(call, done, rounds)
    p50, p99 = statistics.median(total), sorted(total)[int(0.99 * len(total))]
    print(f"{name:52} {n:12.0f} {p50 / 1e3:11.1f} {p99 / 1e3:11.1f} {statistics.median(queued) / 1e3:10.1f} {n / p50:9.3f}",
          flush=True)


def head(device):
    print(f"device {device}; torch {torch.__version__}; shufd {shufd.__version__}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}")
    print(f"{'':52} {'n':>12} {'p50 us':>11} {'p99 us':>11} {'queued us':>10} {'G/s':>9}")


def rounds_for(n):
    return 2000 if n <= 10**6 else 200 if n <= 10**8 else 40


def cuda():
    head(torch.cuda.get_device_name())
    done = torch.cuda.synchronize
    nothing_to_do = torch.empty(16, device="cuda")
    row("Tensor.zero_ of 16 values, the least work of a GPU", 16, nothing_to_do.zero_, done, 2000)
    for n in (10**3, 10**6, 10**8, 10**9):
        epoch = iter(range(10**9))
        row("shufd.torch.randperm, i64", n,
            lambda: shufd.torch.randperm(n, seed=7, epoch=next(epoch), device="cuda"), done, rounds_for(n))
        row("torch.randperm, i64", n, lambda: torch.randperm(n, device="cuda"), done, rounds_for(n) // 2)
    for n in (10**6, 10**8):
        for kind in (torch.float32, torch.bfloat16):
            out = torch.empty(n, dtype=kind, device="cuda")
            label = str(kind).removeprefix("torch.")
            row(f"shufd.torch.normal_, {label}", n, lambda: shufd.torch.normal_(out, seed=7), done, rounds_for(n))
            row(f"Tensor.normal_, {label}", n, lambda: out.normal_(), done, rounds_for(n))
            row(f"torch.randn, {label}", n, lambda: torch.randn(n, dtype=kind, device="cuda"), done, rounds_for(n))
        out = torch.empty(n, device="cuda")
        row("shufd.torch.uniform_, float32", n, lambda: shufd.torch.uniform_(out, 0.0, 1.0, seed=7), done, rounds_for(n))
        row("Tensor.uniform_, float32", n, lambda: out.uniform_(), done, rounds_for(n))
    at = torch.randint(10**9, (10**7,), device="cuda")
    row("shufd.torch.index, 1e7 places of 1e9", 10**7, lambda: shufd.torch.index(at, 10**9, seed=7), done, 200)
    for n, columns in ((10**6, 16), (10**7, 16)):
        rows = torch.rand(n, columns, device="cuda")
        row(f"shufd.torch.shuffle, rows of {4 * columns} bytes", n, lambda: shufd.torch.shuffle(rows, seed=7), done, 100)
        row(f"x[torch.randperm(n)], rows of {4 * columns} bytes", n,
            lambda: rows[torch.randperm(n, device="cuda")], done, 100)
    graph(done)


def graph(done):
    """100 calls in a captured graph, beside the same calls without one."""
    out = [torch.empty(10**6, device="cuda") for _ in range(100)]

    def calls():
        for i, one in enumerate(out):
            shufd.torch.normal_(one, seed=7, stream=i)

    calls()
    done()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        calls()
    row("100 x normal_ of 1e6 f32, in a graph", 10**8, captured.replay, done, 200)
    row("100 x normal_ of 1e6 f32, one by one", 10**8, calls, done, 200)


def nothing():
    pass


def cpu():
    torch.set_num_threads(1)
    head(platform.processor() or platform.machine())
    order, rng = shufd.local.Permutation(10**9, 7), np.random.default_rng(7)
    place = iter(range(0, 10**9, 8192))
    row("shufd.local.Permutation.range, 8192 of 1e9", 8192, lambda: order.range(next(place), 8192), nothing, 2000)
    narrow = np.empty(8192, np.uint32)
    place = iter(range(0, 10**9, 8192))
    row("shufd.local.Permutation.range, u32, out=, 8192 of 1e9", 8192,
        lambda: order.range(next(place), 8192, out=narrow), nothing, 2000)
    out = np.empty(8192, np.uint64)
    place = iter(range(0, 10**9, 8192))
    row("shufd.local.permute, out=, 8192 of 1e9", 8192,
        lambda: shufd.local.permute(10**9, 7, offset=next(place), count=8192, out=out), nothing, 2000)
    for n in (16, 1000, 10**6):
        epoch = iter(range(10**9))
        row("shufd.torch.randperm, i64", n, lambda: shufd.torch.randperm(n, seed=7, epoch=next(epoch)), nothing, 300)
        row("torch.randperm, i64", n, lambda: torch.randperm(n), nothing, 300)
        row("numpy Generator.permutation", n, lambda: rng.permutation(n), nothing, 300)
    n = 10**6
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        values = torch.empty(n, dtype=kind)
        label = str(kind).removeprefix("torch.")
        row(f"shufd.torch.normal_, {label}", n, lambda: shufd.torch.normal_(values, seed=7), nothing, 100)
        row(f"Tensor.normal_, {label}", n, lambda: values.normal_(), nothing, 100)
    numbers = np.empty(n, np.float32)
    row("shufd.local.normal, float32, out=", n, lambda: shufd.local.normal(size=n, seed=7, dtype="f32", out=numbers), nothing, 100)
    row("numpy Generator.standard_normal, float32, out=", n, lambda: rng.standard_normal(dtype=np.float32, out=numbers), nothing, 100)


if __name__ == "__main__":
    if sys.argv[1:] == ["cuda"]:
        cuda()
    elif sys.argv[1:] == ["cpu"]:
        cpu()
    else:
        sys.exit(__doc__)
