# SPDX-License-Identifier: MIT
"""shufd.torch.global_shuffle over nccl, on a machine with several GPUs: the cases of nccl_cases.py."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import Daemon

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

CASES = pathlib.Path(__file__).parent / "nccl_cases.py"


def worlds():
    return [world for world in (1, 2, 4, 8) if world <= torch.cuda.device_count()]


@pytest.mark.parametrize("world", worlds())
def test_cases(world, tmp_path):
    """A daemon for each GPU. Torch finds the GPUs in the order of the bus, as the daemons do."""
    environment = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    daemons = []
    try:
        for rank in range(world):
            (tmp_path / str(rank)).mkdir()
            daemons.append(Daemon(tmp_path / str(rank), "--backend", f"cuda:{rank}"))
            daemons[-1].start()
            environment[f"SHUFD_SOCKET_{rank}"] = daemons[-1].socket
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(world), CASES],
            env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    finally:
        for daemon in daemons:
            daemon.kill()
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
