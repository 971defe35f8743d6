# SPDX-License-Identifier: MIT
"""The rank of this process and the number of ranks, from the launcher."""

from __future__ import annotations

import os
import sys

from ._errors import Invalid

_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)


def _of_launcher() -> tuple[int, int] | None:
    """From torch.distributed if it is initialised, else from the first pair of variables of torchrun,
    Slurm or Open MPI that is set."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    for rank, world in _VARIABLES:
        if rank in os.environ and world in os.environ:
            try:
                return int(os.environ[rank]), int(os.environ[world])
            except ValueError:
                raise Invalid(
                    f"${rank}, ${world}: {os.environ[rank]!r}, {os.environ[world]!r}: expected integers"
                ) from None
    return None


def launched_ranks() -> int:
    """The number of ranks that the launcher started; 1 without a launcher."""
    found = _of_launcher()
    return 1 if found is None else found[1]


def rank_and_world(rank: int | None = None, world: int | None = None) -> tuple[int, int]:
    """The rank of this process and the number of ranks. A missing argument comes from the launcher.
    Without a launcher and without arguments, there is one rank. Fails with Invalid if one of the
    two is unknown, or if the launcher has another number of ranks, because two ranks would then
    draw the same indices."""
    if world is not None and world < 1:
        raise Invalid(f"num_replicas: {world}: expected 1 or more")
    if rank is None or world is None:
        found = _of_launcher()
        if rank is None and world in (None, 1) and found is None:
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
