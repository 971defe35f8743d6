#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The samplers to compare. Each yields the indices of one rank in an epoch of [0, n).

    peers.py PEER N RANK WORLD SECONDS    # one rank of samplers.py

A peer is a class with the methods of Peer. If it lacks a method, the report has no figure for it. The rank reads the
names of measurements from its standard input, and replies to each with a figure, or null if the peer does not have that
figure.
"""

import importlib.metadata
import itertools
import json
import sys
import time

BATCH = 1024
SEED = 7


class Numbers:
    """A dataset whose samples are their indices. It returns a batch in one call."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i

    def __getitems__(self, indices):
        return indices


class Peer:
    """The methods of all peers. `position` counts the indices of this rank."""

    packages = ()

    def __init__(self, n, rank, world):
        self.n, self.rank, self.world = n, rank, world

    def versions(self):
        return " ".join(f"{name} {importlib.metadata.version(name)}" for name in self.packages)

    def start(self, epoch):
        """An iterator over the indices."""
        raise NotImplementedError

    def resume(self, epoch, position):
        """An iterator over the indices from a position on."""
        return itertools.islice(self.start(epoch), position, None)


class Shufd(Peer):
    """shufd.torch.DistributedSampler"""

    packages = ("torch",)
    order = {}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import torch

        import shufd.torch

        self.torch, self.samplers = torch, shufd.torch

    def versions(self):
        import shufd

        return f"shufd {shufd.__version__} {super().versions()}"

    def sampler(self, epoch):
        sampler = self.samplers.DistributedSampler(Numbers(self.n), self.world, self.rank, seed=SEED, **self.order)
        sampler.set_epoch(epoch)
        return sampler

    def start(self, epoch):
        return iter(self.sampler(epoch))

    def resume(self, epoch, position):
        sampler = self.sampler(epoch)
        sampler.load_state_dict({**sampler.state_dict(), "position": position * self.world})
        return iter(sampler)

    def batches(self, epoch):
        return iter(self.samplers.BatchSampler(self.sampler(epoch), BATCH, False, as_arrays=True))

    def loader(self, epoch, workers):
        return self.torch.utils.data.DataLoader(
            Numbers(self.n), BATCH, sampler=self.sampler(epoch), num_workers=workers,
            collate_fn=self.torch.as_tensor,
        )  # fmt: skip

    def array_loader(self, epoch, workers):
        """Batches as arrays; only shufd's BatchSampler has them."""
        return self.torch.utils.data.DataLoader(
            Numbers(self.n), num_workers=workers, collate_fn=self.torch.as_tensor,
            batch_sampler=self.samplers.BatchSampler(self.sampler(epoch), BATCH, False, as_arrays=True),
        )  # fmt: skip


class ShufdWindowed(Shufd):
    """The same, in windows of 64 chunks of 1000 samples."""

    order = {"chunk": 1000, "window": 64}


class Torch(Peer):
    """torch.utils.data.DistributedSampler"""

    packages = ("torch",)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import torch
        import torch.utils.data.distributed

        self.data = torch.utils.data
        self.kind, self.loader_kind, self.collate = self.data.DistributedSampler, self.data.DataLoader, torch.as_tensor

    def sampler(self, epoch):
        sampler = self.kind(Numbers(self.n), self.world, self.rank, seed=SEED)
        sampler.set_epoch(epoch)
        return sampler

    def start(self, epoch):
        return iter(self.sampler(epoch))

    def batches(self, epoch):
        return iter(self.data.BatchSampler(self.sampler(epoch), BATCH, False))

    def loader(self, epoch, workers):
        return self.loader_kind(
            Numbers(self.n), BATCH, sampler=self.sampler(epoch), num_workers=workers, collate_fn=self.collate
        )


class Torchdata(Torch):
    """torchdata's StatefulDistributedSampler and StatefulDataLoader"""

    packages = ("torch", "torchdata")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        from torchdata.stateful_dataloader import StatefulDataLoader, sampler

        self.kind, self.loader_kind = sampler.StatefulDistributedSampler, StatefulDataLoader

    def resume(self, epoch, position):
        sampler = self.sampler(epoch)
        sampler.load_state_dict({"yielded": position})
        return iter(sampler)


class Grain(Peer):
    """grain.samplers.IndexSampler and grain.DataLoader"""

    packages = ("grain",)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import grain
        from absl import flags

        flags.FLAGS.mark_as_parsed()
        self.grain = grain

    def sampler(self):
        shards = self.grain.sharding.ShardOptions(self.rank, self.world)
        return self.grain.samplers.IndexSampler(self.n, shards, True, None, SEED)

    def start(self, epoch):
        return self.resume(epoch, 0)

    def resume(self, epoch, position):
        sampler = self.sampler()
        first = epoch * self.n + position * self.world + self.rank
        return (sampler[i].record_key for i in itertools.count(first, self.world))

    def loader(self, epoch, workers):
        return self.grain.DataLoader(
            data_source=range(self.n), sampler=self.sampler(), worker_count=workers,
            operations=[self.grain.transforms.Batch(BATCH)],
        )  # fmt: skip


