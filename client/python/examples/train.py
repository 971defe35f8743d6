#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small training job of several processes. It is killed, and continues with another number of processes.

    train.py [--samples 1e8] [--epochs 2] [--batch 65536] [--worlds 4,3,8]

The job fits a model by stochastic gradient descent to a map-style dataset, which computes each sample
from its index. gloo averages the gradients on CPUs, nccl on GPUs. Every few steps rank 0 writes a
checkpoint: the model and the sampler's state, one small dict. The parent kills all ranks with SIGKILL
in the middle of an epoch, and starts the job again with the next number of ranks. At the end it proves
that each epoch used every sample once. For this, each rank writes a bit for each index that it has used
up to a checkpoint. The parent combines the bits of all ranks and runs.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

CHECKPOINT = "checkpoint.json"


# ---- A rank --------------------------------------------------------------------------------------


class Seen:
    """The indices that a rank has used in an epoch: a bit for each index, and a list of those used twice.
    Each checkpoint has a file of them. The file counts only if its checkpoint became valid."""

    def __init__(self, directory, run, rank, n):
        self.directory, self.name, self.n = directory, f"run{run}-rank{rank}", n
        self.bits, self.twice, self.epoch, self.last = np.zeros(n, bool), [], None, None

    def begin(self, epoch):
        self.epoch, self.last = epoch, None
        self.bits[:] = False
        self.twice = []

    def add(self, indices):
        self.twice += indices[self.bits[indices]].tolist()
        self.bits[indices] = True

    def write(self, number):
        """Writes the file of checkpoint `number`. Returns the previous file. The caller removes it when the
        new checkpoint is valid."""
        path = self.directory / f"epoch{self.epoch}-{self.name}-{number}.npz"
        np.savez(path, bits=np.packbits(self.bits), twice=np.array(self.twice, np.int64))
        previous, self.last = self.last, path
        return previous


class Virtual:
    """A map-style dataset of n samples: inputs, and outputs that depend linearly on them. It computes a
    sample from its index, and takes a whole array of indices at once."""

    weights = np.array([[1.0], [-2.0], [3.0]], np.float32)

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, indices):
        columns = [np.sin(indices * 0.001), np.cos(indices * 0.003), indices % 7 / 7.0]
        x = np.stack(columns, 1).astype(np.float32)
        return indices, x, x @ self.weights


def make_job(options):
    import torch

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    use_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= world
    device = torch.device(f"cuda:{rank}" if use_gpu else "cpu")
    store = pathlib.Path(options.directory, f"run{options.run}.store").as_uri()  # the ranks find each other by it
    torch.distributed.init_process_group("nccl" if use_gpu else "gloo", init_method=store, rank=rank, world_size=world)
    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 1).to(device)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model, device, rank, world


def load(directory, model, sampler):
    """Loads the newest checkpoint. Returns its number, or 0 if there is none."""
    import torch

    path = directory / CHECKPOINT
    if not path.exists():
        return 0
    checkpoint = json.loads(path.read_text())
    with torch.no_grad():
        for parameter, values in zip(model.parameters(), checkpoint["model"]):
            parameter.copy_(torch.tensor(values))
    sampler.load_state_dict(checkpoint["sampler"])
    return checkpoint["number"]


def save(directory, model, sampler_state, seen, number, rank):
    """All ranks write the indices that they have used. Then rank 0 makes the checkpoint valid."""
    import torch

    previous = seen.write(number)
    torch.distributed.barrier()
    if rank == 0:
        text = json.dumps({
            "number": number,
            "model": [p.detach().cpu().tolist() for p in model.parameters()],
            "sampler": sampler_state,
        })  # fmt: skip
        (directory / "checkpoint.tmp").write_text(text)
        os.replace(directory / "checkpoint.tmp", directory / CHECKPOINT)
    torch.distributed.barrier()
    if previous:
        previous.unlink()


