# SPDX-License-Identifier: MIT
"""A check at the start of a job: all ranks compute the same permutations."""

from __future__ import annotations

import json
import socket
from typing import Any

from . import _errors, _ranks
from ._arguments import integer, seed64
from ._errors import Error, IOFailure, Mismatch

_N = 1_000_003


def _description(client: Any, n: int, seed: int, epoch: int, algorithm: str) -> dict[str, Any]:
    import shufd

    client = client or shufd.default_client()
    return {
        "algorithm": algorithm,
        "n": integer("n", n),  # the store has text, so no numbers of NumPy
        "seed": seed64(seed),
        "epoch": integer("epoch", epoch),
        "version": shufd.__version__,
        "fingerprint": client.fingerprint(n, seed, epoch, algorithm=algorithm),
    }


def verify(
    group: Any = None,
    *,
    n: int = _N,
    seed: int = 0,
    epoch: int = 0,
    algorithm: str = "primefold",
    client: Any = None,
) -> str:
    """Compares algorithm, n, seed, epoch, version and the fingerprint of the permutation between the
    ranks of a process group, through the store of torch.distributed. All ranks call it.

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


def _compare(dist: Any, ranks: list[int], own: dict[str, Any]) -> None:
    store = dist.distributed_c10d._get_default_store()
    group = f"shufd/verify/{'-'.join(map(str, ranks))}"
    key = f"{group}/{store.add(f'{group}/{dist.get_rank()}', 1)}"  # all ranks of the group call for this time
    mine = {"node": socket.gethostname(), **own}
    store.set(f"{key}/{dist.get_rank()}", json.dumps(mine))
    found = {rank: json.loads(_await(store, f"{key}/{rank}", rank)) for rank in ranks}
    for rank, other in found.items():
        if "error" in other:
            name, message = other["error"]
            raise getattr(_errors, name, Error)(f"rank {rank} on {other['node']}: {message}")
    expected = {k: v for k, v in found[ranks[0]].items() if k != "node"}
    wrong = [
        f"rank {rank} on {other['node']}: {name} {other[name]}, expected {value} as on rank {ranks[0]} "
        f"({found[ranks[0]]['node']})"
        for rank, other in found.items()
        for name, value in expected.items()
        if other[name] != value
    ]
    if wrong:
        raise Mismatch("; ".join(wrong))
