# SPDX-License-Identifier: MIT
"""shufd.torch.global_shuffle over nccl, on a machine with several GPUs: the cases of nccl_cases.py."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys

import pytest
from conftest import Daemon

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

CASES = pathlib.Path(__file__).parent / "nccl_cases.py"
FAULT = pathlib.Path(__file__).parent / "nccl_fault.py"


@contextlib.contextmanager
def daemons(path, count):
    """A daemon for each of the first GPUs. Gives their sockets."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for gpu in range(count):
            (path / str(gpu)).mkdir()
            daemon = Daemon(path / str(gpu), "--backend", f"cuda:{gpu}")
            stack.callback(daemon.kill)
            daemon.start()
            sockets.append(daemon.socket)
        yield sockets


def worlds():
    return [world for world in (1, 2, 4, 8) if world <= torch.cuda.device_count()]


@pytest.mark.parametrize("world", worlds())
def test_cases(world, tmp_path):
    """A daemon for each GPU. Torch finds the GPUs in the order of the bus, as the daemons do."""
    environment = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    with daemons(tmp_path, world) as sockets:
        environment.update({f"SHUFD_SOCKET_{rank}": socket for rank, socket in enumerate(sockets)})
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(world), CASES],
            env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rank_that_ends(tmp_path):
    """The other rank fails after the timeout of the group."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    with daemons(tmp_path, 2) as sockets:
        try:
            for rank in range(2):
                environment = dict(
                    os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID", RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                    MASTER_PORT=str(port), SHUFD_SOCKET=sockets[rank],
                )  # fmt: skip
                ranks.append(subprocess.Popen(
                    [sys.executable, FAULT], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                ))  # fmt: skip
            out, errors = ranks[0].communicate(timeout=120)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
    assert out.startswith("IOFailure: global_shuffle: rank 0 of 2: the exchange with the other ranks failed"), errors