def train(options):
    import torch

    import shufd.torch

    directory, n = pathlib.Path(options.directory), options.samples
    model, device, rank, world = make_job(options)
    dataset = Virtual(n)
    sampler = shufd.torch.DistributedSampler(dataset, seed=7)
    shufd.verify(n=n, seed=7)
    batches = shufd.torch.BatchSampler(sampler, options.batch, False, as_arrays=True)
    loader = torch.utils.data.DataLoader(dataset, sampler=batches, batch_size=None)
    number = load(directory, model, sampler)
    seen = Seen(directory, options.run, rank, n)
    loss = torch.zeros(())
    for epoch in range(sampler.epoch, options.epochs):
        sampler.set_epoch(epoch)
        seen.begin(epoch)
        for step, (indices, x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            loss = torch.nn.functional.mse_loss(model(x), y)
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    torch.distributed.all_reduce(parameter.grad)
                    parameter -= 0.3 / world * parameter.grad
            seen.add(indices.numpy())
            if step % options.every == options.every - 1:
                number += 1
                state = sampler.state_dict(used=(step + 1) * options.batch)
                save(directory, model, state, seen, number, rank)
        number += 1
        save(directory, model, sampler.state_dict(used=len(sampler)), seen, number, rank)
    if rank == 0:
        print(f"{world} ranks: trained to the end, loss {loss.item():.2e}", flush=True)
    torch.distributed.destroy_process_group()


# ---- The parent ----------------------------------------------------------------------------------


def start(options, run, world):
    return [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--directory", options.directory, "--run", str(run)],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world)},
        )
        for rank in range(world)
    ]


def checkpoint_of(options):
    path = pathlib.Path(options.directory, CHECKPOINT)
    return json.loads(path.read_text()) if path.exists() else {"number": 0}


def kill_after_checkpoints(options, ranks, count):
    """Waits for `count` new checkpoints, and then kills all ranks. Returns the number of the last checkpoint."""
    target = checkpoint_of(options)["number"] + count
    while checkpoint_of(options)["number"] < target:
        if any(rank.poll() not in (None, 0) for rank in ranks):
            for rank in ranks:
                rank.kill()
            sys.exit("a rank failed")
        if all(rank.poll() == 0 for rank in ranks):
            sys.exit("the job ended before the kill: choose more --samples or a smaller --every")
        time.sleep(0.005)
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    for rank in ranks:
        rank.wait()
    checkpoint = checkpoint_of(options)
    state = checkpoint["sampler"]
    print(f"{len(ranks)} ranks: killed; the checkpoint is at epoch {state['epoch']}, position {state['position']:,}")
    return checkpoint["number"]


def files_of(options, epoch, valid):
    """For each rank of each run, the epoch's last file that belongs to a valid checkpoint."""
    last = {}
    for path in pathlib.Path(options.directory).glob(f"epoch{epoch}-run*.npz"):
        _, run, rank, number = path.stem.split("-")
        if int(number) <= valid[int(run[3:])]:
            last[run, rank] = max(last.get((run, rank), (0, path)), (int(number), path))
    return [path for _, path in last.values()]


def prove(options, valid):
    """Checks that every sample of every epoch was used. Only the padding of the last step may repeat samples."""
    n = options.samples
    for epoch in range(options.epochs):
        count, repeats = np.zeros(n, np.uint8), 0
        for path in files_of(options, epoch, valid):
            with np.load(path) as used:
                count += np.unpackbits(used["bits"], count=n)
                repeats += len(used["twice"])
        missing, repeats = int((count == 0).sum()), repeats + int(count.sum(dtype=np.int64) - (count > 0).sum())
        most = max(options.worlds) - 1
        print(f"epoch {epoch}: {n:,} samples, {missing} missing, {repeats} padded (at most {most})")
        if missing or repeats > most:
            sys.exit("the samples were not used exactly once")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = lambda text: int(float(text))  # noqa: E731
    parser.add_argument("--samples", type=number, default=10**8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=number, default=65_536, help="samples of a rank's step")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--worlds", type=lambda text: [int(w) for w in text.split(",")], default=[4, 3, 8])
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.run is not None:
        return train(options)
    import shufd

    client = shufd.serve()  # one daemon for all ranks, which find it by $SHUFD_SOCKET
    with tempfile.TemporaryDirectory() as options.directory:
        valid = []
        for run, world in enumerate(options.worlds):
            ranks = start(options, run, world)
            if run + 1 < len(options.worlds):
                valid.append(kill_after_checkpoints(options, ranks, 3))
            elif any([rank.wait() for rank in ranks]):
                sys.exit("a rank failed")
        prove(options, [*valid, checkpoint_of(options)["number"]])
    client.close()


if __name__ == "__main__":
    main()
