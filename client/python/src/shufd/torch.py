# SPDX-License-Identifier: MIT
"""Samplers for PyTorch, and global_shuffle(), which shuffles the records of all ranks together. The
signatures and lengths of the samplers are those of torch's samplers, the permutations those of shufd.

    sampler = shufd.torch.DistributedSampler(dataset, seed=7)
    loader = torch.utils.data.DataLoader(dataset, batch_size=256, sampler=sampler, num_workers=8)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for batch in loader: ...

The processes of a machine share the permutation of an epoch in the memory of the daemon. A sampler
converts its indices chunk by chunk, and the daemon computes the next epoch meanwhile.

To resume in the middle of an epoch, with any number of ranks, a job saves

    state = sampler.state_dict(used=steps * batch_size)

and a later one calls `sampler.load_state_dict(state)`. `used` are the indices that this rank has used: the
workers of a DataLoader draw indices before. After a resume, `steps` counts from 0 again. torchdata's
StatefulDataLoader calls both methods itself.
"""

from __future__ import annotations

import operator
from typing import Any, Iterator, Sized

import numpy as np
import torch.utils.data

from . import _client, _connect_rank, _errors, _sampling, default_client
from ._arguments import flag, seed64, shown, u64
from ._global_shuffle import global_shuffle
from ._names import advise_arguments, dir_of
from ._ranks import launched_ranks, rank_and_world
from ._sampling import Cursor, Epoch, Indices, Read, Share
from ._shuf import ffi, lib
from .random import BitGenerator

__all__ = ["BatchSampler", "DistributedSampler", "RandomSampler", "global_shuffle"]
__dir__ = dir_of(__all__)


class DistributedSampler(_sampling.Resumable, torch.utils.data.distributed.DistributedSampler):
    """The indices of one rank, as torch.utils.data.DistributedSampler selects them, from the
    permutation that shufd computes for `seed` and the epoch.

    dataset        its length is n
    num_replicas, rank
                   by default those of torch.distributed, else those in the variables of torchrun
                   ($WORLD_SIZE and $RANK), Slurm or Open MPI, else 1 and 0
    shuffle        False: the indices in order
    seed           -2^63 to 2^64 - 1; a negative one as in torch; independent of the epoch, which set_epoch() sets
    drop_last      True: n // num_replicas indices; else ceil(n / num_replicas), padded by the first
                   indices of the epoch
    client         by default shufd.connect(), or with a single rank shufd.default_client()
    algorithm      as in Client.permute()

    Without set_epoch(), each iteration repeats the epoch. `len()` is the length of a whole epoch, even
    if an iteration continues in the middle; `remaining` counts from the middle. If a permutation does
    not fit the daemon's memory, the sampler computes its indices in this process. Errors: Invalid for a
    wrong argument, at once; those of Client.permute() with the first index. The next iteration then
    begins at the same place.
    """

    @advise_arguments
    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        client: _client.Client | None = None,
        algorithm: str = "primefold",
    ) -> None:
        own, world = rank_and_world(rank, num_replicas)
        _sampling.check(dataset, seed, algorithm, client)
        _sampling.Resumable.__init__(self)
        torch.utils.data.distributed.DistributedSampler.__init__(
            self, dataset, world, own, flag("shuffle", shuffle), seed64(seed), flag("drop_last", drop_last)
        )
        self.algorithm = algorithm
        self._client = client

    def set_epoch(self, epoch: int) -> None:
        """Selects the permutation of the next iteration. The epoch of a loaded state continues at its
        place, any other begins at its beginning."""
        epoch = u64("epoch", epoch)
        if epoch != self._epoch:
            self._move(epoch, 0)

    def _share(self, start: int) -> Share:
        return Share(len(self.dataset), self.rank, self.num_replicas, self.drop_last, start)

    def _order(self, epoch: int) -> Epoch:
        return Epoch(len(self.dataset), self.seed, epoch, self.algorithm, self.shuffle)

    def _cursor_from(self, start: int) -> Cursor:
        order, share = self._order(self._epoch), self._share(start)
        if len(share) == 0:
            return Cursor(share, _sampling.nothing)
        if self._client is None:
            self._client = _connect_rank(self.num_replicas) if self.num_replicas > 1 else default_client()
        cursor = Cursor(share, _sampling.order_of(self._client, order))
        _sampling.prefetch(self._client, self._order(_sampling.next_epoch(self._epoch)))
        return cursor

    def _description(self) -> dict[str, Any]:
        return _sampling.state_of(self._order(self._epoch))

    def __iter__(self) -> Iterator[int]:
        return _sampling.Resumable.__iter__(self)

    def __repr__(self) -> str:
        return (
            f"shufd.torch.DistributedSampler(n={len(self.dataset)}, rank={self.rank}, "
            f"num_replicas={self.num_replicas}, shuffle={self.shuffle}, seed={self.seed}, epoch={self.epoch}, "
            f"drop_last={self.drop_last})"
        )


