# SPDX-License-Identifier: MIT
"""shufd.torch.global_shuffle over nccl, on a machine with several GPUs: the cases of nccl_cases.py."""

import contextlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

import shufd
from conftest import Daemon, await_value
from ports import free_port

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


@contextlib.contextmanager
def host_daemon(path):
    """The socket of a daemon that computes on the processors."""
    (path / "host").mkdir()
    daemon = Daemon(path / "host", "--backend", "cpu").start()
    try:
        yield daemon.socket
    finally:
        daemon.kill()


def variables_of(sockets):
    return {f"SHUFD_SOCKET_{rank}": path for rank, path in enumerate(sockets)}


def worlds():
    return [world for world in (1, 2, 4, 8) if world <= torch.cuda.device_count()]


@pytest.mark.parametrize("world", worlds())
def test_cases(world, tmp_path):
    """A daemon for each GPU. Torch finds the GPUs in the order of the bus, as the daemons do."""
    environment = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    with daemons(tmp_path, world) as sockets, host_daemon(tmp_path) as host:
        environment.update(variables_of(sockets), SHUFD_SOCKET_HOST=host)
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(world), CASES],
            env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def faulty_ranks(sockets, how):
    """The two processes of nccl_fault.py."""
    port = free_port()
    ranks = []
    try:
        for rank in range(2):
            environment = dict(
                os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID", RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), **variables_of(sockets),
            )  # fmt: skip
            ranks.append(subprocess.Popen(
                [sys.executable, FAULT, how], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ))  # fmt: skip
        yield ranks
    finally:
        for process in ranks:
            process.kill()
            process.wait()


def check_daemons(sockets):
    """They have no leases any more, and still compute on their GPUs."""
    for path in sockets:
        with shufd.connect(path) as client:
            assert await_value(client.leases, []) == []
            expected = shufd.local.Permutation(1_000_000, 7).range(0, 1_000_000)
            assert client.status()["backend"] == "cuda" and np.array_equal(client.permute(1_000_000, seed=7), expected)


def test_rank_that_ends_before_a_call(tmp_path):
    """The other rank fails after the timeout of the group. It has given its plan back while it lives."""
    with daemons(tmp_path, 2) as sockets:
        with faulty_ranks(sockets, "before") as ranks:
            out, errors = ranks[0].communicate(timeout=120)
        check_daemons(sockets)
    error, leases = out.splitlines()
    assert error.startswith("IOFailure: global_shuffle: rank 0 of 2: the exchange with the other ranks failed"), errors
    assert leases == "leases: [[], []]"


@pytest.mark.parametrize("how, kind", [("written", "WrittenMove"), ("direct", "DirectMove")])
def test_rank_that_ends_while_rows_move(tmp_path, how, kind):
    """The call of the other rank has returned. Torch ends this rank after the timeout of the group, or its GPU reports
    an error before. All leases come back."""
    with daemons(tmp_path, 2) as sockets:
        with faulty_ranks(sockets, how) as ranks:
            out, errors = ranks[0].communicate(timeout=300)
            assert ranks[1].wait(timeout=60) == 0, ranks[1].stderr.read()
        check_daemons(sockets)
    assert out.splitlines()[:1] == [kind], out + errors
    assert ranks[0].returncode != 0 and "the GPU has ended its work" not in out, out + errors
