# SPDX-License-Identifier: MIT
"""A check at the start of a job: all ranks compute the same permutations."""

from __future__ import annotations

import datetime
import itertools
import json
import socket
from typing import Any

from . import _errors, _ranks
from ._arguments import integer, seed_of, shown
from ._errors import Error, IOFailure, Mismatch

_N = 1_000_003
_READERS = datetime.timedelta(seconds=10)  # a rank that has read the descriptions waits for the others at most so long


def _description(client: Any, n: int, seed: int, epoch: int, algorithm: str) -> dict[str, Any]:
    import shufd

    client = client or shufd.default_client()
    return {
        "algorithm": algorithm,
        "n": integer("n", n),  # the store has text, so no numbers of NumPy
        "seed": seed_of(seed),
        "epoch": integer("epoch", epoch),
        "version": shufd.__version__,
        "fingerprint": client.fingerprint(n, seed, epoch, algorithm=algorithm),
    }


def _of_sampler(sampler: Any) -> dict[str, Any]:
    """What the ranks must have in common, and the rank."""
    state = getattr(sampler, "state_dict", None)
    if state is None:
        raise _errors.Invalid(f"verify: {shown(sampler)}: expected a sampler of shufd.torch")
    description = {"sampler": type(sampler).__name__, "len()": len(sampler), **state()}
    for name in ("num_replicas", "drop_last", "batch_size"):
        if hasattr(sampler, name):
            description[name] = getattr(sampler, name)
    source = getattr(sampler, "sampler", sampler)  # of a BatchSampler
    return {**description, "rank": getattr(source, "rank", None)}


def verify(
    *samplers: Any,
    group: Any = None,
    n: int = _N,
    seed: int = 0,
    epoch: int = 0,
    algorithm: str = "primefold",
    client: Any = None,
) -> str:
    """Compares algorithm, n, seed, epoch, version and the fingerprint of the permutation between the
    ranks of a process group, through the store of torch.distributed. All ranks call it.

    samplers  also compares these samplers of shufd.torch: length, place, data, seed, epoch and options. If a
              sampler has as many ranks as the group, no two ranks may have the same share
    group  None: all ranks. In a single process there is nothing to compare.
    Returns the fingerprint, as Client.fingerprint(). Fails with Mismatch, which names the nodes that
    differ from the first rank, on every rank. If a rank has no daemon, or its daemon refuses the
    request, every rank fails with the error of this rank. Fails with Invalid if the launcher has
    several ranks, but torch.distributed is not initialised, and with IOFailure if a rank does not come
    before the timeout of torch.distributed.
    """
    _ranks.check_group()
    dist = _ranks.group_of_torch()
    try:
        own = _description(client, n, seed, epoch, algorithm)
        for number, sampler in enumerate(samplers):
            own |= {f"sampler {number}: {name}": value for name, value in _of_sampler(sampler).items()}
    except Exception as error:
        if dist is None:
            raise
        own = {"error": [type(error).__name__, str(error) or type(error).__name__]}  # told to the others, which would wait
    if dist is not None:
        ranks = list(range(dist.get_world_size())) if group is None else dist.get_process_group_ranks(group)
        _compare(dist, ranks, own)
    return str(own["fingerprint"])


def _await(store: Any, key: str, rank: int) -> Any:
    try:
        return store.get(key)
    except RuntimeError as error:  # DistStoreError is one too
        raise IOFailure(f"verify: rank {rank} did not come; it may have ended: {error}") from error


def _leave(store: Any, key: str, ranks: int) -> None:
    """Waits for the other readers, because the store ends with the process of one of the ranks."""
    try:
        if store.add(f"{key}/readers", 1) == ranks:
            store.set(f"{key}/read", "")
        store.wait([f"{key}/read"], _READERS)
    except RuntimeError:
        pass  # another rank has ended; this one has read all that it needs


def _compare(dist: Any, ranks: list[int], own: dict[str, Any]) -> None:
    store = dist.distributed_c10d._get_default_store()
    group = f"shufd/verify/{'-'.join(map(str, ranks))}"
    key = f"{group}/{store.add(f'{group}/{dist.get_rank()}', 1)}"  # all ranks of the group call for this time
    mine = {"node": socket.gethostname(), **own}
    store.set(f"{key}/{dist.get_rank()}", json.dumps(mine))
    found = {rank: json.loads(_await(store, f"{key}/{rank}", rank)) for rank in ranks}
    _leave(store, key, len(ranks))
    for rank, other in found.items():
        if "error" in other:
            name, message = other["error"]
            raise getattr(_errors, name, Error)(f"rank {rank} on {other['node']}: {message}")
    first = found[ranks[0]]
    wrong = [
        f"rank {rank} on {other['node']}: {name} {other.get(name)}, expected {first.get(name)} as on rank {ranks[0]} ({first['node']})"
        for rank, other in found.items()
        for name in _differences(first, other)
        if not name.endswith(": rank")
    ]
    wrong += _equal_shares(found)
    if wrong:
        raise Mismatch("; ".join(wrong))


def _differences(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names, also of one of the two only, whose values differ."""
    return [name for name in {**first, **other} if name != "node" and first.get(name) != other.get(name)]


def _equal_shares(found: dict[int, dict[str, Any]]) -> list[str]:
    """The ranks with the same share of a sampler as a rank before."""
    first = next(iter(found.values()))
    wrong = []
    for name in [name for name in first if name.endswith(": rank")]:
        if first.get(name.replace("rank", "num_replicas")) != len(found):
            continue
        owners: dict[Any, int] = {}
        for rank, other in found.items():
            owner = owners.setdefault(other.get(name), rank)
            if owner != rank:
                wrong.append(f"rank {rank} on {other['node']}: {name} {other.get(name)}, which rank {owner} has, too")
    return wrong


_numbers = itertools.count(1)  # of samplers, in the order of their first checks, which all ranks have in common


class RankCheck:
    """Compares a sampler with that of the rank that came first, and never waits for another rank. Compares only
    samplers of all ranks of torch.distributed: `world` ranks share the indices."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._number, self._count = 0, 0  # of the sampler, and of its checks

    def run(self, sampler: Any, world: int, again: bool = False) -> None:
        """The first time, and with `again` each time."""
        dist = _ranks.group_of_torch()
        if not self._is_wanted or (self._count > 0 and not again):
            return
        if dist is None or world != dist.get_world_size() or world == 1 or _ranks.in_worker():
            return  # a worker would use the connection of its parent to the store
        self._number = self._number or next(_numbers)
        self._count += 1
        try:
            _compare_with_first(dist, f"shufd/sampler/{self._number}/{self._count}", sampler)
        except RuntimeError:  # the rank that has the store may have ended after its last iteration
            if self._count == 1:
                raise


def _compare_with_first(dist: Any, key: str, sampler: Any) -> None:
    store = dist.distributed_c10d._get_default_store()
    description = _of_sampler(sampler)
    share, own = description.pop("rank"), f"rank {dist.get_rank()} on {socket.gethostname()}"
    owner = own if share is None else store.compare_set(f"{key}/{share}", "", own).decode()
    first = json.loads(store.compare_set(key, "", json.dumps({"node": own, **description})))
    wrong = [f"rank {share}, which {owner} has, too"] if owner != own else []
    wrong += [
        f"{name} {description.get(name)}, expected {first.get(name)} as on {first['node']}"
        for name in _differences(first, description)
    ]
    if wrong:
        raise Mismatch(f"sampler: {own}: {'; '.join(wrong)}; call set_epoch() on all ranks, or pass check_ranks=False")
