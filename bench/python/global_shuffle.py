#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shuffles over the GPUs of one machine: shufd.torch.global_shuffle() against torch alone.

    torchrun --nproc_per_node 4 global_shuffle.py OUT.json [--rows 2^28] [--bytes 8,...] [--samples 7]
                                                  [--budget 256] [--only NAME,...] [--method NAME,...] [--memory]

Each rank has a GPU and ROWS rows of BYTES bytes, and the daemon of its GPU. The peer is the usual way in
torch: every rank draws torch.randperm() of all rows with the same seed, sorts the numbers of its rows by
their owner, and sends the numbers and then the rows by all-to-all. A time is that of the slowest rank
from a barrier on, the median of SAMPLES. The memory is the most that a call takes of the GPU, in all
processes, beside input, output and the memory of NCCL. Every result of shufd is compared with the
permutation. --memory measures only the memory of the first calls of a program, for daemons that have just started: the
most that all processes take, the daemon included. --method sets how the rows move, for comparisons: direct,
written, staged, or torch for its operations alone.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

import shufd
import shufd.torch
from shufd import _agreement, _global_shuffle, _moves, _one_sided, _row_kernels

SEED = 7


def number(text):
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(float(text))


class Job:
    def __init__(self, options, bytes):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", self.rank)
        self.client = shufd.connect()
        self.m, self.columns = options.rows, bytes // 8
        self.budget = options.budget and options.budget << 20
        self.n = self.m * self.world
        self.epoch = 0
        first = self.rank * self.m
        self.rows = self.rows_of(torch.arange(first, first + self.m, device=self.device))
        self.out = torch.empty_like(self.rows)

    def rows_of(self, numbers):
        """Each row has its number in its first column, and mixed bits of it in the others."""
        columns = torch.arange(self.columns, device=self.device) * 0x9E3779B97F4A7C15 % (1 << 62)
        return numbers[:, None] + columns if self.columns > 1 else numbers

    # ---- Works whose time is measured ----

    def copy(self):
        self.out.copy_(self.rows)

    def all_to_all(self):
        dist.all_to_all_single(self.out, self.rows)

    def plan(self):
        """A plan as global_shuffle() takes it."""
        self.epoch += 1
        settings = dict(seed=SEED, epoch=self.epoch, rank=self.rank, world=self.world, device=f"cuda:{self.rank}")
        (_, _, part), = _global_shuffle._last_sizes.values()
        if part:
            plan = self.client.exchange_one_sided(self.n, part=part, **settings)
        else:
            plan = self.client.exchange(self.n, **settings)
        del plan

    def shuffle(self):
        self.epoch += 1
        return self.shuffle_again()

    def shuffle_again(self):
        return shufd.torch.global_shuffle(
            self.rows, seed=SEED, epoch=self.epoch, client=self.client, budget=self.budget
        )

    def shuffle_ahead(self):
        """An epoch of a job: the daemon has computed the plan since the call before."""
        self.epoch += 1
        return shufd.torch.global_shuffle(
            self.rows, seed=SEED, epoch=self.epoch, next_epoch=self.epoch + 1, client=self.client, budget=self.budget
        )

    def torch_alone(self):
        self.epoch += 1
        generator = torch.Generator(self.device).manual_seed(self.epoch)
        permutation = torch.randperm(self.n, generator=generator, device=self.device)
        wanted = permutation[self.rank * self.m : (self.rank + 1) * self.m].clone()
        del permutation
        order = torch.argsort(wanted)
        wanted = wanted[order]
        bounds = torch.arange(self.world + 1, device=self.device) * self.m
        needs = torch.searchsorted(wanted, bounds).diff()
        gives = torch.empty_like(needs)
        dist.all_to_all_single(gives, needs)
        needs, gives = needs.tolist(), gives.tolist()
        asked = torch.empty(sum(gives), dtype=torch.int64, device=self.device)
        dist.all_to_all_single(asked, wanted, gives, needs)
        rows = self.rows[asked - self.rank * self.m]
        arrived = torch.empty_like(self.rows)
        dist.all_to_all_single(arrived, rows, needs, gives)
        out = torch.empty_like(self.rows)
        out[order] = arrived
        return out

    # ---- Figures ----

    def is_right(self):
        """Compares a whole result with the permutation."""
        shuffled = self.shuffle()
        places = self.client.permute(
            self.n, seed=SEED, epoch=self.epoch, offset=self.rank * self.m, count=self.m, dtype="i64",
            device=f"cuda:{self.rank}",
        )  # fmt: skip
        numbers = torch.from_dlpack(places)
        step = 1 << 24
        right = all(
            torch.equal(shuffled[at : at + step], self.rows_of(numbers[at : at + step]))
            for at in range(0, self.m, step)
        )
        torch.cuda.synchronize()
        return self.on_all_ranks(right, dist.ReduceOp.MIN) == 1

    def on_all_ranks(self, value, operation):
        value = torch.tensor([float(value)], dtype=torch.float64, device=self.device)
        dist.all_reduce(value, operation)
        return value.item()

    def time_once(self, work, pause=0):
        torch.cuda.synchronize()
        time.sleep(pause)
        dist.barrier()
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return self.on_all_ranks(time.perf_counter() - began, dist.ReduceOp.MAX)

    def watch_memory(self, work):
        """Calls work(). Returns the least free memory of the GPU meanwhile."""
        least, ended = torch.cuda.mem_get_info()[0], threading.Event()

        def watch():
            nonlocal least
            torch.cuda.set_device(self.device)
            while not ended.wait(0.0005):
                least = min(least, torch.cuda.mem_get_info()[0])

        watcher = threading.Thread(target=watch)
        watcher.start()
        work()
        torch.cuda.synchronize()
        ended.set()
        watcher.join()
        return min(least, torch.cuda.mem_get_info()[0])

    def free_memory(self):
        """Of the GPU, without the memory that torch keeps."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        dist.barrier()
        return torch.cuda.mem_get_info()[0]

    def memory_of(self, work, results):
        """Bytes of the GPU that a call takes beside `results` bytes of its result, on the rank that
        takes most."""
        before = self.free_memory()
        least = self.watch_memory(work)
        return self.on_all_ranks(before - least - results, dist.ReduceOp.MAX)


def measure_memory(job):
    """The memory that the first calls take beside input and output, in bytes a row. A call of few rows has loaded all
    kernels before, so the memory of programs is not counted. What torch keeps of a call for the next one is."""
    few = job.rows[: 1 << 20].clone()
    for _ in range(2):
        shufd.torch.global_shuffle(few, seed=SEED, client=job.client)
    job.client.drop()
    del few
    before = job.free_memory()
    figures = []
    for call in range(1, 6):
        most = job.on_all_ranks(before - job.watch_memory(job.shuffle) - job.rows.nbytes, dist.ReduceOp.MAX)
        figures.append({"call": call, "bytes_per_row": most / job.m})
        if job.rank == 0:
            print(f"call {call}, new plan: {most / job.m:.2f} bytes a row", flush=True)
    return figures


# Name, title, results of the size of the rows, and seconds of a pause before each call.
ROWS = [
    ("copy", "copy of the rows", 0, 0),
    ("all_to_all", "NCCL's all-to-all of the rows", 0, 0),
    ("plan", "a new plan", 0, 0),
    ("shuffle", "global_shuffle(), new plan", 1, 0),
    ("shuffle_again", "global_shuffle(), plan from the cache", 1, 0),
    ("shuffle_ahead", "global_shuffle(), plan computed ahead", 1, 0.1),
    ("torch_alone", "torch alone", 1, 0),
]


def select(options, method):
    """Sets the method by the constants that choose it."""
    if options.rounds:
        _moves._OVERLAPPED_ROUNDS, _moves._SHORTEST_ROUND = options.rounds, 1
    if method:
        _one_sided.LEAST_DIRECT_BYTES = 1 if method == "direct" else 1 << 60
    if method == "staged":
        _agreement.part_of = lambda *offers: 0
    if method == "torch":
        _row_kernels.is_available = lambda device: False


def measure(job, options):
    figures = []
    for name, title, makes_result, pause in ROWS:
        if options.only and name not in options.only:
            continue
        work = getattr(job, name)
        row = {"name": name, "title": title}
        try:
            for _ in range(2):
                job.time_once(work, pause)
            row["seconds"] = [job.time_once(work, pause) for _ in range(options.samples)]
            taken = job.memory_of(work, makes_result * job.rows.nbytes)
            row["bytes_per_row"] = taken / job.m
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            row["error"] = str(error).splitlines()[0]
        torch.cuda.empty_cache()
        figures.append(row)
        if job.rank == 0:
            report(row, job)
    return figures


def report(row, job):
    if "error" in row:
        print(f"{row['title']:40} {row['error']}", flush=True)
        return
    median = statistics.median(row["seconds"])
    print(
        f"{row['title']:40} {1e3 * median:9.3f} ms (least {1e3 * min(row['seconds']):.3f})"
        f" {job.n / median / 1e9:8.2f} G rows/s {job.rows.nbytes / median / 1e9:8.1f} GB/s a GPU"
        f" {row['bytes_per_row']:6.1f} bytes a row of memory",
        flush=True,
    )


def run(options, bytes, method):
    """Measures rows of one width by one method, and returns the record."""
    select(options, method)
    job = Job(options, bytes)
    if job.rank == 0:
        print(
            f"{job.world} x {torch.cuda.get_device_name()}, {job.m} rows of {bytes} bytes a GPU, "
            f"budget {options.budget or 'default'}, method {method or 'default'}, torch {torch.__version__}, "
            f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}",
            flush=True,
        )
    memory = measure_memory(job) if options.memory else None
    right = job.is_right()
    if job.rank == 0:
        print(f"{'equal to the permutation':40} {right}", flush=True)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(), "world": job.world, "rows": job.m, "bytes": bytes,
        "budget": job.budget, "method": method, "rounds": options.rounds, "right": right,
        "torch": torch.__version__,
        **({"memory": memory} if options.memory else {"figures": measure(job, options)}),
        "driver": subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True
        ).stdout.split("\n")[0],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--rows", type=number, default=1 << 28)
    parser.add_argument("--bytes", type=lambda text: [int(word) for word in text.split(",")], default=[8])
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--budget", type=int, help="MiB, as of global_shuffle()")
    parser.add_argument("--method", type=lambda text: text.split(","), default=[None])
    parser.add_argument("--rounds", type=int, help="the least rounds of the staged method")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","))
    options = parser.parse_args()
    if len(options.method) > 1 and not {"direct", "written"} >= set(options.method):
        parser.error("--method: only direct and written can be measured in one run")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(
        "nccl", timeout=datetime.timedelta(seconds=120), device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    )
    records = [run(options, bytes, method) for bytes in options.bytes for method in options.method]
    if dist.get_rank() == 0:
        with open(options.out, "w") as file:
            json.dump(records if len(records) > 1 else records[0], file, indent=1)
    dist.destroy_process_group()
    sys.exit(0 if all(record["right"] for record in records) else 1)


if __name__ == "__main__":
    main()
