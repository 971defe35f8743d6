#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shuffles rows that lie on the ranks of a job, proves the result, and undoes it.

    python -m torch.distributed.run --nproc_per_node 4 global_shuffle.py [--rows 1e6] [--columns 4] [--seed 7] [--device cpu]

The torch of Debian 12 also needs -r 1 -t 1 before the name of the program.

Each row is computed from its number. So after the shuffle, each rank can look up which row belongs to
each of its places, compute this row, and compare it. Rank 0 gets fewer rows than it had, and the last
rank more. nccl moves the rows between GPUs, if the machine has any, and gloo those of CPUs. Each rank
prints its device, the backend of torch.distributed and its daemon.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist

import shufd
import shufd.torch


def number(text):
    return int(float(text))


def rows_of(numbers, columns):
    """The rows with these numbers."""
    return numbers[:, None] * 1000 + torch.arange(columns, device=numbers.device)


def device_of(wanted):
    """The GPU of this rank, or the CPU. Too few GPUs are an error: gloo would move the rows through the host."""
    gpus, ranks = torch.cuda.device_count(), int(os.environ["LOCAL_WORLD_SIZE"])
    if wanted == "cpu" or (wanted is None and gpus == 0):
        return torch.device("cpu")
    if gpus == 1 and "CUDA_VISIBLE_DEVICES" in os.environ:  # the launcher gave each rank a GPU of its own
        return torch.device("cuda", 0)
    if gpus < ranks:
        sys.exit(f"GPUs: {gpus} for {ranks} ranks of this machine: expected one for each rank; or use --device cpu")
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def find_daemon():
    """A client of the daemon of this rank's GPU, or of the machine's only daemon; None if there is none."""
    try:
        return shufd.connect()
    except shufd.NoDaemon:
        if "SHUFD_SOCKET" in os.environ:
            raise
        return None


def connect():
    """A client for this rank. A daemon computes plans in the memory of its own GPU only, so each rank takes that of
    its GPU. Without one it shares that of another rank of its machine. If no rank has a daemon, the first one starts
    it by serve(): default_client() starts none for one of several ranks."""
    place = int(os.environ["LOCAL_RANK"])
    first = dist.get_rank() - place
    here = slice(first, first + int(os.environ["LOCAL_WORLD_SIZE"]))
    sockets = [None] * dist.get_world_size()
    own = find_daemon()
    dist.all_gather_object(sockets, own and own.socket)
    if place == 0 and not any(sockets[here]):
        own = shufd.serve()
    dist.all_gather_object(sockets, own and own.socket)
    return own or shufd.connect(next(filter(None, sockets[here])))


def start(options):
    """Begins the job. Returns the device and the client of this rank."""
    device = device_of(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.empty(1, device=device)  # makes the CUDA context, by which connect() finds the daemon of this GPU
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    client = connect()
    report(device, client)
    return device, client


def report(device, client):
    """Rank 0 prints a line for each rank."""
    state = client.status()
    line = f"{device}, {dist.get_backend()}, daemon: {state['backend']} ({state['device']}) on {client.socket}"
    lines = [None] * dist.get_world_size()
    dist.all_gather_object(lines, line)
    for rank, text in enumerate(lines if dist.get_rank() == 0 else []):
        print(f"rank {rank}: {text}")


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
    parser.add_argument("--rows", type=number, default=1_000_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="the same for all ranks; by default GPUs, if there are any")
    options = parser.parse_args()
    missing = [name for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE") if name not in os.environ]
    if missing:
        sys.exit(f"{', '.join(missing)}: not set; start this program by python -m torch.distributed.run --nproc_per_node N")
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
