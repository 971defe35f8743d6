# SPDX-License-Identifier: MIT
"""The rank of this process and the number of ranks, from the launcher."""

from __future__ import annotations

import os
import sys
from typing import Any

from ._arguments import integer
from ._errors import Invalid

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