class ShufdGrain(Grain):
    """shufd.jax.IndexSampler in grain.DataLoader"""

    def sampler(self):
        import shufd.jax

        shards = self.grain.sharding.ShardOptions(self.rank, self.world)
        return shufd.jax.IndexSampler(self.n, shards, True, None, SEED)


class Mosaic(Peer):
    """The shuffle of a whole epoch by MosaicML Streaming, in shards of 16 384 samples. One process of a
    node computes it, at the beginning and at each resumption."""

    packages = ("mosaicml-streaming",)
    one_rank = True
    algorithm = ""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        import numpy as np
        from streaming.base.shuffle import get_shuffle

        self.shuffle = get_shuffle
        self.shards = np.full(-(-self.n // 16_384), 16_384, np.int64)
        self.shards[-1] -= self.shards.sum() - self.n

    def start(self, epoch):
        return iter(self.shuffle(self.algorithm, self.shards, 1, SEED, epoch))


class MosaicPy1e(Mosaic):
    algorithm = "py1e"


class MosaicPy1br(Mosaic):
    algorithm = "py1br"


class MosaicNaive(Mosaic):
    algorithm = "naive"


PEERS = {
    "shufd": Shufd, "shufd-windowed": ShufdWindowed, "torch": Torch, "torchdata": Torchdata, "grain": Grain, "shufd-grain": ShufdGrain,
    "mosaicml-py1e": MosaicPy1e, "mosaicml-py1br": MosaicPy1br, "mosaicml-naive": MosaicNaive,
}  # fmt: skip


# ---- Measurements of a rank ----------------------------------------------------------------------


class Timer:
    """Wall and CPU time of the rates. A rate takes `seconds`, in as many epochs as it needs."""

    def __init__(self, seconds):
        self.seconds, self.wall, self.cpu = seconds, 0.0, 0.0

    def start(self):
        self.began = time.perf_counter(), time.process_time()

    def stop(self):
        self.wall += time.perf_counter() - self.began[0]
        self.cpu += time.process_time() - self.began[1]

    def is_over(self):
        return self.wall + time.perf_counter() - self.began[0] > self.seconds

    def rates(self, count):
        """`count` per second of wall time, and per second of CPU time of this process."""
        return count / self.wall, count / self.cpu


def rate(make, size, seconds):
    """Items a second, without the first item of each epoch. An item has `size` indices. The end of an
    epoch counts, such as that of a DataLoader's workers."""
    timer, done = Timer(seconds), 0
    while timer.wall < seconds:
        iterator = iter(make())
        next(iterator)
        timer.start()
        for number, _ in enumerate(iterator):
            done += size
            if number % 8 == 0 and timer.is_over():
                break
        del iterator
        timer.stop()
    return timer.rates(done)


def one_at_a_time(make, count, seconds):
    """Indices a second in a Python loop, in blocks of at most 65 536 indices of epochs of `count`."""
    timer, done = Timer(seconds), 0
    block = min(65_536, count // 2)
    while timer.wall < seconds:
        iterator = make()
        next(iterator)
        timer.start()
        for _ in range((count - 1) // block):
            for _ in itertools.islice(iterator, block):
                pass
            done += block
            if timer.is_over():
                break
        timer.stop()
    return timer.rates(done)


def latency(make):
    """Seconds until the first index."""
    start = time.perf_counter()
    next(make())
    return time.perf_counter() - start, None


class Rank:
    """The measurements of one peer: each returns the figure by wall time, and by CPU time or None. In
    `new`, this rank has not started the epoch before; in `again` it has."""

    def __init__(self, peer, seconds):
        self.peer, self.seconds = peer, seconds
        self.half = peer.n // peer.world // 2

    def new(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def again(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def resume(self, epoch):
        return latency(lambda: self.peer.resume(epoch, self.half))

    def single(self, epoch):
        return one_at_a_time(lambda: self.peer.start(epoch), self.peer.n // self.peer.world, self.seconds)

    def rate(self, make, *arguments):
        return rate(lambda: make(*arguments), BATCH, self.seconds)

    def batches(self, epoch):
        return self.rate(self.peer.batches, epoch)

    def loader0(self, epoch):
        return self.rate(self.peer.loader, epoch, 0)

    def loader2(self, epoch):
        return self.rate(self.peer.loader, epoch, 2)

    def array_loader0(self, epoch):
        return self.rate(self.peer.array_loader, epoch, 0)

    def array_loader2(self, epoch):
        return self.rate(self.peer.array_loader, epoch, 2)


def reply(rank, name, epoch):
    try:
        value, cpu = getattr(rank, name)(epoch)
        return {"value": value, "cpu": cpu}
    except AttributeError as error:
        return {"value": None, "error": str(error)}
    except (MemoryError, RuntimeError) as error:
        return {"value": None, "error": f"{type(error).__name__}: {error}"[:200]}


def main():
    n, rank, world = map(int, sys.argv[2:5])
    peer = PEERS[sys.argv[1]](n, rank, world)
    measured = Rank(peer, float(sys.argv[5]))
    print(json.dumps({"ready": peer.versions()}), flush=True)
    for line in sys.stdin:
        name, epoch = line.split()
        print(json.dumps(reply(measured, name, int(epoch))), flush=True)


if __name__ == "__main__":
    main()
