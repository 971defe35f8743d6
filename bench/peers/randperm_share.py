# SPDX-License-Identifier: MIT
"""The peer of sharing: several processes that each call torch.randperm(n).

Prints one JSON object. The processes run at the same time if the memory suffices, else in turn.
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import queue
import signal
import sys
import time

PR_SET_PDEATHSIG = 1


def free_bytes(torch, device):
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)


def permute(torch, device, n):
    """Returns the seconds of one permutation, and its type."""
    dtype = torch.int32 if n <= 2**31 else torch.int64
    start = time.monotonic()
    result = torch.randperm(n, dtype=dtype, device=device)
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.monotonic() - start
    return seconds, str(result.dtype)


def work(n, device, ready, go, turn, replies):
    """The worker process. It reports that it is ready after it has loaded torch and done a warm-up run."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    import torch

    permute(torch, device, 1000)
    ready.put(os.getpid())
    go.wait()
    if turn:
        with turn:
            replies.put(permute(torch, device, n))
            if device == "cuda":
                torch.cuda.empty_cache()
    else:
        replies.put(permute(torch, device, n))


def bytes_each(torch, device, n):
    """Peak memory of one permutation. On the GPU torch sorts, so a run measures the peak."""
    if device != "cuda":
        return n * (4 if n <= 2**31 else 8)
    torch.cuda.reset_peak_memory_stats()
    permute(torch, device, n)
    peak = torch.cuda.max_memory_reserved()
    torch.cuda.empty_cache()
    return peak


def reply_of(replies, workers):
    """Returns the next reply of a worker. Ends the program if a worker failed."""
    while True:
        try:
            return replies.get(timeout=1)
        except queue.Empty:
            if any(worker.exitcode for worker in workers):
                sys.exit("a worker process failed")


def measure(torch, n, device, processes):
    spawn = multiprocessing.get_context("spawn")
    each = bytes_each(torch, device, n)
    together = each * processes * 1.1 < free_bytes(torch, device)
    ready, replies, go = spawn.Queue(), spawn.Queue(), spawn.Event()
    turn = None if together else spawn.Lock()
    arguments = (n, device, ready, go, turn, replies)
    workers = [spawn.Process(target=work, args=arguments, daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for _ in workers:
        reply_of(ready, workers)
    start = time.monotonic()
    go.set()
    results = [reply_of(replies, workers) for _ in workers]
    wall = time.monotonic() - start
    for worker in workers:
        worker.join()
    return {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "dtype": results[0][1],
        "together": together,
        "bytes_each": each,
        "ns": [seconds * 1e9 for seconds, _ in results],
        "wall_ns": wall * 1e9,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10**9)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"absent": "torch sees no GPU"}))
        return
    json.dump(measure(torch, options.n, options.device, options.processes), sys.stdout)


if __name__ == "__main__":
    main()
