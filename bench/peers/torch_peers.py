# SPDX-License-Identifier: MIT
"""The peers in PyTorch.

    torch_peers.py randperm    # torch.randperm(n, device="cuda") as int64, its default, and as int32; time of the device
    torch_peers.py normal      # normal_() into existing memory, by the kernel of randn(); time of the device
    torch_peers.py latency     # torch.randperm(n), from the call to the synchronised result
    torch_peers.py share       # several processes that each call torch.randperm(n): at the same time if the memory
                               # suffices, else in turn

Prints one JSON object with every sample in nanoseconds.
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

SAMPLES, WARM_UP = 9, 1000
PR_SET_PDEATHSIG = 1


class Absent(Exception):
    pass


# ---- Device time ---------------------------------------------------------------------------------


def by_events(torch, work):
    """The times of SAMPLES runs after a warm-up run."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(1 + SAMPLES):
        start.record()
        work()
        stop.record()
        stop.synchronize()
        taken.append(start.elapsed_time(stop) * 1e6)
    return taken[1:]


def randperm(torch, options):
    rows = []
    for n in options.n:
        for name in ("int64", "int32"):
            taken = sorted(by_events(torch, lambda: torch.randperm(n, dtype=getattr(torch, name), device="cuda")))
            rows.append({"n": n, "dtype": name, "median_ns": taken[SAMPLES // 2], "ns": taken})
    return {"device": torch.cuda.get_device_name(), "rows": rows}


def normal(torch, options):
    numbers = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    rows = []
    for n in options.n:
        for number, dtype in numbers.items():
            values = torch.ones(n, dtype=dtype, device="cuda")
            rows.append({"n": n, "number": number, "width": values.element_size(), "ns": by_events(torch, values.normal_)})
            del values
    return {"rows": rows}


# ---- Latency -------------------------------------------------------------------------------------


def latency(torch, options):
    wait = torch.cuda.synchronize if options.device == "cuda" else (lambda: None)
    taken = []
    for _ in range(WARM_UP + options.samples):
        start = time.perf_counter_ns()
        torch.randperm(options.n[0], device=options.device)
        wait()
        taken.append(time.perf_counter_ns() - start)
    return {"ns": taken[WARM_UP:]}


# ---- Several processes ---------------------------------------------------------------------------


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
    return time.monotonic() - start, str(result.dtype)


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


def share(torch, options):
    n, device = options.n[0], options.device
    spawn = multiprocessing.get_context("spawn")
    each = bytes_each(torch, device, n)
    together = each * options.processes * 1.1 < free_bytes(torch, device)
    ready, replies, go = spawn.Queue(), spawn.Queue(), spawn.Event()
    turn = None if together else spawn.Lock()
    arguments = (n, device, ready, go, turn, replies)
    workers = [spawn.Process(target=work, args=arguments, daemon=True) for _ in range(options.processes)]
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
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "dtype": results[0][1],
        "together": together,
        "bytes_each": each,
        "ns": [seconds * 1e9 for seconds, _ in results],
        "wall_ns": wall * 1e9,
    }


def reply(options):
    try:
        import torch
    except ImportError as error:
        raise Absent(str(error)) from error
    if (options.device == "cuda" or options.peer in ("randperm", "normal")) and not torch.cuda.is_available():
        raise Absent("torch sees no GPU")
    peer = {"randperm": randperm, "normal": normal, "latency": latency, "share": share}[options.peer]
    return {"torch": torch.__version__, **peer(torch, options)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["randperm", "normal", "latency", "share"])
    parser.add_argument("--n", type=int, nargs="+", default=[1000])
    parser.add_argument("--samples", type=int, default=20000, help="of latency")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    try:
        print(json.dumps(reply(options)))
    except Absent as error:
        print(json.dumps({"absent": str(error)}))


if __name__ == "__main__":
    main()
