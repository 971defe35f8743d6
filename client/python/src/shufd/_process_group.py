# SPDX-License-Identifier: MIT
"""The ranks of a torch.distributed process group, which send bytes to each other."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import pickle
import secrets
import time
import weakref
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist

from . import _errors, _ranks
from ._arguments import shown

# ---- An all-gather through the store -------------------------------------------------------------
# That of NCCL would run a kernel that waits on the GPU for the slowest rank, and the daemon's kernels would have to wait
# for it. This one takes small values on the host.

_MOST_RANKS = 64  # each rank reads the values of all others from one server
_COUNT = "/count"  # of a counter beside each entry, where the store of an older torch cannot check for a key
_WAIT_S = 1.0  # of the first wait. Python handles no signals during it, and torch prints a warning at its end
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 20e-6, 0.01
_LINGER_S = 2.0
_VALUE, _LEFT = b"v", b"l"  # the first byte of an entry
_PROOF_BYTES = 32  # at the end of an entry

_gathers: weakref.WeakKeyDictionary[Any, StoreGather | None] = weakref.WeakKeyDictionary()  # by group


class StoreGather:
    """Each round has an entry of each rank. The server of the store lets every user of its network write, and the values
    are pickles, so each entry has a proof (HMAC, RFC 2104) that its writer knows the secret of the ranks."""

    def __init__(self, store: Any, secret: str, rank: int, world: int, timeout_s: float) -> None:
        self.store, self.rank, self.world, self.timeout_s = store, rank, world, timeout_s
        self.secret = secret.encode()
        self.name = f"shufd/{hashlib.sha256(self.secret).hexdigest()}"
        self.others = [other for other in range(world) if other != rank]
        self.has_check = hasattr(store, "check")
        self.has_multi_get = hasattr(store, "has_extended_api") and store.has_extended_api()
        self.round = 0  # the next one
        self.kept = 0  # the oldest round whose entry of this rank may be in the store
        self.has_left = False
        self.value = b""  # of this rank in the last round

    def gather(self, value: bytes) -> list[bytes]:
        """send() and receive()"""
        self.send(value)
        return self.receive()

    def send(self, value: bytes) -> None:
        """Begins a round: gives the others the value of this rank. Errors: RuntimeError of the store, and if this rank
        has left."""
        self.check()
        round, self.round = self.round, self.round + 1
        self.value = value
        self._write(round, _VALUE + value)

    def receive(self) -> list[bytes]:
        """Ends the round: the values of all ranks. Waits for them. Errors: RuntimeError after the timeout, of the store,
        and if a rank has left."""
        entries = self._read(self.round - 1)
        return [entries[rank][1:] if rank in entries else self.value for rank in range(self.world)]

    def tidy(self) -> None:
        """Deletes entries of this rank that all ranks have read. Call it when nobody waits for this rank."""
        while self.kept < self.round - 1:  # all ranks have written to the last round, so they have read those before
            self._delete(self.kept)
            self.kept += 1

    def check(self) -> None:
        """Fails if this rank has left."""
        if self.has_left:
            raise RuntimeError("this rank has left an earlier call; start all ranks again")

    def check_others(self) -> None:
        """Fails if another rank has left and will not come to the next round."""
        self._look_for(self.round, {})

    def leave(self) -> None:
        """After an error that the other ranks may not have: they fail in this round or in the next one."""
        self.has_left = True
        with contextlib.suppress(Exception):
            for round in range(max(0, self.round - 1), self.round + 1):
                self._write(round, _LEFT)

    def finish(self) -> None:
        """Waits until all ranks have read the last round. All ranks call this if they may end now, because one of them
        may have the server of the store. Waits for a short time only."""
        key, end = f"{self.name}/{self.round}/finished", time.monotonic() + _LINGER_S
        with contextlib.suppress(Exception):  # the server has ended
            count = self.store.add(key, 1)
            while count < self.world and time.monotonic() < end:
                time.sleep(0.002)
                count = self.store.add(key, 0)
            if self.rank == 0:  # it may have the server, and the others may still ask
                time.sleep(0.02)

    def _key(self, round: int, rank: int) -> str:
        return f"{self.name}/{round}/{rank}"

    def _proof(self, key: str, entry: bytes) -> bytes:
        return hmac.digest(self.secret, key.encode() + entry, "sha256")

    def _proven(self, rank: int, key: str, written: bytes) -> bytes:
        """The entry of a rank. Fails if another program has written it."""
        entry, proof = written[:-_PROOF_BYTES], written[-_PROOF_BYTES:]
        if not hmac.compare_digest(proof, self._proof(key, entry)):
            raise RuntimeError(f"the entry of rank {rank} in the store is not from this rank: another program has written it")
        return entry

    def _read(self, round: int) -> dict[int, bytes]:
        """The entries of the others."""
        entries: dict[int, bytes] = {}
        began, pause = time.monotonic(), _SHORTEST_PAUSE_S
        keys = [self._key(round, rank) for rank in self.others]
        if keys and self.has_multi_get and self._come_soon(keys):
            written = map(bytes, self.store.multi_get(keys))
            entries.update(zip(self.others, map(self._proven, self.others, keys, written)))
        while self._look_for(round, entries):
            if time.monotonic() >= began + self.timeout_s:
                missing = ", ".join(str(rank) for rank in self.others if rank not in entries)
                raise RuntimeError(f"no answer of rank {missing} within {self.timeout_s:g} s (timeout)")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return entries

    def _come_soon(self, keys: list[str]) -> bool:
        """Waits for the keys for a short time. Returns whether they have come. Not for an older torch, which counts keys
        wrong after a wait that ended without them."""
        began = time.monotonic()
        try:
            self.store.wait(keys, datetime.timedelta(seconds=_WAIT_S))
            return True
        except RuntimeError:
            if time.monotonic() < began + _WAIT_S / 2:  # an error of the store
                raise
            return False

    def _look_for(self, round: int, entries: dict[int, bytes]) -> bool:
        """Adds those entries of the others that are there. Fails if one of them says that its rank has left. Returns
        whether others are missing."""
        for rank in self.others:
            key = self._key(round, rank)
            if rank not in entries and self._has(key):
                entries[rank] = self._proven(rank, key, bytes(self.store.get(key)))
            if entries.get(rank, _VALUE)[:1] == _LEFT:
                raise RuntimeError(f"rank {rank} has left a call after an error; start all ranks again")
        return len(entries) < len(self.others)

    def _write(self, round: int, entry: bytes) -> None:
        key = self._key(round, self.rank)
        self.store.set(key, entry + self._proof(key, entry))
        if not self.has_check:
            self.store.add(key + _COUNT, 1)

    def _has(self, key: str) -> bool:
        if self.has_check:
            return bool(self.store.check([key]))
        return int(self.store.add(key + _COUNT, 0)) > 0

    def _delete(self, round: int) -> None:
        key = self._key(round, self.rank)
        self.store.delete_key(key)
        if not self.has_check:
            self.store.delete_key(key + _COUNT)


def _store_of(group: Any) -> Any:
    """The store of a group if it is a server in memory; None for a store in files, and without one."""
    pairs = getattr(dist.distributed_c10d, "_pg_map", {})
    store = base = pairs.get(group, (None, None))[1]
    while hasattr(base, "underlying_store"):
        base = base.underlying_store
    return store if isinstance(base, dist.TCPStore) else None


def _timeout_of(group: Any, store: Any) -> float:
    """The timeout of the group's engine, in seconds; with an older torch that of the store."""
    for device in ("cuda", "cpu"):
        with contextlib.suppress(Exception):
            return float(group._get_backend(torch.device(device)).options._timeout.total_seconds())
    return float(store.timeout.total_seconds())


