#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training job that mixes four sources by weights. It is killed, and continues with another number of processes.

    mixture.py [--steps 3000] [--batch 64] [--worlds 4,3,8]

Each source lies in files of 500 records, and is read in windows of 8 files, so a rank opens a file once in a window. In
the middle of the run the weights change. The parent kills all ranks with SIGKILL, twice, and starts the job again from
its checkpoint with the next number of ranks. At the end it proves that each source was read exactly as often as
Mixture.counts() says, and each of its records once in each of the source's epochs.
"""

import argparse
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

SIZES = {"web": 60_000, "books": 9_000, "code": 20_000, "maths": 2_500}
CHUNK, WINDOW = 500, 8  # records of a file, files of a window
FIRST, SECOND = (0.7, 0.1, 0.15, 0.05), (0.3, 0.2, 0.3, 0.2)  # the weights
CHECKPOINT = "checkpoint.json"


def mixture_of(options):
    """The order of the whole run: a value, the same in each process."""
    import shufd

    positions = options.steps * options.batch
    return shufd.local.Mixture(
        SIZES.values(), FIRST, seed=7, chunk=CHUNK, window=WINDOW, stages=[(positions // 2, SECOND)], length=positions
    )


# ---- The data --------------------------------------------------------------------------------------


class Files:
    """The records of a source, in files of CHUNK records. The label is a linear function of three numbers."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.rows = functools.lru_cache(2 * WINDOW)(lambda file: np.load(self.path(file)))

    def path(self, file):
        return pathlib.Path(self.directory, f"{self.name}-{file:03}.npy")

    def write(self):
        numbers = np.random.default_rng(len(self.name)).normal(size=(len(self), 3)).astype(np.float32)
        rows = np.column_stack([np.arange(len(self)), numbers, numbers @ np.float32([1, -2, 0.5])]).astype(np.float32)
        for file, first in enumerate(range(0, len(self), CHUNK)):
            np.save(self.path(file), rows[first : first + CHUNK])

    def __len__(self):
        return SIZES[self.name]

    def __getitem__(self, record):
        return self.rows(record // CHUNK)[record % CHUNK]


# ---- A rank ------------------------------------------------------------------------------------------


def train(options):
    import torch

    import shufd.torch

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = pathlib.Path(options.directory, f"run{options.run}.store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    torch.set_num_threads(1)
    sources = [Files(options.directory, name) for name in SIZES]
    dataset = shufd.torch.MixtureDataset(sources, mixture_of(options), with_source=True)
    sampler = shufd.torch.DistributedSampler(dataset, shuffle=False)  # the order is the mixture's
    loader = torch.utils.data.DataLoader(dataset, options.batch, sampler=sampler)
    model, number = torch.nn.Linear(3, 1), 0
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    checkpoint = pathlib.Path(options.directory, CHECKPOINT)
    if checkpoint.exists():
        state = json.loads(checkpoint.read_text())
        number = state["number"]
        sampler.load_state_dict(state["sampler"])
        model.load_state_dict({name: torch.tensor(values) for name, values in state["model"].items()})
    uses = [np.zeros(size, np.int64) for size in SIZES.values()]  # of each record, by this rank in this run
    used, loss = 0, torch.zeros(())
    for step, (rows, of) in enumerate(loader, 1):
        loss = torch.nn.functional.mse_loss(model(rows[:, 1:4]), rows[:, 4:])
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                torch.distributed.all_reduce(parameter.grad)
                parameter -= 0.1 / world * parameter.grad
        for source, record in zip(of.tolist(), rows[:, 0].long().tolist()):
            uses[source][record] += 1
        used += len(rows)
        if step % options.every == 0 or used == len(sampler):
            number += 1
            save(options, rank, number, uses, model, sampler.state_dict(used=used))
    number += 1
    save(options, rank, number, uses, model, sampler.state_dict(used=used))
    if rank == 0:
        print(f"{world} ranks: trained to the end, loss {loss.item():.2e}", flush=True)
    torch.distributed.destroy_process_group()


def save(options, rank, number, uses, model, sampler_state):
    """All ranks write what they have read. Then rank 0 makes the checkpoint valid."""
    import torch

    directory = pathlib.Path(options.directory)
    np.save(directory / f"uses-{options.run}-{rank}-{number}.npy", np.concatenate(uses))
    torch.distributed.barrier()
    if rank == 0:
        weights = {name: values.tolist() for name, values in model.state_dict().items()}
        text = json.dumps({"number": number, "model": weights, "sampler": sampler_state})
        (directory / "checkpoint.tmp").write_text(text)
        os.replace(directory / "checkpoint.tmp", directory / CHECKPOINT)
    torch.distributed.barrier()


# ---- The parent --------------------------------------------------------------------------------------


def checkpoint_of(options):
    path = pathlib.Path(options.directory, CHECKPOINT)
    return json.loads(path.read_text()) if path.exists() else {"number": 0}


def start(options, run, world):
    return [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--directory", options.directory, "--run", str(run)],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world)},
        )
        for rank in range(world)
    ]


def kill_after_checkpoints(options, ranks, count):
    """Returns the number of the last checkpoint."""
    target = checkpoint_of(options)["number"] + count
    while checkpoint_of(options)["number"] < target:
        if any(rank.poll() is not None for rank in ranks):
            sys.exit("a rank ended before the kill: choose more --steps")
        time.sleep(0.005)
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    for rank in ranks:
        rank.wait()
    checkpoint = checkpoint_of(options)
    print(f"{len(ranks)} ranks: killed; the checkpoint is at position {checkpoint['sampler']['position']:,}")
    return checkpoint["number"]


def prove(options, valid):
    """Adds up the uses of all ranks up to the last valid checkpoint of each run."""
    last = {}
    for path in pathlib.Path(options.directory).glob("uses-*.npy"):
        run, rank, number = map(int, path.stem.split("-")[1:])
        if number <= valid[run]:
            last[run, rank] = max(last.get((run, rank), (0, path)), (number, path))
    mixture = mixture_of(options)
    uses = np.split(sum(np.load(path) for _, path in last.values()), mixture.offsets[1:])
    for name, size, times, count in zip(SIZES, SIZES.values(), uses, mixture.counts(len(mixture))):
        passes = count // size
        print(f"{name}: {times.sum():,} records read, {count:,} expected, each {times.min()} to {times.max()} times")
        if times.sum() != count or times.min() < passes or times.max() > passes + (count % size > 0):
            sys.exit("the records were not read exactly as often as the mixture says")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000, help="batches of the whole run")
    parser.add_argument("--batch", type=int, default=64, help="records of a rank's step")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--worlds", type=lambda text: [int(w) for w in text.split(",")], default=[4, 3, 8])
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.run is not None:
        return train(options)
    if options.batch % options.worlds[-1]:
        sys.exit(f"--batch {options.batch}: expected a multiple of {options.worlds[-1]}, the last number of ranks, so that "
                 "no rank repeats a record at the end")  # fmt: skip
    with tempfile.TemporaryDirectory() as options.directory:
        for name in SIZES:
            Files(options.directory, name).write()
        valid = []
        for run, world in enumerate(options.worlds):
            ranks = start(options, run, world)
            if run + 1 < len(options.worlds):
                valid.append(kill_after_checkpoints(options, ranks, 3))
            elif any([rank.wait() for rank in ranks]):
                sys.exit("a rank failed")
        prove(options, [*valid, checkpoint_of(options)["number"]])


if __name__ == "__main__":
    main()