class RandomSampler(_sampling.Resumable, torch.utils.data.RandomSampler):
    """Indices in random order, as torch.utils.data.RandomSampler draws them: another permutation for
    each iteration.

    data_source    its length is n
    replacement    True: independent draws, computed in this process
    num_samples    by default n; without replacement, more than n indices come from further permutations
    generator      a torch.Generator; the constructor draws `seed` from it, which advances it
    seed           -2^63 to 2^64 - 1; a negative one as in torch. Without it and `generator`, the
                   constructor draws it from torch's default generator, so torch.manual_seed() decides
                   it. In a job of several ranks, where each would draw another one, this is refused
    client, algorithm
                   as in DistributedSampler

    `epoch` counts the iterations; set_epoch() sets it.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
        *,
        seed: int | None = None,
        client: _client.Client | None = None,
        algorithm: str = "primefold",
    ) -> None:
        _sampling.check(data_source, 0 if seed is None else seed, algorithm, client)
        _sampling.Resumable.__init__(self)
        if generator is not None and not isinstance(generator, torch.Generator):
            raise _errors.Invalid(f"generator: {shown(generator)}: expected a torch.Generator, or a seed instead")
        torch.utils.data.RandomSampler.__init__(self, data_source, replacement, num_samples, generator)
        if seed is None:
            seed = _drawn_seed(generator)
        self.seed = seed64(seed)
        self.algorithm = algorithm
        self._client = client
        self._began = False  # an iteration of this epoch

    def set_epoch(self, epoch: int) -> None:
        """Selects the order of the next iteration."""
        epoch = u64("epoch", epoch)
        if epoch != self._epoch or self._began:
            self._move(epoch, self._resume if epoch == self._epoch else 0)

    def _move(self, epoch: int, position: int) -> None:
        super()._move(epoch, position)
        self._began = False

    def _cursor_from(self, start: int) -> Cursor:
        epoch = self._epoch
        if self._began or start >= self.num_samples:
            epoch, start = _sampling.next_epoch(epoch), 0
        read = self._draws if self.replacement else self._passes(epoch, start)
        self._epoch, self._began = epoch, True
        return Cursor(self._share(start), read)

    def _end_iteration(self) -> None:
        """The next iteration begins the next epoch by itself."""

    def _share(self, start: int) -> Share:
        return Share(self.num_samples, 0, 1, False, start)

    def _draws(self, first: int, count: int, stride: int) -> Indices:
        """Independent draws: value number i of the stream that the epoch selects decides index i."""
        bits = BitGenerator(self.seed, self._epoch, first).random_raw(count)
        out = np.empty(count, np.uint64)
        lib.shufpy_scale(
            ffi.from_buffer("uint64_t[]", bits), count, len(self.data_source),
            ffi.from_buffer("uint64_t[]", out),
        )  # fmt: skip
        return out

    def _passes(self, epoch: int, start: int) -> Read:
        """Permutations one after the other, from that of the position `start` on. Each has an epoch of its
        own."""
        n = len(self.data_source)
        passes = -(-self.num_samples // n)
        client = self._client = self._client or default_client()
        current: list[Any] = [None, None]

        def order(number: int) -> Epoch:
            return Epoch(n, self.seed, (epoch * passes + number) % 2**64, self.algorithm)

        def turn_to(number: int) -> None:
            current[:] = number, _sampling.order_of(client, order(number))
            _sampling.prefetch(client, order(number + 1))

        def read(first: int, count: int, stride: int) -> Indices:
            number, begin = divmod(first, n)
            if current[0] != number:
                turn_to(number)
            here = min(count, n - begin)
            part: Indices = current[1](begin, here, 1)
            return part if here == count else np.concatenate([part, read(first + here, count - here, 1)])

        turn_to(start // n)
        return read

    def _description(self) -> dict[str, Any]:
        order = Epoch(len(self.data_source), self.seed, self._epoch, self.algorithm)
        return _sampling.state_of(order, num_samples=self.num_samples, replacement=self.replacement)

    def __iter__(self) -> Iterator[int]:
        return _sampling.Resumable.__iter__(self)

    def __repr__(self) -> str:
        return (
            f"shufd.torch.RandomSampler(n={len(self.data_source)}, num_samples={self.num_samples}, "
            f"replacement={self.replacement}, seed={self.seed}, epoch={self.epoch})"
        )


def _drawn_seed(generator: torch.Generator | None) -> int:
    """A seed from the generator, by default torch's own, drawn as torch's RandomSampler draws its own."""
    ranks = launched_ranks()
    if generator is None and ranks > 1:
        raise _errors.Invalid(
            f"seed: None in a job of {ranks} ranks: each would draw another order; expected one seed= for all "
            "ranks, or a DistributedSampler"
        )
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


class BatchSampler(torch.utils.data.BatchSampler):
    """Batches of a sampler of this module, as torch.utils.data.BatchSampler makes them. With another sampler,
    as frameworks put in, the new object is a torch.utils.data.BatchSampler.

    sampler        a DistributedSampler or RandomSampler of this module, or any sampler
    batch_size     indices of a batch, at least 1
    drop_last      True: leaves out a last batch that is smaller
    as_arrays      True: batches are int64 arrays; else lists of integers

    `state_dict()`, `load_state_dict()`, `set_epoch()` and `epoch` are those of the sampler. `remaining`
    counts batches.
    """

    def __new__(cls, sampler: Any = None, *rest: Any, as_arrays: bool = False, **more: Any) -> Any:
        if sampler is None or isinstance(sampler, _sampling.Resumable):  # None: a copy, which gets its fields later
            return super().__new__(cls)
        if as_arrays:
            raise _errors.Invalid(f"as_arrays: True with the sampler {shown(sampler)}: expected one of shufd.torch")
        return torch.utils.data.BatchSampler(sampler, *rest, **more)

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool, *, as_arrays: bool = False) -> None:
        super().__init__(sampler, batch_size, drop_last)
        self.as_arrays = as_arrays

    def _batches(self) -> Iterator[tuple[Any]]:
        cursor = self.sampler._begin()
        least = self.batch_size if self.drop_last else 1
        while len(batch := cursor.take(self.batch_size)) >= least:
            yield (batch.astype(np.int64) if self.as_arrays else batch.tolist(),)

    def __iter__(self) -> Iterator[Any]:
        return _sampling.Iteration.of(self.sampler, self._batches)

    def set_epoch(self, epoch: int) -> None:
        """As the method of the sampler."""
        self.sampler.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """As the property of the sampler: the epoch to continue with."""
        return int(self.sampler.epoch)

    @property
    def remaining(self) -> int:
        """The number of batches that are left in the epoch, from the place of a loaded state on."""
        rest, size = int(self.sampler.remaining), int(self.batch_size)
        return rest // size if self.drop_last else -(-rest // size)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """As the method of the sampler; `used` counts indices, not batches."""
        state: dict[str, Any] = self.sampler.state_dict(used)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the method of the sampler."""
        self.sampler.load_state_dict(state_dict)

    def __repr__(self) -> str:
        return f"shufd.torch.BatchSampler({self.sampler!r}, batch_size={self.batch_size}, drop_last={self.drop_last})"
