# SPDX-License-Identifier: MIT
"""For JAX: an index sampler for Grain's DataLoader, permutations and random numbers as JAX arrays.

    IndexSampler                the order of a DataLoader of Grain
    permutation                 a permutation in the memory of the daemon, without a copy
    randperm, normal, uniform   computed in this process, also under jit and vmap

    loader = grain.DataLoader(
        data_source=source,
        sampler=shufd.jax.IndexSampler(len(source), grain.sharding.ShardByJaxProcess(), True, 90, seed=7),
        worker_count=8,
    )
"""

from __future__ import annotations

import operator
import sys
import threading
from typing import Any

import numpy as np

from . import _client, _errors, _orders, default_client
from ._arguments import flag, optional, seed_of, u64
from ._permutation import chunk_of, named
from ._device import DeviceArray
from ._jax_random import normal, randperm, uniform
from ._names import dir_of
from ._order import Order
from ._orders import Epoch, Read
from ._sampling import state_of
from .random import RecordGenerator

__all__ = ["IndexSampler", "normal", "permutation", "randperm", "uniform"]
__dir__ = dir_of(__all__)


class IndexSampler:
    """Tells Grain's DataLoader which record to read at each global index. It has the arguments of
    grain.samplers.IndexSampler, and uses the permutations of shufd.

    num_records    at least 1
    shard_options  by default those of one process. The processes read every shard_count-th position
                   of one order, so an epoch has the same order whatever their number is
    shuffle        True: another permutation for each epoch; needs `seed`
    num_epochs     None: without end
    seed           -2^63 to 2^64 - 1. It also gives each global index a NumPy generator, for random
                   transformations
    client, algorithm, chunk, window
                   as in shufd.torch.DistributedSampler
    order          an order of shufd.local in the place of `shuffle` and these, with n equal to `num_records`. The first epoch is
                   that of the order. Without `seed`, there are no generators

    `sampler[i]` returns RecordMetadata(index, record_key, rng) in constant time, and raises IndexError
    past the end. Pickles; needs the package grain. Errors: Invalid, and those of Client.permute()
    with the first index of an epoch.
    """

    def __init__(
        self,
        num_records: int,
        shard_options: Any = None,
        shuffle: bool = False,
        num_epochs: int | None = None,
        seed: int | None = None,
        *,
        client: _client.Client | None = None,
        algorithm: str = "primefold",
        chunk: Any = None,
        window: int | None = None,
        order: Order | None = None,
    ) -> None:
        import grain

        self.num_records = u64("num_records", num_records)
        num_epochs = None if num_epochs is None else u64("num_epochs", num_epochs)
        if self.num_records < 1 or num_epochs == 0:
            raise _errors.Invalid(f"num_records: {num_records}, num_epochs: {num_epochs}: expected 1 or more")
        if shuffle and seed is None:
            raise _errors.Invalid("seed: None: expected an integer to shuffle")
        self.shuffle, self.num_epochs = flag("shuffle", shuffle), num_epochs
        self.seed = None if seed is None else seed_of(seed)
        self.algorithm = str(algorithm)
        self.chunk, self.window = chunk_of(chunk), optional("window", window)
        self._shard_options = grain.sharding.NoSharding() if shard_options is None else shard_options
        self._client, self.order = client, order
        if order is not None:
            _orders.check(
                order, shuffle=(self.shuffle, False), client=(client, None), algorithm=(self.algorithm, "primefold"),
                chunk=(self.chunk, None), window=(self.window, None),
            )  # fmt: skip
            _orders.check_length("num_records", self.num_records, order)
        self._metadata: Any = grain.RecordMetadata
        self._size = self._epoch_size()
        self._length = sys.maxsize if num_epochs is None else num_epochs * self._size
        self._forget()

    def _epoch_size(self) -> int:
        """The positions of an epoch that are used."""
        size = self.num_records if self.order is None else len(self.order)
        if not self._shard_options.drop_remainder:
            return size
        count: int = self._shard_options.shard_count
        if size < count:
            name = "num_records:" if self.order is None else "order: length"
            raise _errors.Invalid(f"{name} {size}: expected {count} or more, a record for each shard")
        return size // count * count

    def _forget(self) -> None:
        self._orders: dict[int, Read] = {}
        self._lock = threading.Lock()

    def _order(self, epoch: int) -> Epoch:
        return Epoch(self.num_records, self.seed or 0, epoch, self.algorithm, self.shuffle, self.chunk, self.window)

    def _begin(self, epoch: int) -> Read:
        """The order of an epoch. The order of the epoch before stays, because threads of a loader
        may still read it. Older orders give their memory back first."""
        with self._lock:
            if epoch in self._orders:
                return self._orders[epoch]
            self._orders = dict([*self._orders.items()][-1:])
            given = None if self.order is None else self.order.with_epoch(self.order.epoch + epoch)
            order = _orders.order_of(self._connect, self._order(epoch) if given is None else given)
            self._orders = {**self._orders, epoch: order}
            if given is None:
                _orders.prefetch(self._connect, self._order(epoch + 1))
            return order

    def _connect(self) -> _client.Client:
        self._client = self._client or default_client()
        return self._client

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        place = operator.index(index)
        if not 0 <= place < self._length:
            raise IndexError(f"index {place}: expected less than {self._length}")
        epoch, position = divmod(place, self._size)
        order = self._orders.get(epoch) or self._begin(epoch)
        key = int(order(position, 1, 1)[0])
        rng = None if self.seed is None else np.random.Generator(RecordGenerator(self.seed, place))
        return self._metadata(place, key, rng)

    def __getstate__(self) -> dict[str, Any]:
        """Copies in other processes lease the orders themselves."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_orders", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __repr__(self) -> str:
        """Grain compares it between a checkpoint and the loader that continues there."""
        windows = "" if self.window is None else f", chunk={named(self.chunk)}, window={self.window}"
        order = f"algorithm={self.algorithm!r}{windows}" if self.order is None else f"order={state_of(self.order)}"
        return (
            f"shufd.jax.IndexSampler(num_records={self.num_records}, shard_options={self._shard_options!r}, "
            f"shuffle={self.shuffle}, num_epochs={self.num_epochs}, seed={self.seed}, {order})"
        )


def permutation(
    n: int, seed: int, epoch: int = 0, *, client: _client.Client | None = None, device: Any = None,
    **options: Any,
) -> Any:
    """Client.permute() as a jax.Array without a copy. The array is in host memory, or with
    device="cuda" in the memory of the daemon's GPU.

    n, seed, epoch, options
            as in Client.permute(); a 64-bit `dtype`, or n above 2^32, needs jax_enable_x64
    client  by default shufd.default_client()
    Errors: those of Client.permute().
    """
    import jax

    result = (client or default_client()).permute(n, seed, epoch, device=device, **options)
    if result.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
        raise _errors.Invalid(f"dtype: {result.dtype}: expected u32; set jax_enable_x64 for 64-bit integers")
    if isinstance(result, DeviceArray):
        return jax.dlpack.from_dlpack(result)
    return jax.device_put(result, jax.local_devices(backend="cpu")[0], may_alias=True)
