# SPDX-License-Identifier: MIT
"""Epoch permutations, shuffles and random streams from the daemon shufd, as arrays without copies.

    >>> import shufd
    >>> print(shufd.permute(10, seed=7))
    [4 0 5 1 2 9 6 8 7 3]

`shufd.permute` and the other functions here use the running daemon, or start a private one.
`shufd.connect()` never starts a daemon: it returns a client of the running one.

    permute, prefetch               permutations, and slices and shards of them
    index, inverse_index            values at single positions, and positions of values
    shuffle, unshuffle              arrays in the order of a permutation, and back
    normal, uniform, exponential, bits, integers
                                    random numbers
    Stream, BitGenerator            places in random streams, for these and for numpy.random.Generator
    connect, serve, default_client  a Client of the running daemon, of a private one, and of these functions
    verify                          checks that all ranks compute the same permutations
    DeviceArray                     a result in the memory of a GPU
    Error                           the base of Invalid, NoDaemon, Busy and all other errors

Submodules: `shufd.local` computes the same values in this process, without a daemon. `shufd.torch` and `shufd.jax` do so
for tensors of PyTorch and arrays of JAX, and have samplers. `shufd.ray` shuffles data of Ray. Modules whose names begin
with _ are private.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

from . import local
from ._client import Client
from ._connection import Connection
from ._device import DeviceArray
from ._errors import (
    Busy, Cancelled, Closed, DaemonLost, Denied, DeviceError, Error, IOFailure, InternalError, Invalid, Mismatch,
    NoDaemon, OutOfMemory, ProtocolError, Timeout, VersionMismatch, for_rank,
)  # fmt: skip
from ._names import advice_of, dir_of, documented_by, own_classes
from ._process import locks_for
from ._ranks import launched_ranks, verify
from ._serve import serve
from ._shuf import ffi as _ffi, lib as _lib
from .random import BitGenerator, Stream

__version__: str = _ffi.string(_lib.shuf_version()).decode()

_default: Client | None = None
_lock, _busy = locks_for(sys.modules[__name__])
_own_clients: weakref.WeakSet[Client] = weakref.WeakSet()  # of callers that have given none


def connect(
    path: str | os.PathLike[str] | None = None, *, reconnect: float = 10.0, wait: float | None = None
) -> Client:
    """Connects to the daemon on the socket `path`.

    path       None: $SHUFD_SOCKET, or else the first of these sockets that exists: that of this
               process's GPU (from its CUDA context or $CUDA_VISIBLE_DEVICES); as root
               /run/shufd/shufd.sock; for others $XDG_RUNTIME_DIR/shufd.sock, then
               /run/shufd/shufd.sock; the only /run/shufd/GPU-<uuid>.sock
    reconnect  after the loss of the daemon, a call waits this many seconds for the next one. So do later threads
               and processes with their first call
    wait       this call waits so many seconds for a daemon, as `shufctl --wait`. None: $SHUFD_WAIT, or else 0

    Fails with NoDaemon, Denied, VersionMismatch, Busy, ProtocolError or Timeout.
    """
    return Client(path, reconnect=reconnect, wait=wait)


def default_client() -> Client:
    """The client that the functions of this module use. The first call runs serve(), or with several
    ranks connect(), because else each rank would start a daemon of its own. If its daemon is lost, serve()
    starts another one, which this client then uses."""
    global _default
    with _lock:
        if _default is None or _default._closed:
            world = launched_ranks()
            _default = serve() if world == 1 else _connect_rank(world)
            _own_clients.add(_default)
        return _default


def _connect_rank(world: int) -> Client:
    """A client of the running daemon for one of several ranks."""
    try:
        client = connect()
    except NoDaemon as error:
        raise for_rank(error, world) from None
    _own_clients.add(client)
    return client


def _replace_lost_daemons(client: Client) -> None:
    """Lets the clients of this module whose daemon is gone use that of `client`."""
    for own in list(_own_clients):
        if not own._closed and own.socket != client.socket:
            try:
                Connection(own.socket, 0.0).close()
            except NoDaemon:
                own._follow(client)


@documented_by(Client.permute)
def permute(n: int, seed: int | None = None, epoch: int = 0, **options: Any) -> Any:
    """As Client.permute(), with default_client()."""
    return default_client().permute(n, seed, epoch, **options)


@documented_by(Client.prefetch)
def prefetch(n: int, seed: int | None = None, epoch: int = 0, **options: Any) -> None:
    """As Client.prefetch(), with default_client()."""
    default_client().prefetch(n, seed, epoch, **options)


@documented_by(Client.index)
def index(positions: Any, n: int, seed: int | None = None, epoch: int = 0, **options: Any) -> Any:
    """As Client.index(), with default_client()."""
    return default_client().index(positions, n, seed, epoch, **options)


@documented_by(Client.inverse_index)
def inverse_index(values: Any, n: int, seed: int | None = None, epoch: int = 0, **options: Any) -> Any:
    """As Client.inverse_index(), with default_client()."""
    return default_client().inverse_index(values, n, seed, epoch, **options)


@documented_by(Client.shuffle)
def shuffle(array: Any, seed: int | None = None, epoch: int = 0, **options: Any) -> Any:
    """As Client.shuffle(), with default_client()."""
    return default_client().shuffle(array, seed, epoch, **options)


@documented_by(Client.unshuffle)
def unshuffle(array: Any, seed: int | None = None, epoch: int = 0, **options: Any) -> Any:
    """As Client.unshuffle(), with default_client()."""
    return default_client().unshuffle(array, seed, epoch, **options)


@documented_by(Client.normal)
def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None, **options: Any) -> Any:
    """As Client.normal(), with default_client()."""
    return default_client().normal(loc, scale, size, **options)


@documented_by(Client.uniform)
def uniform(low: float = 0.0, high: float = 1.0, size: Any = None, **options: Any) -> Any:
    """As Client.uniform(), with default_client()."""
    return default_client().uniform(low, high, size, **options)


@documented_by(Client.exponential)
def exponential(scale: float = 1.0, size: Any = None, **options: Any) -> Any:
    """As Client.exponential(), with default_client()."""
    return default_client().exponential(scale, size, **options)


@documented_by(Client.bits)
def bits(p: float = 0.5, size: Any = None, **options: Any) -> Any:
    """As Client.bits(), with default_client()."""
    return default_client().bits(p, size, **options)


@documented_by(Client.integers)
def integers(bound: int, size: Any = None, **options: Any) -> Any:
    """As Client.integers(), with default_client()."""
    return default_client().integers(bound, size, **options)


__all__ = [
    "BitGenerator", "Busy", "Cancelled", "Client", "Closed", "DaemonLost", "Denied", "DeviceArray", "DeviceError",
    "Error", "IOFailure", "InternalError", "Invalid", "Mismatch", "NoDaemon", "OutOfMemory", "ProtocolError",
    "Stream", "Timeout", "VersionMismatch", "bits", "connect", "default_client", "exponential", "index", "integers",
    "inverse_index", "local", "normal", "permute", "prefetch", "serve", "shuffle", "uniform", "unshuffle", "verify",
]  # fmt: skip
own_classes(__name__, (globals()[name] for name in __all__))
__dir__ = dir_of([*__all__, "__path__", "__version__"])
_GENERATOR = "numpy.random.Generator(shufd.BitGenerator(seed))"
# Names of NumPy, torch and shufctl, and of submodules' classes.
_OTHERS = {
    "BatchSampler": "shufd.torch.BatchSampler",
    "DistributedSampler": "shufd.torch.DistributedSampler",
    "bernoulli": "shufd.bits",
    "bits_": "shufd.torch.bits_",
    "exponential_": "shufd.torch.exponential_",
    "standard_exponential": "shufd.exponential",
    "Generator": "shufd.torch.Generator",
    "IndexSampler": "shufd.jax.IndexSampler",
    "RandomSampler": "shufd.torch.RandomSampler",
    "choice": f"{_GENERATOR}.choice",
    "gauss": "shufd.normal",
    "global_shuffle": "shufd.torch.global_shuffle",
    "integers_": "shufd.torch.integers_",
    "lookup": "shufd.index",
    "normal_": "shufd.torch.normal_",
    "permutation": "shufd.permute",
    "permuted": "shufd.shuffle",
    "rand": "shufd.uniform",
    "randint": "shufd.integers",
    "randn": "shufd.normal",
    "random_shuffle": "shufd.ray.random_shuffle",
    "randperm": "shufd.permute",
    "standard_normal": "shufd.normal",
    "uniform_": "shufd.torch.uniform_",
}
if not TYPE_CHECKING:  # for mypy, any name would exist
    __getattr__ = advice_of(__name__, _OTHERS, ("jax", "ray", "torch"))
