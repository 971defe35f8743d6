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


def rank_and_world() -> tuple[int, int]:
    """From torch.distributed if it is initialised, else from the first pair of variables of torchrun,
    Slurm or Open MPI that is set; else (0, 1)."""
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
    return 0, 1
