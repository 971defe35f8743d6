# SPDX-License-Identifier: MIT
"""The ranks of a job: their numbers from the launcher, and checks that all ranks compute the same permutations."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import socket
import sys
from typing import Any

from . import _errors
from ._arguments import integer, seed_of, shown
from ._errors import Error, IOFailure, Invalid, Mismatch

# ---- The rank of this process and the number of ranks --------------------------------------------

# Those of torchrun, of Open MPI, whose processes may also have those of a Slurm step, and of srun. $SLURM_NTASKS would be
# wrong: a script of sbatch has it too, in its one process.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def group_of_torch() -> Any:
    """torch.distributed if it is initialised, else None."""
    dist = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def _of_variables() -> tuple[int, int, str] | None:
    """The rank, the number of ranks and the variable of this number, from the first pair that is set."""
    for rank, world in _VARIABLES:
        if rank in os.environ and world in os.environ:
            try:
                return int(os.environ[rank]), int(os.environ[world]), world
            except ValueError:
                raise Invalid(
                    f"${rank}, ${world}: {os.environ[rank]!r}, {os.environ[world]!r}: expected integers"
                ) from None
    return None


def _of_launcher() -> tuple[int, int] | None:
    """From torch.distributed if it is initialised, else from the variables of torchrun, Open MPI or srun."""
    dist = group_of_torch()
    if dist is not None:
        return dist.get_rank(), dist.get_world_size()
    found = _of_variables()
    return None if found is None else found[:2]


def check_group() -> None:
    """Fails in a job of several ranks without a process group, because a call of all ranks would use this
    rank alone."""
    found = _of_variables()
    if found is not None and found[1] > 1 and group_of_torch() is None:
        raise Invalid(
            f"{found[2]} is {found[1]}, but torch.distributed is not initialised: call "
            "torch.distributed.init_process_group() first"
        )


def launched_ranks() -> int:
    """The number of ranks that the launcher started; 1 without a launcher."""
    found = _of_launcher()
    return 1 if found is None else found[1]


def in_worker() -> bool:
    """Whether this is a worker process of a DataLoader."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _is_in_started_worker() -> bool:
    """Whether this is such a process, started by spawn or forkserver."""
    process = sys.modules.get("multiprocessing.process")
    method = process and getattr(process.current_process(), "_start_method", None)
    return method in ("spawn", "forkserver") and in_worker()


def rank_and_world(rank: int | None = None, world: int | None = None) -> tuple[int, int]:
    """The rank of this process and the number of ranks. A missing argument comes from the launcher.
    Without a launcher and without arguments, there is one rank. Fails with Invalid if one of the
    two is unknown, as in a spawned worker of a DataLoader, or if the launcher has another number of
    ranks, because two ranks would then draw the same indices."""
    rank = None if rank is None else integer("rank", rank)
    world = None if world is None else integer("num_replicas", world)
    if world is not None and world < 1:
        raise Invalid(f"num_replicas: {world}: expected 1 or more")
    if rank is None or world is None:
        found = _of_launcher()
        if rank is None and world in (None, 1) and found is None:
            if world is None and _is_in_started_worker():
                raise Invalid(
                    "rank: None, num_replicas: None: a worker process that is not forked does not know the ranks; make "
                    "the sampler before the DataLoader, or pass num_replicas and rank"
                )
            return 0, 1
        if found is None:
            raise Invalid(
                f"rank: {rank}, num_replicas: {world}: expected both, or ranks of torch.distributed or of "
                "the variables RANK and WORLD_SIZE"
            )
        if world is not None and world != found[1]:
            raise Invalid(
                f"num_replicas: {world}: expected {found[1]}, the number of ranks of the launcher, or a rank, too"
            )
        rank, world = found[0] if rank is None else rank, found[1]
    if not 0 <= rank < world:
        raise Invalid(f"rank: {rank}: expected 0 to num_replicas - 1, which is {world - 1}")
    return rank, world


# ---- Checks at the start of a job ----------------------------------------------------------------

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


def _state_of(sampler: Any) -> dict[str, Any]:
    state = getattr(sampler, "state_dict", None)
    if state is None:
        raise _errors.Invalid(f"verify: {shown(sampler)}: expected a sampler of shufd.torch")
    return dict(state())


def _of_sampler(sampler: Any, state: dict[str, Any]) -> dict[str, Any]:
    """What the ranks must have in common, and the rank."""
    description = {"sampler": type(sampler).__name__, "len()": len(sampler), **state}
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
    check_group()
    dist = group_of_torch()
    try:
        own = _description(client, n, seed, epoch, algorithm)
        for number, sampler in enumerate(samplers):
            own |= {f"sampler {number}: {name}": value for name, value in _of_sampler(sampler, _state_of(sampler)).items()}
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
        dist = group_of_torch()
        if not self._is_wanted or (self._count > 0 and not again):
            return
        if dist is None or world != dist.get_world_size() or world == 1 or in_worker():
            return  # a worker would use the connection of its parent to the store
        self._number = self._number or next(_numbers)
        try:
            _compare_with_first(dist, f"shufd/sampler/{self._number}/{self._count + 1}", sampler)
        except RuntimeError:  # the rank that has the store may have ended after its last iteration
            if self._count == 0:
                raise
        self._count += 1  # after a Mismatch, the next iteration is checked again


def _compare_with_first(dist: Any, key: str, sampler: Any) -> None:
    store = dist.distributed_c10d._get_default_store()
    description = _of_sampler(sampler, sampler._common_state())  # state_dict() would save for a loader of torchdata
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