def known_store_gather_of(group: Any) -> StoreGather | None:
    """That of a group, if it has had one before."""
    return _gathers.get(group)


def store_gather_of(
    group: Any, rank: int, world: int, gather: Callable[[Any], list[Any]]
) -> StoreGather | None:
    """That of a group, or None if it cannot have one. All ranks call this together the first time, and exchange a new
    secret by `gather`, not by the store."""
    if group not in _gathers:
        store = _store_of(group) if world <= _MOST_RANKS else None
        replies = gather((store is not None, secrets.token_hex()))
        can = all(has_store for has_store, _ in replies)
        _gathers[group] = StoreGather(store, replies[0][1], rank, world, _timeout_of(group, store)) if can else None
    return _gathers[group]


# ---- The ranks -----------------------------------------------------------------------------------


def _check(group: Any) -> None:
    """Fails if `group` is no process group. This rank fails alone: without a group it cannot tell the others."""
    member = getattr(dist, "GroupMember", None)  # torch may have no distributed package
    if group is None or (member and (isinstance(group, dist.ProcessGroup) or group is member.NON_GROUP_MEMBER)):
        return
    seed = f"; did you mean seed={group}?" if isinstance(group, int) else ""
    raise _errors.Invalid(f"group: {shown(group)}: expected a process group of torch.distributed or None{seed}")


