# SPDX-License-Identifier: MIT
"""Samplers for PyTorch; random numbers, permutations and shuffles as tensors; and global_shuffle(), which shuffles the
records of all ranks together.

    randperm, shuffle, index       permutations in this process, with the same bits on the CPU and any GPU
    normal_, uniform_, exponential_, bits_, integers_
                                   random numbers, likewise
    Generator                      a place in a random stream, for many of these
    DistributedSampler, RandomSampler, BatchSampler
                                   indices of a DataLoader, in the order that all processes of a machine share
    WeightedRandomSampler          indices of a DataLoader, drawn by weights
    WeightTable, weighted_sample   draws by weights as tensors, with and without replacement
    MixtureDataset                 several data sets, mixed by weights
    global_shuffle                 moves the rows of all ranks

The signatures and lengths of the samplers are those of torch's samplers, the permutations those of shufd.

    sampler = shufd.torch.DistributedSampler(dataset, seed=7)
    loader = torch.utils.data.DataLoader(dataset, batch_size=256, sampler=sampler, num_workers=8)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for batch in loader: ...

A sampler computes its indices in this process, some thousand at a time, and needs no daemon.

To resume in the middle of an epoch, with any number of ranks, a job saves

    state = sampler.state_dict(used=steps * batch_size)

and a later one calls `sampler.load_state_dict(state)`. `used` are the indices that this rank has used: the
workers of a DataLoader draw indices before. After load_state_dict(), `steps` counts from 0 again. torchdata's
StatefulDataLoader calls both methods itself.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import itertools
import operator
import warnings
from typing import Any, Iterator, Sequence, Sized, cast

import numpy as np
import torch.utils.data

from . import _client, _connect_rank, _frameworks, _orders, _ranks, _sampling, default_client
from ._arguments import counted, flag, integer, optional, seed_of, shown
from ._permutation import chunk_of, windows_shown
from ._errors import Invalid
from ._global_shuffle import global_shuffle
from ._mixture import Mixture, Places
from ._names import advise_arguments, dir_of
from ._order import Order
from ._orders import Cursor, Epoch, Indices, Read, Share
from ._ranks import group_of_torch, in_worker, launched_ranks, rank_and_world
from ._shuf import ffi, lib
from ._torch_generator import Generator
from ._torch_random import (
    WeightTable, bits_, exponential_, index, integers_, normal_, randperm, shuffle, uniform_, weighted_sample,
)  # fmt: skip
from ._weighted import Weighted
from .random import ReplacementGenerator

__all__ = [
    "BatchSampler", "DistributedSampler", "Generator", "MixtureDataset", "RandomSampler", "WeightTable",
    "WeightedRandomSampler", "bits_", "exponential_", "global_shuffle", "index", "integers_", "normal_", "randperm",
    "shuffle", "uniform_", "weighted_sample",
]  # fmt: skip
__dir__ = dir_of(__all__)


# ---- Samplers ------------------------------------------------------------------------------------


class DistributedSampler(_sampling.Resumable, torch.utils.data.distributed.DistributedSampler):
    """The indices of one rank, as torch.utils.data.DistributedSampler selects them, from the
    permutation that shufd computes for `seed` and the epoch.

    dataset        its length is n. set_epoch(), or else iter(), takes it for the whole epoch
    num_replicas, rank
                   by default those of torch.distributed, else those in the variables of torchrun
                   ($WORLD_SIZE and $RANK), Slurm or Open MPI, else 1 and 0
    shuffle        False: the indices in order
    seed           -2^63 to 2^64 - 1; independent of the epoch, which set_epoch() sets. A negative seed selects
                   the same as seed + 2^64
    drop_last      True: n // num_replicas indices; else ceil(n / num_replicas), padded by the first
                   indices of the epoch
    client         for philox24 and lcg: by default shufd.connect(), or with a single rank shufd.default_client()
    algorithm      as in Client.permute(). With philox24 and lcg, orders of different n are not independent
    chunk, window  a windowed order, as in Client.permute(), for data in chunks; for chunks of unequal sizes, `chunk` is
                   their list, as in shufd.local.Permutation. A state names the list by its fingerprint, and a sampler
                   with another list refuses it. All ranks read from the same window
    order          an order of shufd.local in the place of `shuffle`, `seed`, `client`, `algorithm`, `chunk` and `window`,
                   such as Permutation(n, seed).subset(mask). The length of the dataset is its n, and the epoch begins as its
                   epoch; set_epoch() selects that of order.with_epoch(). The indices of an epoch are len(order). A state of
                   another order is refused
    check_ranks    True: the first iteration fails with Mismatch if another rank has other data, another seed or
                   another epoch. It asks the store of torch.distributed once, without waiting for a rank. Only if
                   torch.distributed is initialised with `num_replicas` ranks, and not where a worker reads the
                   sampler, as of an IterableDataset: call shufd.verify() there, before the loader

    Without set_epoch(), each iteration repeats the epoch. `len()` is the length of a whole epoch, even
    if an iteration continues in the middle; `remaining` counts from the middle. The sampler computes its
    indices in this process, some thousand at a time; philox24 and lcg need a daemon. Errors: Invalid for a
    wrong argument, at once, and with the first index if accelerate would divide the indices again; those of
    Client.permute() with the first index. The next iteration then begins at the same place.
    """

    _OTHERWISE = "use shufd.torch.RandomSampler(dataset, seed=...)"

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
        chunk: Any = None,
        window: int | None = None,
        order: Order | None = None,
        check_ranks: bool = True,
    ) -> None:
        self.rank, self.num_replicas = rank_and_world(rank, num_replicas)
        self._is_of_launcher, self._later = rank is None and num_replicas is None, 0
        self.chunk = chunk_of(chunk)
        _sampling.check(dataset, seed, algorithm, client, self.chunk, window)
        _sampling.Resumable.__init__(self, dataset)
        self.shuffle, self.drop_last = flag("shuffle", shuffle), flag("drop_last", drop_last)
        self.seed, self.algorithm = seed_of(seed), str(algorithm)
        self.window = optional("window", window)
        self._client, self._given = client, order
        if order is not None:
            self._check_order(order, 0)
            self.seed, self._epoch = order.seed, order.epoch
        self._rank_check = _ranks.RankCheck(flag("check_ranks", check_ranks))
        self._is_divided = False  # a loader of accelerate has copied it into its workers

    @property
    def order(self) -> Order | None:
        """The order that was given, or None."""
        return self._given

    def _check_order(self, order: Order, seed: int) -> None:
        _orders.check(
            order, shuffle=(self.shuffle, True), seed=(self.seed, seed), client=(self._client, None),
            algorithm=(self.algorithm, "primefold"), chunk=(self.chunk, None), window=(self.window, None),
        )  # fmt: skip
        _orders.check_length("dataset", self.n, order)
        if isinstance(order, Mixture) and isinstance(self.dataset, MixtureDataset):
            raise Invalid(
                "order: a Mixture: expected none with a MixtureDataset, which has its order: pass shuffle=False, or a "
                "ConcatDataset of the sources"
            )

    def set_epoch(self, epoch: int) -> None:
        if self.order is not None:
            self.order.with_epoch(epoch)  # checks it
        super().set_epoch(epoch)

    def __getstate__(self) -> dict[str, Any]:
        own = {"_is_divided": self._is_divided or _frameworks.divides_again(), "_later": self._ranks_of_later()}
        return {**_sampling.Resumable.__getstate__(self), **own}

    def _ranks_of_later(self) -> int:
        """The number of ranks, if this sampler was made before torch.distributed had them, else 0. A copy in a worker that
        was not forked knows it from its state, because torch.distributed has no ranks there."""
        is_known = group_of_torch() is not None or launched_ranks() > 1
        if self._is_of_launcher and is_known and rank_and_world() != (self.rank, self.num_replicas):
            return rank_and_world()[1]
        return self._later

    @property
    def dataset(self) -> Sized:
        return self._data

    @dataset.setter
    def dataset(self, dataset: Sized) -> None:
        self._data = dataset

    @property
    def num_samples(self) -> int:
        """The number of indices of a whole epoch on this rank."""
        return len(self._share(0))

    @property
    def total_size(self) -> int:
        """The number of indices of a whole epoch on all ranks."""
        return self.num_samples * self.num_replicas

    def __len__(self) -> int:
        return self.num_samples

    def _share(self, start: int) -> Share:
        length = self.n if self.order is None else len(self.order)
        return Share(length, self.rank, self.num_replicas, self.drop_last, start)

    def _order(self, epoch: int) -> Epoch:
        return Epoch(self.n, self.seed, epoch, self.algorithm, self.shuffle, self.chunk, self.window)

    def _following(self) -> int:
        return (self._epoch + self._is_counted) % 2**64

    def _cursor_from(self, start: int) -> Cursor:
        share = self._share(start)
        if ranks := self._ranks_of_later():
            raise Invalid(
                f"rank {self.rank}, num_replicas {self.num_replicas}, taken before torch.distributed had its "
                f"{counted(ranks, 'rank')}: make the sampler after torch.distributed.init_process_group(), or pass "
                "num_replicas and rank"
            )
        if self._is_divided or _frameworks.divides_again():
            raise Invalid(
                f"sampler: shufd.torch.{type(self).__name__}: accelerate would divide it a second time; {self._OTHERWISE}"
            )
        # Without set_epoch(), a rank may have iterated more often.
        self._rank_check.run(self, self.num_replicas, again=not self._is_set and self._following() != self._epoch)
        return Cursor(share, self._read(self._epoch) if len(share) else _orders.nothing)

    def _read(self, epoch: int) -> Read:
        """Reads the order of an epoch."""
        if self.order is not None:
            self._check_order(self.order, self.order.seed)
            return _orders.order_of(self._connect, self.order.with_epoch(epoch))
        read = _orders.order_of(self._connect, self._order(epoch))
        _orders.prefetch(self._connect, self._order(epoch + 1))
        return read

    def _connect(self) -> _client.Client:
        if self._client is None:
            self._client = _connect_rank(self.num_replicas) if self.num_replicas > 1 else default_client()
        return self._client

    def _description(self) -> dict[str, Any]:
        if self.order is None:
            return _sampling.state_of(self._order(self._epoch))
        return {**_sampling.state_of(self.order), "epoch": self._epoch}

    def __iter__(self) -> Iterator[int]:
        return _sampling.Resumable.__iter__(self)

    def __repr__(self) -> str:
        windows = windows_shown(self.chunk, self.window)
        order = f"shuffle={self.shuffle}, seed={self.seed}{windows}" if self.order is None else f"order={self.order!r}"
        return (
            f"shufd.torch.DistributedSampler(n={self.n}, rank={self.rank}, "
            f"num_replicas={self.num_replicas}, {order}, epoch={self.epoch}, drop_last={self.drop_last})"
        )


class WeightedRandomSampler(DistributedSampler):
    """Indices that are drawn by weights, as torch.utils.data.WeightedRandomSampler draws them, from more than 2^24 weights
    too, and divided between ranks as DistributedSampler divides positions. Each epoch has other draws.

    weights        as in shufd.local.Weighted; a tensor in host memory, too
    num_samples    the draws of an epoch on all ranks together. `num_samples` of the sampler, and len(), are those of this rank
    replacement    False: the draws of an epoch are different indices. Then each epoch begins with a computation of all of
                   them on each rank
    seed           as in DistributedSampler; the same on all ranks
    num_replicas, rank, check_ranks
                   as in DistributedSampler

    Iterations without set_epoch() go on to the next epoch. state_dict(), load_state_dict(), set_epoch() and errors are
    those of DistributedSampler.
    """

    _OTHERWISE = "do not prepare its loader"

    @advise_arguments
    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        *,
        seed: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        check_ranks: bool = True,
    ) -> None:
        draws = integer("num_samples", num_samples)
        try:
            order = Weighted(weights, seed, length=draws, replacement=replacement)
        except Invalid as error:
            raise Invalid(str(error).replace("length:", "num_samples:")) from None
        super().__init__(range(order.n), num_replicas, rank, order=order, check_ranks=check_ranks)
        self.replacement = order.replacement

    @property
    def weights(self) -> Any:
        return cast(Weighted, self.order).weights

    def _following(self) -> int:
        return (self._epoch + 1) % 2**64

    def __repr__(self) -> str:
        return (
            f"shufd.torch.WeightedRandomSampler(n={self.n}, num_samples={self._share(0).n}, "
            f"replacement={self.replacement}, rank={self.rank}, num_replicas={self.num_replicas}, seed={self.seed}, "
            f"epoch={self.epoch})"
        )


class RandomSampler(_sampling.Resumable, torch.utils.data.Sampler):
    """Indices in random order, as torch.utils.data.RandomSampler draws them: another permutation for
    each iteration. It is no subclass of that class, because other libraries replace its instances.

    data_source    its length is n. set_epoch(), or else iter(), takes it for the whole epoch
    replacement    True: independent draws, computed in this process. Two samplers with one seed and epoch and another n
                   draw indices in the same proportion to n
    num_samples    by default n; without replacement, more than n indices come from further permutations: epoch e of
                   k permutations has those of the epochs k e to k e + k - 1, modulo 2^64
    generator      a torch.Generator. Without `seed`, each iteration draws a seed from it, which advances it. After
                   set_epoch(), the sampler keeps its seed. accelerate sets the same generator on all ranks. A job that
                   resumes by counting steps, as the HF Trainer does, needs a seed
    seed           -2^63 to 2^64 - 1, as in DistributedSampler. Without a seed and a generator, the seeds come from
                   torch's default generator, so torch.manual_seed() decides them. set_epoch() keeps the
                   seed of an iteration before, or else takes torch.initial_seed(), so that two such samplers of one
                   length may have equal orders. In a job of several
                   ranks no seed is refused, because the ranks would draw different orders
    client, algorithm, chunk, window
                   as in DistributedSampler; no windows with `replacement`
    check_ranks    True: the same check as in DistributedSampler, where accelerate divides the indices between the ranks,
                   and in each iteration without set_epoch()

    The first index fails with Invalid where Lightning divides a sampler between devices.
    `epoch` counts the iterations; set_epoch() sets it. A state has the seed, so a sampler without a seed continues
    the order of a state.
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
        chunk: Any = None,
        window: int | None = None,
        check_ranks: bool = True,
    ) -> None:
        self.chunk = chunk_of(chunk)
        n = _sampling.check(data_source, 0 if seed is None else seed, algorithm, client, self.chunk, window)
        _sampling.Resumable.__init__(self, data_source)
        if generator is not None and not isinstance(generator, torch.Generator):
            instead = "seed=generator.seed" if isinstance(generator, Generator) else "a seed"
            raise Invalid(f"generator: {shown(generator)}: expected a torch.Generator, or {instead} instead")
        self.generator = generator
        self.replacement = flag("replacement", replacement)
        if self.replacement and window is not None:
            raise Invalid(f"window: {window}: expected None with replacement")
        self._num_samples = optional("num_samples", num_samples)
        if self.num_samples < 1 or n < 1:
            raise Invalid(f"num_samples: {self.num_samples}, of n {n}: expected 1 or more of both")
        self.seed = None if seed is None else seed_of(seed)
        self.algorithm = str(algorithm)
        self.window = optional("window", window)
        self._client = client
        self._rank_check = _ranks.RankCheck(flag("check_ranks", check_ranks))
        self._is_drawn = seed is None
        self._keeps_seed = not self._is_drawn
        if self._is_drawn:
            self._free = frozenset({"epoch", "seed"})

    @property
    def data_source(self) -> Sized:
        return self._data

    @data_source.setter
    def data_source(self, data_source: Sized) -> None:
        self._data = data_source

    @property
    def num_samples(self) -> int:
        """The number of indices of a whole epoch."""
        return self.n if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """As in DistributedSampler. From now on, the sampler keeps its seed, so that each epoch has one order."""
        seed = self.seed
        super().set_epoch(epoch)
        if not _frameworks.epoch_counter():
            self._keeps_seed, self.seed = True, seed

    def _load(self, state: dict[str, Any]) -> None:
        super()._load(state)
        if self._is_drawn and state["seed"] is not None:
            self.seed = seed_of(state["seed"])

    def _following(self) -> int:
        return (self._epoch + 1) % 2**64

    def _move(self, epoch: int, position: int) -> None:
        super()._move(epoch, position)
        if not self._keeps_seed:
            self.seed = None

    def _cursor_from(self, start: int) -> Cursor:
        self._choose_seed()
        framework, owner = _frameworks.divider()
        if framework == "DistributedSamplerWrapper":
            raise Invalid(
                "sampler: shufd.torch.RandomSampler: Lightning would draw the whole order at once, and may shuffle it "
                "again; use shufd.torch.DistributedSampler(dataset, seed=...)"
            )
        ranks = _frameworks.ranks_of(owner)
        if framework not in ("", "DataLoaderDispatcher"):
            self._rank_check.run(self, ranks, again=self._is_drawn or not self._is_set)  # this rank may have iterated more often
        share = self._share(start)
        if len(share) == 0:
            return Cursor(share, _orders.nothing)
        order = self._draws(self._order()) if self.replacement else self._passes(self._order(), start)
        return Cursor(share, order, ranks)

    def _choose_seed(self) -> None:
        if self.seed is None:
            self.seed = _draw_seed(self.generator, self._keeps_seed)

    def _share(self, start: int) -> Share:
        return Share(self.num_samples, 0, 1, False, start)

    def _order(self) -> Epoch:
        return Epoch(self.n, self.seed or 0, self._epoch, self.algorithm, True, self.chunk, self.window)

    def _draws(self, order: Epoch) -> Read:
        """Independent draws: number i of a stream of its own, which the epoch selects, decides index i."""

        def read(first: int, count: int, stride: int) -> Indices:
            bits = ReplacementGenerator(order.seed, order.epoch, first).random_raw(count)
            out = np.empty(count, np.uint64)
            lib.shufpy_scale(
                ffi.from_buffer("uint64_t[]", bits), count, order.n, ffi.from_buffer("uint64_t[]", out)
            )
            return out

        return read

    def _connect(self) -> _client.Client:
        self._client = self._client or default_client()
        return self._client

    def _passes(self, order: Epoch, start: int) -> Read:
        """Permutations one after the other, from that of the position `start` on. Each has an epoch of its
        own."""
        n, passes = order.n, -(-self.num_samples // order.n)
        is_last_known = self._keeps_seed  # else the next iteration draws another seed
        current: list[Any] = [None, None]

        def of(number: int) -> Epoch:
            return dataclasses.replace(order, epoch=(order.epoch * passes + number) % 2**64)

        def turn_to(number: int) -> None:
            current[:] = number, _orders.order_of(self._connect, of(number))
            if is_last_known or number + 1 < passes:
                _orders.prefetch(self._connect, of(number + 1))

        def read(first: int, count: int, stride: int) -> Indices:
            parts: list[Indices] = []
            end = first + count
            while first < end:
                number, begin = divmod(first, n)
                if current[0] != number:
                    turn_to(number)
                parts.append(current[1](begin, min(end - first, n - begin), 1))
                first += len(parts[-1])
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        turn_to(start // n)
        return read

    def _description(self) -> dict[str, Any]:
        state = _sampling.state_of(self._order(), num_samples=self.num_samples, replacement=self.replacement)
        return {**state, "seed": self.seed}

    def __iter__(self) -> Iterator[int]:
        return _sampling.Resumable.__iter__(self)

    def __repr__(self) -> str:
        return (
            f"shufd.torch.RandomSampler(n={self.n}, num_samples={self.num_samples}, "
            f"replacement={self.replacement}, seed={self.seed}, epoch={self.epoch}"
            f"{windows_shown(self.chunk, self.window)})"
        )


def _draw_seed(generator: Any, keeps: bool) -> int:
    """A seed from a generator, or else from torch's default generator, drawn as torch's RandomSampler draws its own. A
    seed that the sampler keeps is that of the default generator itself, which does not change with its draws."""
    if generator is None and in_worker():
        raise Invalid("seed: None: each worker of the DataLoader would draw another order; pass a seed=")
    if generator is None and (world := launched_ranks()) > 1:
        raise Invalid(
            f"seed: None: each of {world} ranks would draw another order; pass the same seed= on all ranks"
        )
    if keeps and generator is None:
        return int(torch.initial_seed()) % 2**64
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


# ---- Batches -------------------------------------------------------------------------------------


class BatchSampler(torch.utils.data.BatchSampler):
    """Batches of a sampler, as torch.utils.data.BatchSampler makes them.

    sampler        any sampler; those of this module resume, and give arrays without a list
    batch_size     indices of a batch, at least 1
    drop_last      True: leaves out a last batch that is smaller
    as_arrays      True: batches are int64 arrays; else lists of integers

    With a sampler of this module, `state_dict()`, `load_state_dict()`, `set_epoch()` and `epoch` are those of the
    sampler, and `remaining` counts batches; subclasses have them too. With another sampler, these do not exist. An
    iteration begins with its first batch, so a set_epoch() between iter() and that batch counts. Warns
    (RuntimeWarning) of torch's DistributedSampler, which Lightning puts here.
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool, *, as_arrays: bool = False) -> None:
        if not hasattr(sampler, "__iter__"):
            raise Invalid(f"sampler: {shown(sampler)}: expected a sampler, such as one of shufd.torch")
        super().__init__(sampler, batch_size, drop_last)
        self.as_arrays = as_arrays
        plain = type(self).__dict__.get("_plain", type(self))
        self.__class__ = _resumable(plain) if isinstance(sampler, _sampling.Resumable) else plain
        if type(sampler) is torch.utils.data.distributed.DistributedSampler:
            warnings.warn(
                "sampler: torch.utils.data.DistributedSampler: the batches have its order, not one of shufd; if Lightning "
                "has put it here, use Trainer(use_distributed_sampler=False) and a shufd.torch.DistributedSampler",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self.sampler)
        while batch := [*itertools.islice(indices, self.batch_size)]:
            if len(batch) == self.batch_size or not self.drop_last:
                yield np.array(batch, np.int64) if self.as_arrays else batch

    def __repr__(self) -> str:
        return f"shufd.torch.BatchSampler({self.sampler!r}, batch_size={self.batch_size}, drop_last={self.drop_last})"


class _ResumableBatches(BatchSampler):
    """A BatchSampler of a sampler of this module."""

    _plain = BatchSampler  # the class whose instances have this class with such a sampler

    @property
    def _least(self) -> int:
        """The size of the smallest batch."""
        return int(self.batch_size) if self.drop_last else 1

    def _batches(self, cursor: Cursor) -> Iterator[tuple[Any]]:
        if self.as_arrays and _frameworks.divider()[0] == "BatchSamplerShard":
            raise Invalid("as_arrays: True: expected False, because accelerate joins batches as lists")
        while len(batch := cursor.take(self.batch_size)) >= self._least:
            yield (batch.astype(np.int64) if self.as_arrays else batch.tolist(),)

    def __iter__(self) -> Iterator[Any]:
        if _sampling.iterates_itself(self.sampler):
            return super().__iter__()
        iteration: Iterator[Any] = self.sampler.iterate(self._batches, self._least, is_lazy=True)
        return iteration

    def set_epoch(self, epoch: int) -> None:
        """As the method of the sampler."""
        self.sampler.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """As the property of the sampler: the epoch to continue with."""
        return int(self.sampler.epoch)

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    @property
    def remaining(self) -> int:
        """The number of batches that are left in the epoch, from the place of a loaded state on."""
        rest, size = int(self.sampler.remaining), int(self.batch_size)
        return rest // size if self.drop_last else -(-rest // size)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """As the method of the sampler; `used` counts indices, not batches."""
        counts = _sampling.is_own(self, "state_dict") and _sampling.is_own(self.sampler, "state_dict")
        is_of_sampler = counts or not _sampling.iterates_itself(self)
        state: dict[str, Any] = self.sampler.state_dict(used) if is_of_sampler else self.sampler._state_for(self, used)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the method of the sampler. With `drop_last`, a rest of less than a batch is the end of the epoch."""
        least = 1 if _sampling.iterates_itself(self) else self._least
        self.sampler.load_state_dict(self.sampler._rounded(state_dict, least))


@functools.cache
def _resumable(plain: type) -> type:
    """The class of the resumable instances of a subclass of BatchSampler. torchdata looks for their methods in the class.
    pickle does not find this class by its name, so its metaclass tells how to make it."""
    if plain is BatchSampler:
        return _ResumableBatches
    kind = type(plain.__name__, (type(plain),), {})
    copyreg.pickle(kind, lambda made: (_resumable, (plain,)))
    names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__, "__doc__": plain.__doc__, "_plain": plain}
    made: type = kind(plain.__name__, (plain, _ResumableBatches), names)
    return made


# ---- Mixtures ------------------------------------------------------------------------------------


class MixtureDataset(torch.utils.data.Dataset):
    """Item p is the record that stands at position p of a mixture. Read it in order: with
    shufd.torch.DistributedSampler(dataset, shuffle=False), with several ranks, or without a sampler. So a job resumes by
    the sampler's state, with any number of ranks. The state does not name the mixture, so another one of the same length is
    not refused: make it again with the same arguments, apart from stages that begin at least a block later.

    datasets  map-style data sets, one for each source of the mixture, of its sizes
    mixture   a shufd.local.Mixture with a length: that of the whole run, since each pass repeats the same positions
    with_source
              True: items are (item, number of its source)

    A batch of a DataLoader is looked up at once; data sets with __getitems__ get their records in one call. Fails with
    Invalid for data sets that do not fit, and with IndexError for a position outside of the mixture.
    """

    def __init__(self, datasets: Sequence[Any], mixture: Mixture, *, with_source: bool = False) -> None:
        if not isinstance(mixture, Mixture):
            raise Invalid(f"mixture: {shown(mixture)}: expected a shufd.local.Mixture")
        self.datasets, self.mixture, self.with_source = list(datasets), mixture, bool(with_source)
        if len(self.datasets) != len(mixture.sizes):
            raise Invalid(f"datasets: {len(self.datasets)} of them, expected {len(mixture.sizes)}, the sources of the mixture")
        for i, (dataset, size) in enumerate(zip(self.datasets, mixture.sizes)):
            if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
                raise Invalid(f"datasets[{i}]: {shown(dataset)}: expected a map-style data set, with a length")
            if len(dataset) != size:
                raise Invalid(f"datasets[{i}]: length {len(dataset)}: expected {size}, the size in the mixture")
        if mixture.length is None:
            raise Invalid("mixture: it has no end: expected one with length= or epochs=")

    def __len__(self) -> int:
        return len(self.mixture)

    def __getitem__(self, position: Any) -> Any:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[Any]) -> list[Any]:
        places: Any = self._places([self._position(position) for position in positions])
        items: list[Any] = [None] * len(positions)
        for source in sorted(set(places.source.tolist())):
            at = (places.source == source).nonzero()[0].tolist()
            records = places.record[at].tolist()
            found = _items(self.datasets[source], records)
            if not isinstance(found, (list, tuple)) or len(found) != len(records):
                raise Invalid(
                    f"datasets[{source}]: its __getitems__ gave {shown(found)} for {len(records)} records: expected a list with "
                    "an item for each"
                )
            for i, item in zip(at, found):
                items[i] = (item, source) if self.with_source else item
        return items

    def _position(self, position: Any) -> int:
        number, length = operator.index(position), len(self.mixture)
        if not -length <= number < length:
            raise IndexError(f"position {number}: expected less than the length, which is {length}")
        return number % length

    def _places(self, positions: list[int]) -> Places:
        """One call for positions with equal distances, as those of a batch have, else one for each."""
        if not positions:
            return self.mixture.places(0, 0)
        stride = positions[1] - positions[0] if len(positions) > 1 else 1
        if stride > 0 and all(map(operator.eq, positions, itertools.count(positions[0], stride))):
            return self.mixture.places(positions[0], len(positions), stride)
        sources, epochs, records = zip(*(self.mixture.places(position, 1) for position in positions))
        return Places(np.concatenate(sources), np.concatenate(epochs), np.concatenate(records))


def _items(dataset: Any, records: list[int]) -> Sequence[Any]:
    if callable(getattr(dataset, "__getitems__", None)):
        items: Sequence[Any] = dataset.__getitems__(records)
        return items
    return [dataset[record] for record in records]
