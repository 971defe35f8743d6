# SPDX-License-Identifier: MIT
"""The client: requests to one daemon, results as arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _daemon, _request, _wait
from ._connection import PART, Array, Connection, options_for
from ._device import Lease, device_of, gpu_of
from ._draws import Draws
from ._dtype import as_u64
from ._errors import Busy, DaemonLost, Invalid, OutOfMemory, renamed
from ._names import advise_arguments
from ._plan import OneSidedPlan, Plan
from ._shuf import ffi, lib

_SMALL = 1 << 20  # bytes of a result that needs no check of the room
_LOSSES_MOST = 16  # of daemons in one shuffle


class Client(Draws):
    """Requests to the daemon on one socket. Made by `shufd.connect()`.

    Threads: each thread gets a connection of its own, with its first request. Processes: a child
    after fork() connects anew; arrays of its parent stay readable there. `close()`, or the end of a
    `with` block, ends the connections; arrays stay valid, each until its own end.
    """

    def __repr__(self) -> str:
        return f"<shufd.Client of {self.socket}, {'closed' if self._closed else 'open'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reconnected, (self.socket, self._reconnect))

    # ---- Permutations ------------------------------------------------------------------------

    @advise_arguments
    def permute(
        self,
        n: int,
        seed: int | None = None,
        epoch: int = 0,
        *,
        key: str | None = None,
        epochs: range | None = None,
        rank: int | None = None,
        world: int | None = None,
        drop_last: bool = False,
        step: int | None = None,
        offset: int | None = None,
        count: int | None = None,
        stride: int | None = None,
        dtype: Any = None,
        device: Any = None,
        algorithm: str = "primefold",
        chunk: int | None = None,
        window: int | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Returns the permutation of [0, n) that algorithm, seed and epoch select.

        n         number of values, 1 to 2^62
        seed, epoch
                  0 to 2^64 - 1; each pair selects its own permutation
        key       the name of a key of the daemon instead of the seed
        epochs    instead of an epoch: a range with step 1; the result has a row for each epoch, and
                  the shape (len(epochs), count)
        rank, world, drop_last
                  only the values that torch's DistributedSampler gives to this rank: with drop_last
                  n // world, else ceil(n / world), padded from the beginning
        step      only with rank: the number of values that the rank has already used, to resume in the
                  middle of an epoch; the result has the next `count` values, by default all
        offset, count, stride
                  only the values at offset, offset + stride, ...; by default all from 0 on, step 1. An
                  offset of n gives an empty array: nothing is left after the last value
        dtype     "u32" (n <= 2^32), "u64" or "i64", or NumPy's or torch's type; by default the
                  smaller unsigned type that holds n - 1. To index a tensor of torch, use shufd.torch.randperm():
                  torch takes no unsigned integers, and warns of read-only ones
        device    None or "cpu": host memory; "cuda" or "cuda:0": a DeviceArray in the memory of the GPU
        algorithm "primefold", "philox24" or "lcg"
        chunk, window
                  a windowed order, for records in chunks of `chunk` neighbours: the chunks are in random order, each
                  `window` of them are a window, and all records of a window are in random order. A reader has at most
                  `window` chunks open, or twice as many where it goes to the next window. Only primefold
        progress  True: shows the elapsed time, without a total, because the daemon computes the result as a
                  whole; None: only in a terminal, after 2 s; False: never. Needs the package tqdm: without
                  it, nothing is shown, and True warns (RuntimeWarning)

        The result is a read-only array over the memory of the daemon, without a copy. Equal
        requests of one user share it. It stays valid as long as an array refers to it, even after
        the end of the daemon. Errors: Invalid, OutOfMemory, Busy, NoDaemon, DaemonLost,
        DeviceError, Denied, Closed.
        """
        # Comparisons one by one take less time than a chain of them.
        if (
            key is None and epochs is None and rank is None and world is None and step is None
            and offset is None and count is None and stride is None and dtype is None
            and device is None and not drop_last and not progress and algorithm == "primefold"
            and chunk is None and window is None
        ):  # fmt: skip
            whole = self._take_whole(n, seed, epoch)
            if whole is not None:
                return whole
        request = _request.permutation(
            n, seed, key, epoch, epochs, (rank, world, drop_last, step), (offset, count, stride),
            dtype, algorithm, chunk, window,
        )
        device = gpu_of(device)
        where = None if device is None else device_of(device)
        lease = self._take(
            request, request.permutation.n * max(1, request.permutation.epochs), "permute", progress, device,
            PART,
        )  # fmt: skip
        shape = (lease.rows, lease.count) if epochs is not None else None
        return self._result(lease, lease.dtype, shape, where)

    @advise_arguments
    def prefetch(
        self,
        n: int,
        seed: int | None = None,
        epoch: int = 0,
        *,
        key: str | None = None,
        epochs: range | None = None,
        rank: int | None = None,
        world: int | None = None,
        drop_last: bool = False,
        step: int | None = None,
        offset: int | None = None,
        count: int | None = None,
        stride: int | None = None,
        dtype: Any = None,
        device: Any = None,
        algorithm: str = "primefold",
        chunk: int | None = None,
        window: int | None = None,
    ) -> None:
        """Starts the computation of a result for a later permute() with equal arguments in this
        thread, and returns without waiting. The daemon keeps four such results for a connection. Each holds its
        memory until that permute(), or until drop() in this thread; close() frees it when the arrays are gone, too.

        If the result has no room now beside the results that are in use, the daemon may leave it out:
        then the call warns (RuntimeWarning), and permute() computes the result later. Errors: those of
        permute(); OutOfMemory if the result never fits.
        """
        request = _request.permutation(
            n, seed, key, epoch, epochs, (rank, world, drop_last, step), (offset, count, stride),
            dtype, algorithm, chunk, window,
        )
        if lack := self._prefetch(request, gpu_of(device)):
            why, name = lack
            warnings.warn(
                f"prefetch: n {n}: {why}; the daemon may not compute it ahead; drop arrays before, or give the daemon a "
                f"larger {name}", RuntimeWarning, stacklevel=3,
            )  # fmt: skip

    def _prefetch(self, request: Any, device: Any) -> tuple[str, str] | None:
        """Starts the computation of a permutation. If it has no room and waits, returns why, as _daemon.lack()."""
        size = _request.bytes_of(request)
        lack = _daemon.lack(self.status(), device, size) if size > _SMALL else None
        try:
            self._connection().call(lib.shufpy_prefetch, request, options_for(device))
        except Invalid:
            self._check_device(device)
            raise
        except (Busy, OutOfMemory) as error:
            raise self._advised(error, PART) from None
        return lack if lack is not None and _daemon.is_waiting(self.leases()) else None

    def fingerprint(
        self, n: int, seed: int | None = None, epoch: int = 0, *, key: str | None = None,
        algorithm: str = "primefold",
    ) -> str:
        """The fingerprint of a permutation: 64 bits computed from all values in their order, as 0x and 16
        hexadecimal digits. The daemon computes it, and sends no values."""
        request = _request.whole(n, seed, key, epoch, algorithm)
        result = ffi.new("shuf_result *")
        connection = self._connection()

        def summarize() -> None:
            connection.call(lib.shufpy_summarize, request, result)

        if n < _wait.LONG:
            summarize()
        else:
            _wait.run(summarize, "fingerprint", None, self._cancel)
        return f"{result.fingerprint:#018x}"

    # ---- Look-ups ----------------------------------------------------------------------------

    def index(
        self, positions: npt.ArrayLike, n: int, seed: int | None = None, epoch: int = 0, *,
        key: str | None = None, algorithm: str = "primefold", chunk: int | None = None, window: int | None = None,
    ) -> Any:
        """The values at single positions of the permutation: permute(n, seed, epoch)[positions],
        without computing the others.

        positions  integers below n, of any shape and in any order, also repeated
        Returns a new uint64 array of the same shape; an int for a single position. Errors: Invalid for
        a position out of range, else as permute().
        """
        return self._look_up(positions, 0, _request.whole(n, seed, key, epoch, algorithm, chunk, window))

    def inverse_index(
        self, values: npt.ArrayLike, n: int, seed: int | None = None, epoch: int = 0, *,
        key: str | None = None, algorithm: str = "primefold", chunk: int | None = None, window: int | None = None,
    ) -> Any:
        """The positions of values in the permutation: the inverse of index(), with its errors."""
        return self._look_up(values, 1, _request.whole(n, seed, key, epoch, algorithm, chunk, window))

    def _look_up(self, at: npt.ArrayLike, direction: int, request: Any) -> Any:
        name = "values" if direction else "positions"
        places = as_u64(name, at)
        out = np.empty(places.shape, np.uint64)
        try:
            self._connection().call(
                lib.shufpy_index,
                ffi.addressof(request, "permutation"),
                direction,
                ffi.from_buffer("uint64_t[]", places.reshape(-1)),
                places.size,
                ffi.from_buffer("uint64_t[]", out.reshape(-1)),
            )
        except Invalid as error:
            raise renamed(error, at=name) from None
        return out if out.ndim else int(out)

    # ---- Arrays ------------------------------------------------------------------------------

    def shuffle(
        self, array: npt.ArrayLike, seed: int | None = None, epoch: int = 0, *,
        key: str | None = None, algorithm: str = "primefold", progress: bool | None = None,
    ) -> Array:
        """Returns the rows of an array in the order of a permutation: array[permute(len(array), seed,
        epoch)].

        array   of any shape with at least one dimension, also with no rows, and of any type without
                Python objects, in any byte order; without a mask
        Returns a read-only array of the same shape and type over the memory of the daemon. During
        the call the daemon needs memory for two such arrays. Errors: Invalid, OutOfMemory,
        NoDaemon, and DaemonLost if the daemon ends during the call and no other comes in time.
        """
        return self._shuffle(array, False, seed, key, epoch, algorithm, progress)

    def unshuffle(
        self, array: npt.ArrayLike, seed: int | None = None, epoch: int = 0, *,
        key: str | None = None, algorithm: str = "primefold", progress: bool | None = None,
    ) -> Array:
        """Undoes shuffle() with the same seed, epoch and algorithm. Arguments and errors are the
        same."""
        return self._shuffle(array, True, seed, key, epoch, algorithm, progress)

    def _shuffle(
        self, array: npt.ArrayLike, inverse: bool, seed: int | None, key: str | None, epoch: int,
        algorithm: str, progress: bool | None,
    ) -> Array:
        source = _arguments.array("array", array)
        if source.ndim == 0 or source.dtype.hasobject:
            raise Invalid(
                f"array: shape {source.shape}, type {source.dtype}: expected at least one dimension "
                "and a type without Python objects"
            )
        size = source.nbytes // max(1, len(source))
        request = _request.records(len(source), size, seed, key, epoch, inverse, algorithm)
        connection = self._connection()
        if source.nbytes == 0:
            _request.bytes_of(_request.whole(1, seed, key, epoch, algorithm))  # checks the arguments
            return _without_records(source)

        def shuffle() -> Array:
            lease = _shuffled(connection, source, request)
            return lease.array(source.dtype).reshape(source.shape)

        try:
            if source.nbytes < 4 * _wait.LONG and not progress:
                return shuffle()
            return _wait.run(shuffle, "shuffle", progress, self._cancel)
        except Busy as error:
            raise self._advised(error, None) from None

    # ---- Ranks -------------------------------------------------------------------------------

    @advise_arguments
    def exchange(
        self,
        n: int,
        seed: int | None = None,
        epoch: int = 0,
        *,
        rank: int,
        world: int,
        input: npt.ArrayLike | None = None,
        output: npt.ArrayLike | None = None,
        inverse: bool = False,
        key: str | None = None,
        device: Any = None,
        algorithm: str = "primefold",
        progress: bool | None = None,
    ) -> Plan:
        """The plan by which `rank` of `world` ranks exchanges its records with the others, so that all
        of them together are shuffled. shufd.torch.global_shuffle() does the exchange.

        n         records of all ranks together, in the order of the ranks
        seed, epoch, key
                  as in permute()
        input     how many records each rank has, with the sum n; None: equal parts, which differ by 1
                  at most, the larger ones first
        output    how many records each rank gets; None: as many as it has
        inverse   the plan that undoes the exchange; `input` are then the sizes after it
        device    None or "cpu": NumPy's arrays in host memory; "cuda" or "cuda:0": the GPU computes the plan, and
                  its lists are DeviceArrays
        algorithm "primefold"

        Its lists are read-only arrays over the memory of the daemon, without a copy. Errors: those of
        permute().
        """
        request = _request.ranks(n, seed, key, epoch, rank, world, input, output, inverse, algorithm)
        numbers = self._take_plan(request[0], device, progress)
        n, rank, world = (getattr(request[0].ranks, name) for name in ("n", "rank", "world"))
        own = n // world + (rank < n % world) if input is None else _sizes(n, world, input)[rank]
        return Plan(numbers, world, own)

    @advise_arguments
    def exchange_one_sided(
        self, n: int, seed: int | None = None, epoch: int = 0, *, rank: int, world: int, part: int,
        input: npt.ArrayLike | None = None, output: npt.ArrayLike | None = None,
        inverse: bool = False, key: str | None = None, device: Any = None, algorithm: str = "primefold",
        progress: bool | None = None,
    ) -> OneSidedPlan:
        """The plan by which `rank` takes its records of a shuffle from the ranks that have them, in parts: for
        ranks that read or write the memory of each other. The computation takes less time than that of
        exchange(). The arguments are those of exchange(), and

        part      the places of a part: a multiple of 65536 up to 2^31

        There are at most 64 ranks, which have at most 2^32 records each.
        """
        request = _request.ranks(n, seed, key, epoch, rank, world, input, output, inverse, algorithm, part)
        if request[0].ranks.part == 0:
            raise Invalid("part: 0: expected a multiple of 65536 up to 2^31")
        numbers = self._take_plan(request[0], device, progress)
        n, rank, world = (getattr(request[0].ranks, name) for name in ("n", "rank", "world"))
        sizes = _sizes(n, world, input)
        places = _sizes(n, world, output if output is not None else input)[rank]
        return OneSidedPlan(numbers, tuple(sizes), places, request[0].ranks.part)

    def _take_plan(self, request: Any, device: Any, progress: bool | None) -> Any:
        device = gpu_of(device)
        where = None if device is None else device_of(device)
        records = request.ranks.n // max(1, request.ranks.world)
        lease = self._take(request, records, "exchange", progress, device)
        return self._result(lease, lease.dtype, (lease.count,), where)

    @advise_arguments
    def prefetch_exchange(
        self, n: int, seed: int | None = None, epoch: int = 0, *, rank: int, world: int,
        input: npt.ArrayLike | None = None, output: npt.ArrayLike | None = None,
        inverse: bool = False, key: str | None = None, device: Any = None, algorithm: str = "primefold",
        part: int = 0,
    ) -> None:
        """Starts the computation of a plan for a later exchange() or, with `part`, exchange_one_sided() with
        equal arguments in this thread, as prefetch() does."""
        request = _request.ranks(n, seed, key, epoch, rank, world, input, output, inverse, algorithm, part)
        device = gpu_of(device)
        try:
            self._connection().call(lib.shufpy_prefetch, request[0], options_for(device))
        except Invalid:
            self._check_device(device)
            raise

    # ---- The daemon --------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The state of the daemon: version, backend, device, pid, clients, leases, and memory in
        bytes. gpu_fault is the reason why the daemon does not use the GPU, or "". host_idle and
        device_idle are the bytes of unused results, `queued` is the number of jobs that wait or run."""
        return _daemon.status(self._connection())

    def leases(self) -> list[dict[str, Any]]:
        """The leases of this user, the oldest first. Root and the daemon's user get those of all users.
        A lease is a dict of id, pid, uid, transport, age in seconds, bytes, and the request."""
        return _daemon.leases(self._connection())

    def drop(self, *, everybody: bool = False) -> dict[str, int]:
        """Frees the unused results, which the daemon keeps for reuse, and the results that this thread has
        prefetched. Frees those of this user, or with `everybody` those of all users; only root and the
        daemon's user may do that. Arrays stay valid. Returns the number of results and the bytes of host and
        device memory that were freed. Errors: Denied."""
        return _daemon.drop(self._connection(), everybody)


def _reconnected(socket: str, reconnect: float) -> Client:
    return Client(socket, reconnect=reconnect, wait=reconnect)


def _sizes(n: int, world: int, sizes: npt.ArrayLike | None) -> list[int]:
    """The records of each rank; without `sizes` equal parts."""
    if sizes is None:
        return [n // world + (rank < n % world) for rank in range(world)]
    return [int(size) for size in np.asarray(sizes).reshape(-1)]


def _without_records(source: Array) -> Array:
    """The shuffle of an array of no bytes."""
    empty = source.copy()
    empty.flags.writeable = False
    return empty


def _shuffled(connection: Connection, source: Array, request: Any) -> Lease:
    """Fills a buffer of the daemon with the array and shuffles it there. A buffer is lost with its daemon, so the next daemon
    gets a new one."""
    for losses in range(1, _LOSSES_MOST + 1):
        buffer = connection.take(_request.buffer(max(1, source.nbytes)), _request.HOST)
        try:
            return _shuffled_in(buffer, connection, source, request)
        except DaemonLost:
            if not connection.reconnects or losses == _LOSSES_MOST:
                raise
        finally:
            lib.shufpy_end(buffer, ffi.NULL)
    raise AssertionError


def _shuffled_in(buffer: Any, connection: Connection, source: Array, request: Any) -> Lease:
    if buffer.lease.buffer:
        memory = ffi.buffer(buffer.lease.buffer, source.nbytes)
        np.copyto(np.frombuffer(memory, source.dtype).reshape(source.shape), source)
    else:  # the daemon's kernel cannot lend memory
        rows = np.ascontiguousarray(source)
        connection.call(lib.shufpy_write, buffer, rows.nbytes, ffi.from_buffer(rows))
    request.records.input = buffer.lease
    return Lease(connection.take(request, _request.HOST))
