# SPDX-License-Identifier: MIT
"""The samplers to compare. Each yields the indices of one rank in an epoch of [0, n).

A peer is a class with the methods of Peer. If it lacks a method, the report has no figure for it.
"""

import importlib.metadata
import itertools

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
