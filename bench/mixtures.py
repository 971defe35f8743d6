#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a mixture costs a rank, beside the mixtures of other packages that are installed.

    mixtures.py [--positions 1e9] [--sources 64]

Each row is a process of its own, on one thread: seconds until the first place, seconds until the place in the middle as
after a resume, places a second read from there in order, and the growth of its private memory. A peer whose figure would
take more than a minute is measured with fewer positions, and says so. Peers: the blending index of Megatron (its
helpers_cpp in PYTHONPATH), grain.MapDataset.mix, torchdata.nodes.MultiNodeWeightedSampler, a StreamingDataset of MosaicML with a
Stream for each source, from files that are written before.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time

import numpy as np

BATCH = 1024


def weights_of(options):
    return [1 + i % 17 for i in range(options.sources)]


def sizes_of(options):
    return [1_000_000 * (i + 1) for i in range(options.sources)]


def private_bytes():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private"))


# ---- Ways: each returns (positions, read), where read(position) gives the place there, and read_on(count) those after it.


class Shufd:
    def __init__(self, options):
        from shufd.local import Mixture

        self.mixture, self.at = Mixture(sizes_of(options), weights_of(options), seed=7), 0

    def seek(self, position):
        self.at = position
        return self.mixture[position]

    def read(self, count):
        for first in range(self.at, self.at + count, BATCH):
            self.mixture[first : first + BATCH]


class Megatron:
    """The index of all positions: no shuffle within a source, and each of its records once."""

    def __init__(self, options):
        import helpers_cpp

        weights = np.array(weights_of(options), np.float64)
        self.source, self.sample = np.zeros(options.positions, np.int16), np.zeros(options.positions, np.int64)
        helpers_cpp.build_blending_indices(
            self.source, self.sample, weights / weights.sum(), options.sources, options.positions, False
        )

    def seek(self, position):
        self.at = position
        return self.source[position], self.sample[position]

    def read(self, count):
        for first in range(self.at, self.at + count, BATCH):
            self.source[first : first + BATCH].copy(), self.sample[first : first + BATCH].copy()


class Grain:
    def __init__(self, options):
        import grain

        weights = weights_of(options)
        sources = [grain.MapDataset.range(size).shuffle(seed=7).repeat() for size in sizes_of(options)]
        self.mixed = grain.MapDataset.mix(sources, weights=[w / sum(weights) for w in weights])

    def seek(self, position):
        self.at = position
        return self.mixed[position]

    def read(self, count):
        for position in range(self.at, self.at + count):
            self.mixed[position]


class Torchdata:
    """Resumes by a state only, which it saves; without one it replays."""

    def __init__(self, options):
        import torchdata.nodes as nodes

        weights = {str(i): float(w) for i, w in enumerate(weights_of(options))}
        sources = {str(i): nodes.IterableWrapper(range(size)) for i, size in enumerate(sizes_of(options))}
        self.node = nodes.MultiNodeWeightedSampler(sources, weights, stop_criteria="CYCLE_FOREVER", seed=7)
        self.node.reset()

    def seek(self, position):
        for _ in range(position):
            next(self.node)
        return next(self.node)

    def read(self, count):
        for _ in range(count):
            next(self.node)


class MosaicML:
    """One epoch of all positions, from sources of a thousandth of their sizes, which it repeats. It also reads the records."""

    @staticmethod
    def prepare(options):
        import streaming

        for i, size in enumerate(sizes_of(options)):
            with streaming.MDSWriter(out=f"{options.directory}/{i}", columns={"x": "int"}) as writer:
                for record in range(size // 1000):
                    writer.write({"x": record})

    def __init__(self, options):
        import streaming

        streams = [
            streaming.Stream(local=f"{options.directory}/{i}", proportion=weight) for i, weight in enumerate(weights_of(options))
        ]
        streaming.base.util.clean_stale_shared_memory()
        self.dataset = streaming.StreamingDataset(
            streams=streams, epoch_size=options.positions, shuffle=True, shuffle_seed=7, batch_size=BATCH
        )

    def seek(self, position):
        state = {"epoch": 0, "sample_in_epoch": position, "num_canonical_nodes": 1, "shuffle_seed": 7}
        self.dataset.load_state_dict(state)
        self.records = iter(self.dataset)
        return next(self.records)

    def read(self, count):
        for _ in range(count):
            next(self.records)


# The package, the class, the positions that it is measured with, and the places that are read.
WAYS = {
    "shufd.local.Mixture": ("shufd", Shufd, None, 1 << 24),
    "Megatron's blending index": ("helpers_cpp", Megatron, None, 1 << 24),
    "grain.MapDataset.mix": ("grain", Grain, None, 1 << 14),
    "torchdata MultiNodeWeightedSampler": ("torchdata", Torchdata, 2_000_000, 1 << 14),
    "MosaicML StreamingDataset": ("streaming", MosaicML, 100_000_000, 1 << 14),
}


def measure(name, options):
    _, make, positions, count = WAYS[name]
    if positions is not None:
        options.positions = min(options.positions, positions)
    before, begin = private_bytes(), time.perf_counter()
    way = make(options)
    way.seek(0)
    first = time.perf_counter() - begin
    way = None
    begin = time.perf_counter()
    way = make(options)
    way.seek(options.positions // 2)
    resume = time.perf_counter() - begin
    begin = time.perf_counter()
    way.read(count)
    rate = count / (time.perf_counter() - begin)
    return {"positions": options.positions, "first_s": first, "resume_s": resume, "places_a_second": rate,
            "private_bytes": private_bytes() - before}  # fmt: skip


def show(name, options):
    package, make, *_ = WAYS[name]
    if not importlib.util.find_spec(package):
        print(f"{name:36}{'not installed':>14}")
        return
    if hasattr(make, "prepare"):
        make.prepare(options)
    command = [sys.executable, __file__, *sys.argv[1:], "--way", name, "--directory", options.directory]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name:36}failed: {done.stderr.strip().splitlines()[-1]}")
        return
    row = json.loads(done.stdout.splitlines()[-1])
    print(f"{name:36}{row['positions']:>14,}{row['first_s'] * 1e3:>9.2f} ms{row['resume_s'] * 1e3:>9.2f} ms"
          f"{row['places_a_second'] / 1e6:>10.3f} M{row['private_bytes'] / 2**20:>8.1f} MiB", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = lambda text: int(float(text))  # noqa: E731
    parser.add_argument("--positions", type=number, default=10**9)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options)))
        return
    print(f"{options.sources} sources, {options.positions:,} positions\n")
    print(f"{'':36}{'positions':>14}{'first':>12}{'resume':>12}{'places/s':>12}{'private':>12}")
    with tempfile.TemporaryDirectory() as options.directory:
        for name in WAYS:
            show(name, options)


if __name__ == "__main__":
    main()
