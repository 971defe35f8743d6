#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shuffles rows that lie on the ranks of a job, proves the result, and undoes it.

    python -m torch.distributed.run --nproc_per_node 4 global_shuffle.py [--rows 1e6] [--columns 4] [--seed 7]

The torch of Debian 12 also needs -r 1 -t 1 before the name of the program.

Each row is computed from its number. So after the shuffle, each rank can look up which row belongs to
each of its places, compute this row, and compare it. Rank 0 gets fewer rows than it had, and the last
rank more. gloo moves the rows between CPUs, nccl between GPUs.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist

import shufd
import shufd.torch


def rows_of(numbers, columns):
    """The rows with these numbers."""
    return numbers[:, None] * 1000 + torch.arange(columns, device=numbers.device)


def start(options):
    """Begins the job. Without a daemon, the first rank of each machine starts one for all its ranks, by
    serve(): default_client() starts none for one of several ranks."""
    gpu = torch.cuda.is_available() and torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    sockets = [None] * dist.get_world_size()
    first = int(os.environ["LOCAL_RANK"]) == 0
    own = shufd.serve() if first and "SHUFD_SOCKET" not in os.environ else None
    dist.all_gather_object(sockets, own.socket if own else None)
    here = dist.get_rank() - int(os.environ["LOCAL_RANK"])
    return device, own or shufd.connect(sockets[here])


def sizes_of(rows, world):
    """The rows of each rank before and after: the last rank takes half of those of rank 0."""
    before = [rows // world + (rank < rows % world) for rank in range(world)]
    after = list(before)
    moved = before[0] // 2
    after[0] -= moved
    after[-1] += moved
    return before, after


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    device, client = start(options)
    rank, world = dist.get_rank(), dist.get_world_size()
    shufd.verify(client=client)
    before, after = sizes_of(options.rows, world)
    first = sum(before[:rank])
    own = rows_of(torch.arange(first, first + before[rank], device=device), options.columns)

    dist.barrier()
    began = time.monotonic()
    shuffled = shufd.torch.global_shuffle(own, seed=options.seed, output_size=after[rank], client=client)
    dist.barrier()
    seconds = time.monotonic() - began

    first = sum(after[:rank])
    places = torch.arange(first, first + after[rank]).numpy()
    numbers = shufd.local.index(places, options.rows, options.seed).astype("int64")
    expected = rows_of(torch.from_numpy(numbers).to(device), options.columns)
    back = shufd.torch.global_shuffle(
        shuffled, seed=options.seed, output_size=before[rank], inverse=True, client=client
    )
    right = torch.tensor([torch.equal(shuffled, expected), torch.equal(back, own)], device=device).int()
    dist.all_reduce(right, dist.ReduceOp.MIN)
    if rank == 0:
        print(f"{options.rows:,} rows on {world} ranks: shuffled in {seconds:.3f} s")
        print("every rank holds its rows of the shuffle:", bool(right[0]))
        print("every rank has its own rows back:", bool(right[1]))
    dist.destroy_process_group()
    sys.exit(0 if right.all() else 1)


if __name__ == "__main__":
    main()
