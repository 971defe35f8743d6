# SPDX-License-Identifier: MIT
"""shufd.torch.global_shuffle over nccl, on a machine with several GPUs. The tests start the ranks, which run this file as a
program.

    test_nccl.py cases | before | written | direct
"""

import contextlib
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

import torch.distributed as dist

import shufd
import shufd.torch
from conftest import Daemon, await_value
from ranks import free_port
from shufd import _agreement, _global_shuffle, _moves, _one_sided, _peer_memory, _process_group

# ---- Ranks that run cases ------------------------------------------------------------------------
# Every rank makes all rows from the seed of the case, and shuffles its own. The result of every rank is compared with one
# shuffle of all rows. Rank 0 prints a line for each case: its method, and whether it and its inverse were right.


def evenly(n, world):
    return [n // world + (rank < n % world) for rank in range(world)]


def cases(world):
    """name, bytes of a row, sizes before, sizes after, options, expected method"""
    even = evenly(100_003, world)
    first = [sum(even), *[0] * (world - 1)]
    for width in (1, 3, 8, 12, 48):
        yield f"{width} bytes", width, even, even, {}, "WrittenMove"
    for width in (64, 65, 96, 256, 1000):
        yield f"{width} bytes", width, even, even, {}, "DirectMove"
    images = evenly(101, world)
    yield "images", 150_528, images, images, {}, "DirectMove"
    many, more = evenly(300_001 * world, world), [*evenly(100_000 * world, world)]
    more[0] += 200_000 * world + world
    yield "parts", 8, many, many, {"budget": 4 << 20}, "WrittenMove"
    yield "parts to one rank", 4, many, more, {"budget": 6 << 20}, "WrittenMove"
    yield "windows", 1, [n * 20 for n in many], [n * 20 for n in many], {}, "WrittenMove"
    yield "windows, wide", 64, [n * 20 for n in many], [n * 20 for n in many], {}, "DirectMove"
    few = evenly(1003, world)
    yield "a row a round", 8, few, few, {"budget": 1}, "StagedMove"
    yield "direct rounds", 80, even, even, {"budget": 20_000}, "DirectMove"
    yield "images in rounds", 150_528, images, images, {"budget": 1}, "DirectMove"
    yield "from one rank", 72, first, even, {}, "DirectMove"
    yield "to one rank", 72, even, first, {}, "DirectMove"
    yield "narrow, from one rank", 4, first, even, {}, "WrittenMove"
    yield "narrow, to one rank", 4, even, first, {}, "WrittenMove"
    yield "few narrow rows", 8, [1] + [0] * (world - 1), [0] * (world - 1) + [1], {}, "WrittenMove"
    yield "few rows", 128, [1] + [0] * (world - 1), [0] * (world - 1) + [1], {}, "DirectMove"
    yield "unaligned", 8, even, even, {"offset": 1}, "WrittenMove"
    yield "unaligned, wide", 80, even, even, {"offset": 4}, "DirectMove"
    yield "default device", 8, even, even, {"default": "cuda"}, "WrittenMove"
    yield "not contiguous", 128, even, even, {"strided": True}, "TorchMove"
    yield "written, wide", 256, even, even, {"least": 1 << 40}, "WrittenMove"
    yield "written, images", 150_528, images, images, {"least": 1 << 40}, "WrittenMove"
    yield "staged", 8, even, even, {"reads": False}, "StagedMove"
    yield "staged, in rounds", 8, even, even, {"reads": False, "budget": 20_000}, "StagedMove"
    yield "staged, wide", 256, even, even, {"reads": False}, "StagedMove"
    yield "staged, images in rounds", 150_528, images, images, {"reads": False, "budget": 1 << 20}, "StagedMove"
    if world == 1:
        return
    for width in (8, 256):
        yield f"{width} bytes, a rank cannot open memory", width, even, even, {"fault": "open"}, "StagedMove"
    yield "a rank has no memory for its stage", 8, even, even, {"fault": "stage"}, "StagedMove"
    for width in (8, 256):
        for budget in (None, 200_000):
            options = {"fault": "host", "budget": budget}
            yield f"{width} bytes, a rank has its plan in host memory, budget {budget}", width, even, even, options, "StagedMove"
    for name, n, width in (("narrow", 32_000_017, 8), ("wide", 1_000_003, 256)):
        rows = evenly(n, world)
        yield f"little memory, {name}", width, rows, rows, {"memory": 1.5, "reads": name == "narrow"}, "StagedMove"
    for width in (8, 256):
        kind = "DirectMove" if width >= 64 else "WrittenMove"
        yield f"{width} bytes, several engines", width, even, even, {"engines": "cpu:gloo,cuda:nccl"}, kind


def is_last():
    return dist.get_rank() == dist.get_world_size() - 1


@contextlib.contextmanager
def fault(kind):
    """The last rank cannot open the memory of the others, or has none for its stage."""
    no_memory = mock.patch.object(_agreement, "Stage", side_effect=torch.cuda.OutOfMemoryError("no memory"))
    cannot_open = mock.patch.object(_peer_memory.PeerMemory, "open", return_value=None)
    faults = {"stage": no_memory, "open": cannot_open} if is_last() else {}
    with faults.get(kind, contextlib.nullcontext()):
        yield
    _agreement._cannot_open.clear()


@contextlib.contextmanager
def little_memory(own, times):
    """The last rank may take so many times the bytes of its rows."""
    if times and is_last():
        torch.cuda.empty_cache()
        most = torch.cuda.memory_reserved() + times * own.nbytes
        torch.cuda.set_per_process_memory_fraction(most / torch.cuda.get_device_properties(0).total_memory)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def run(case, client, host, used):
    """`host` is a client of a daemon that computes on the processors. With the fault "host" the last rank has only this
    one: its rows move by the operations of torch, those of the others by kernels."""
    name, width, before, after, options, expected = case
    if dist.get_world_size() == 1:
        alone = {"StagedMove": "LocalKernelMove", "DirectMove": "LocalKernelMove", "TorchMove": "LocalMove"}
        expected = alone.get(expected, expected)
    options = dict(options)
    strided, least = options.pop("strided", False), options.pop("least", _one_sided.LEAST_DIRECT_BYTES)
    offset, default = options.pop("offset", 0), options.pop("default", None)
    broken, engines, memory = options.pop("fault", None), options.pop("engines", None), options.pop("memory", None)
    group = dist.new_group(backend=engines) if engines else None
    whole_client = client
    if broken == "host" and is_last():
        client, expected = host, "TorchMove"
    if not options.pop("reads", True):
        os.environ["NCCL_P2P_DISABLE"] = "1"  # NCCL itself has started
    if memory:
        torch.cuda.empty_cache()  # the rows take a segment of their own, which has no room beside them
    rank = dist.get_rank()
    rows = np.random.default_rng(sum(map(ord, name))).integers(0, 256, (sum(before), width), np.uint8)
    own = torch.from_numpy(rows[sum(before[:rank]) : sum(before[: rank + 1])].copy()).cuda()
    if offset:
        larger = own.new_empty(own.numel() + offset)
        larger[offset:] = own.view(-1)
        own = larger[offset:].view(-1, width)
    if strided:
        larger = own.new_zeros((2 * len(own), width))
        larger[::2] = own
        own = larger[::2]
    usual, _one_sided.LEAST_DIRECT_BYTES = _one_sided.LEAST_DIRECT_BYTES, least
    torch.set_default_device(default)
    used.clear()
    options.update(seed=7, epoch=width, client=client)
    with fault(broken):
        with little_memory(own, memory):
            shuffled = shufd.torch.global_shuffle(own, group, output_size=after[rank], **options)
        methods = set(used)
        back = shufd.torch.global_shuffle(shuffled, group, output_size=before[rank], inverse=True, **options)
    torch.set_default_device(None)
    _one_sided.LEAST_DIRECT_BYTES = usual
    os.environ.pop("NCCL_P2P_DISABLE", None)
    whole = torch.from_numpy(np.array(whole_client.shuffle(rows, seed=7, epoch=width)))
    right = torch.equal(shuffled.cpu(), whole[sum(after[:rank]) : sum(after[: rank + 1])])
    agreed = torch.tensor([right, torch.equal(back, own), methods == {expected}], device="cuda").int()
    dist.all_reduce(agreed, dist.ReduceOp.MIN)
    if rank == 0:
        print(f"{name}: {' '.join(sorted(methods))}, right {bool(agreed[0])}, back {bool(agreed[1])}", flush=True)
    return bool(agreed.all())


def watch_methods():
    """A list that gets the name of the method of each move."""
    used = []
    for kind in (
        _moves.LocalMove, _moves.TorchMove, _moves.LocalKernelMove, _moves.StagedMove, _one_sided.WrittenMove,
        _one_sided.DirectMove,
    ):  # fmt: skip
        def run(self, rounds, kind=kind, own=kind.run):
            used.append(kind.__name__)
            return own(self, rounds)

        kind.run = run
    return used


def without_memory(client):
    """The last rank has no memory for its result, so all ranks fail alike."""
    torch.cuda.empty_cache()
    own = torch.arange(1 << 22, device="cuda")
    try:
        with little_memory(own, 0.5):
            shufd.torch.global_shuffle(own, seed=3, client=client)
        return False
    except shufd.OutOfMemory as error:
        words = f"global_shuffle: rank {dist.get_world_size() - 1}: "
        return words in str(error) and len(shufd.torch.global_shuffle(own, seed=3, client=client)) == len(own)


def several_tensors(client, rank, world):
    """Tensors of one allocation, with a method each, share a plan."""
    n = 10_007
    sizes = evenly(n, world)
    numbers = torch.arange(sum(sizes[:rank]), sum(sizes[: rank + 1]), device="cuda")
    data = {"wide": numbers[:, None].repeat(1, 16), "narrow": numbers, "halves": numbers.to(torch.bfloat16)}
    shuffled = shufd.torch.global_shuffle(data, seed=3, client=client)
    return torch.equal(shuffled["wide"][:, 15], shuffled["narrow"]) and torch.equal(
        shuffled["narrow"].to(torch.bfloat16), shuffled["halves"]
    )


def kill_daemon(client):
    """Returns when the daemon has ended."""
    pid = client.status()["pid"]
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(FileNotFoundError):
        while pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
            time.sleep(0.01)


def lost_daemon(client, host):
    """The daemon of the last rank is killed as soon as the rank has its plan. The rows still arrive, and the next call
    fails on all ranks."""
    rank, take, sizes = dist.get_rank(), _global_shuffle.Planner.take, evenly(3_000_017, dist.get_world_size())

    def take_and_kill(*arguments):
        plan = take(*arguments)
        if is_last():
            kill_daemon(client)
        return plan

    numbers = torch.arange(sum(sizes[:rank]), sum(sizes[: rank + 1]), device="cuda")
    data = [numbers, numbers[:, None].repeat(1, 16)]
    with mock.patch.object(_global_shuffle.Planner, "take", take_and_kill):
        narrow, wide = shufd.torch.global_shuffle(data, seed=3, epoch=1, client=client)
    expected = host.permute(sum(sizes), seed=3, epoch=1, dtype="i64")[sum(sizes[:rank]) : sum(sizes[: rank + 1])]
    right = torch.equal(narrow.cpu(), torch.from_numpy(np.array(expected))) and torch.equal(wide[:, 15], narrow)
    try:
        shufd.torch.global_shuffle(numbers, seed=3, epoch=2, client=client)
    except shufd.NoDaemon as error:
        return right and f"rank {dist.get_world_size() - 1}: " in str(error)
    return False


def run_cases():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    client = shufd.connect(os.environ[f"SHUFD_SOCKET_{dist.get_rank()}"], reconnect=2)
    host = shufd.connect(os.environ["SHUFD_SOCKET_HOST"])
    used = watch_methods()
    right = [run(case, client, host, used) for case in cases(dist.get_world_size())]
    right.append(several_tensors(client, dist.get_rank(), dist.get_world_size()))
    right.append(without_memory(client))
    right.append(dist.get_world_size() == 1 or None not in _process_group._gathers.values())
    end = time.monotonic() + 5
    while (leases := client.leases() + host.leases()) and time.monotonic() < end:  # the calls do not wait for the GPU
        time.sleep(0.01)
    if dist.get_rank() == 0:
        print(f"{sum(right)} of {len(right)} right; {len(leases)} leases left", flush=True)
    lost = torch.tensor(int(lost_daemon(client, host)), device="cuda")
    dist.all_reduce(lost, dist.ReduceOp.MIN)
    right.append(bool(lost))
    if dist.get_rank() == 0:
        print(f"daemon killed after its plan: right {bool(lost)}", flush=True)
    dist.destroy_process_group()
    sys.exit(0 if all(right) and not leases else 1)


# ---- Ranks that fail -----------------------------------------------------------------------------
# Rank 1 ends before a call, or while rows move in it. Rank 0 prints its error or, if its call has returned, how its rows
# move. Then it waits for its GPU, for which it may wait until torch ends it.

TIMEOUT_S = 10
BYTES = {"before": 8, "written": 8, "direct": 256}  # of a row
WAITS = {"written": 2, "direct": 1}  # of run(): the last one is behind the first rows


def end_in_run(kind, how):
    """This rank ends in run(), when it has started to move rows."""
    waits = [0]

    def wait_for_all(ranks, device):
        waits[0] += 1
        if waits[0] == WAITS[how]:
            os._exit(0)
        return wait(ranks, device)

    def run(move, rounds):
        _process_group.Ranks.wait_for_all = wait_for_all
        return own(move, rounds)

    wait, own, kind.run = _process_group.Ranks.wait_for_all, kind.run, run


def print_kind(kind):
    """This rank prints how its rows move."""

    def run(move, rounds):
        print(f"{kind.__name__}", flush=True)
        return own(move, rounds)

    own, kind.run = kind.run, run


def leases_of(sockets, limit_s=20):
    """The leases of the daemons of both ranks, when there are none or after a while."""
    clients = [shufd.connect(path) for path in sockets]
    end = time.monotonic() + limit_s
    while any(leases := [client.leases() for client in clients]) and time.monotonic() < end:
        time.sleep(0.02)
    return leases


def run_fault(how):
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=TIMEOUT_S), device_id=device)
    sockets = [os.environ[f"SHUFD_SOCKET_{each}"] for each in range(2)]
    client = shufd.connect(sockets[rank])
    rows = torch.zeros((1 << 20, BYTES[how]), dtype=torch.uint8, device=device)
    shufd.torch.global_shuffle(rows, seed=1, client=client)
    torch.cuda.synchronize()
    if rank == 1 and how == "before":
        os._exit(0)
    if how != "before":
        kind = {"written": _one_sided.WrittenMove, "direct": _one_sided.DirectMove}[how]
        end_in_run(kind, how) if rank == 1 else print_kind(kind)
    try:
        shufd.torch.global_shuffle(rows, seed=2, client=client)
        torch.cuda.synchronize()
        print("the GPU has ended its work", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    if how == "before":  # the rank is alive, and must have no plan
        print("leases:", leases_of(sockets), flush=True)
    os._exit(3)


# ---- Tests ---------------------------------------------------------------------------------------


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
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(world), __file__, "cases"],
            env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def faulty_ranks(sockets, how):
    """The two processes of run_fault()."""
    port = free_port()
    ranks = []
    try:
        for rank in range(2):
            environment = dict(
                os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID", RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), **variables_of(sockets),
            )  # fmt: skip
            ranks.append(subprocess.Popen(
                [sys.executable, __file__, how], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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


if __name__ == "__main__":
    run_cases() if sys.argv[1] == "cases" else run_fault(sys.argv[1])