class Ranks:
    """The ranks of a process group. Without torch.distributed, this process is the only rank, unless the
    launcher has started several."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.world = 0, 1
        self._token: torch.Tensor | None = None
        self.has_told = False  # the others may have a value of this call
        _check(group)
        _ranks.check_group()
        if group is not None or _ranks.group_of_torch() is not None:
            self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise _errors.Invalid("group: this process is not in it; expected a group with this rank")

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except RuntimeError as error:
            raise _errors.IOFailure(
                f"global_shuffle: rank {self.rank} of {self.world}: the exchange with the other ranks failed; "
                f"a rank may have ended: {error}"
            ) from error

    @property
    def gpu(self) -> torch.device | None:
        """The GPU to which init_process_group() has bound this rank, by its `device_id`."""
        if self.world == 1:
            return None
        device = getattr(dist.group.WORLD if self.group is None else self.group, "bound_device_id", None)
        return device if device is not None and device.type == "cuda" else None

    @property
    def _engine(self) -> str:
        """The name of the engine, or those of several by device. init_process_group() may have chosen it."""
        name = str(dist.get_backend(self.group))
        return str(dist.get_backend_config(self.group)) if name == "undefined" else name

    @property
    def has_only_nccl(self) -> bool:
        """Other engines exchange values on the host, and soon notice a rank that has ended."""
        return self._engine in ("nccl", "cuda:nccl")

    def gather(self, value: Any, after: Any = None, meanwhile: Callable[[], None] | None = None) -> list[Any]:
        """The values of all ranks, which have one type. Each rank first waits for the event `after`, so it knows that
        this event of every rank has occurred. Calls `meanwhile` while the values travel; if it fails, the others may
        have the value of this rank."""
        meanwhile = meanwhile or (lambda: None)
        if self.world == 1:
            meanwhile()
            return [value]
        if after is not None:
            self._call(self._wait_for, after)
        values = self._gather(value, meanwhile)
        for rank, other in enumerate(values):
            if type(other) is not type(value):
                raise _errors.IOFailure(
                    f"global_shuffle: rank {rank} is at another point than rank {self.rank}; a call may have been "
                    "interrupted on one of them: start all ranks again"
                )
        return values

    def _gather(self, value: Any, meanwhile: Callable[[], None]) -> list[Any]:
        gatherer = None
        if self.has_only_nccl:
            gatherer = store_gather_of(self._group, self.rank, self.world, self._gather_by_engine)
        if gatherer is None:
            meanwhile()
            return self._gather_by_engine(value)
        self._call(gatherer.check)
        self.has_told = True
        self._call(gatherer.send, pickle.dumps(value))
        meanwhile()
        return [pickle.loads(own) for own in self._call(gatherer.receive)]

    @property
    def _group(self) -> Any:
        return self.group if self.group is not None else dist.distributed_c10d._get_default_group()

    @property
    def _gatherer(self) -> StoreGather | None:
        return known_store_gather_of(self._group) if self.world > 1 else None

    @property
    def tells_first(self) -> bool:
        """Whether gather() gives the others the value of this rank before it calls `meanwhile`. If not, an error of
        `meanwhile` can be part of the value. Known after the first gather()."""
        return self._gatherer is not None

    def _wait_for(self, event: Any) -> None:
        """Waits for the event. Fails if a rank has left: the work before the event may wait for this rank."""
        pause, looked = 10e-6, time.monotonic()
        while not event.query():
            time.sleep(pause)
            pause = min(2 * pause, 200e-6)
            if time.monotonic() > looked + 1:
                gatherer, looked = self._gatherer, time.monotonic()
                if gatherer:
                    gatherer.check_others()

    def leave(self) -> None:
        """After an error that the other ranks may not have. If they gather through their store, they fail in this gather()
        or in the next one."""
        if gatherer := self._gatherer:
            gatherer.leave()

    def tidy(self) -> None:
        """After a call, while the GPU works. If the store fails now, the next call will notice."""
        if gatherer := self._gatherer:
            with contextlib.suppress(RuntimeError):
                gatherer.tidy()

    def finish(self) -> None:
        """After the last gather() of a call that all ranks leave here, because their processes may end now."""
        self.tidy()
        if gatherer := self._gatherer:
            gatherer.finish()

    def _gather_by_engine(self, value: Any) -> list[Any]:
        values = [value] * self.world
        self.has_told = True
        self._call(dist.all_gather_object, values, value, group=self.group)
        return values

    def exchanges_on(self, device: torch.device) -> bool:
        """Whether the engine has an all-to-all for tensors on the device. gloo only sends between pairs."""
        return self._engine in ("mpi", "ucc") or self.uses_nccl(device)

    def uses_nccl(self, device: torch.device) -> bool:
        """Whether NCCL exchanges the tensors of the device, or this rank is alone. The work follows the order of CUDA
        streams."""
        return device.type == "cuda" and (self.world == 1 or "nccl" in self._engine)

    def start(self, received: torch.Tensor, sent: torch.Tensor, arriving: list[int], to: list[int]) -> Any:
        """Starts an exchange of bytes. Returns a function that waits for its end, and keeps the tensors
        until then."""
        if self.exchanges_on(sent.device):
            work = [self._call(dist.all_to_all_single, received, sent, arriving, to, self.group, True)]
            return lambda tensors=(received, sent): self._finish(work)
        there = received if received.device.type == "cpu" else torch.empty(received.shape, dtype=torch.uint8, device="cpu")
        here = sent.cpu()
        work = list(self._send_between_pairs(there, here, arriving, to))

        def finish(here: torch.Tensor = here) -> None:
            self._finish(work)
            if there is not received:
                received.copy_(there)

        return finish

    def make_token(self, device: torch.device) -> None:
        """Allocates the memory that wait_for_all() needs."""
        if self.world > 1 and (self._token is None or self._token.device != device):
            self._token = torch.zeros(1, device=device)

    def wait_for_all(self, device: torch.device) -> None:
        """The current stream of the device waits until all ranks have come to this point in theirs."""
        if self.world == 1:
            return
        self.make_token(device)
        self._call(dist.all_reduce, self._token, group=self.group)

    def _send_between_pairs(
        self, received: torch.Tensor, sent: torch.Tensor, arriving: list[int], to: list[int]
    ) -> Iterator[Any]:
        inputs, outputs = sent.split(to), received.split(arriving)
        for distance in range(self.world):
            target, source = (self.rank + distance) % self.world, (self.rank - distance) % self.world
            if distance == 0:
                outputs[source].copy_(inputs[target])
                continue
            if arriving[source]:
                yield self._call(dist.irecv, outputs[source], self._number(source), self.group)
            if to[target]:
                yield self._call(dist.isend, inputs[target], self._number(target), self.group)

    def _number(self, rank: int) -> int:
        """The number of a rank of the group among all processes."""
        if self.group is None or self.group is dist.group.WORLD:
            return rank
        find = getattr(dist, "get_global_rank", None) or dist.distributed_c10d.get_global_rank
        return int(find(self.group, rank))

    def _finish(self, work: list[Any]) -> None:
        for one in work:
            self._call(one.wait)
