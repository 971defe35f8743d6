# SPDX-License-Identifier: MIT
"""Ranks of torch.distributed over gloo, for tests: processes that run the functions of this module."""

import contextlib
import datetime
import math
import multiprocessing
import os
import random
import socket
import traceback
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist

import shufd
import shufd.torch
from shufd import _agreement, _global_shuffle, _moves, _process_group

_groups = {}  # of the first ranks, by their number


def free_port():
    """A port of TCP for a server that starts a little later. The kernel gives ports from 32768 on to anybody who asks
    for any port, also in between."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


def _has_libuv():
    try:
        dist.TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=60), False)
    except RuntimeError:
        return False
    return True


STORE = {}  # options of a TCPStore
if dist.is_available() and not _has_libuv():  # Debian 13's torch lacks it, but takes it by default
    STORE["use_libuv"] = False
    os.environ["USE_LIBUV"] = "0"  # for init_process_group(), also of child processes


# ---- The work of a rank --------------------------------------------------------------------------


def tensor_of(rows, dtype, shape=None):
    """Rows of bytes as a tensor of that type, whose rows have that shape."""
    kind = torch.uint8 if dtype is None else getattr(torch, dtype)
    if len(rows) == 0:  # torch 1.13 does not view such bytes as another type
        tensor = torch.empty((0, rows.shape[1] // torch.empty(0, dtype=kind).element_size()), dtype=kind)
    else:
        tensor = torch.from_numpy(rows.copy()).view(kind)
    return tensor if shape is None else tensor.reshape(len(rows), *shape)


def bytes_of(tensor):
    flat = tensor.reshape(len(tensor), math.prod(tensor.shape[1:]))
    return flat.contiguous().view(torch.uint8).numpy()


def shuffle(world, rows, dtype=None, strided=False, shape=None, **options):
    """Rows of bytes, shuffled as a tensor of `dtype`. strided: every second row of a larger tensor."""
    tensor = tensor_of(rows, dtype, shape)
    if strided:
        larger = tensor.new_zeros((2 * len(tensor), *tensor.shape[1:]))
        larger[::2] = tensor
        tensor = larger[::2]
        assert len(tensor) < 2 or not tensor.is_contiguous()
    shuffled = shufd.torch.global_shuffle(tensor, _groups[world], **options)
    assert (shuffled.dtype, shuffled.shape[1:]) == (tensor.dtype, tensor.shape[1:])
    return bytes_of(shuffled)


def shuffle_in_inference_mode(*arguments, **options):
    with torch.inference_mode():
        return shuffle(*arguments, **options)


def shuffle_numbers(world, data, **options):
    """Any structure of arrays."""

    def convert(value, function):
        if isinstance(value, dict):
            return {k: function(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(function(v) for v in value)
        return function(value)

    given = convert(data, torch.from_numpy)
    return convert(shufd.torch.global_shuffle(given, _groups[world], **options), torch.Tensor.numpy)


def read_order(world, order, steps, state=None):
    """The next indices of a sampler of this rank, and its state after them."""
    sampler = shufd.torch.DistributedSampler(range(order.n), order=order)
    assert sampler.num_replicas == dist.get_world_size()
    if state:
        sampler.load_state_dict(state)
    indices = [i for _, i in zip(range(steps), sampler)]
    return indices, sampler.state_dict(used=len(indices))


def iterate_twice(world, seed):
    """The kinds of the errors of two iterations of one sampler."""
    sampler = shufd.torch.DistributedSampler(range(20), seed=seed)
    kinds = []
    for _ in range(2):
        try:
            next(iter(sampler))
            kinds.append(None)
        except shufd.Error as error:
            kinds.append(type(error).__name__)
    return kinds


def shuffle_anything(world, data, **options):
    """Arguments that may be wrong. Makes here what cannot be sent to the rank."""
    if isinstance(data, str) and data == "sparse":
        data = torch.zeros(4, 2).to_sparse()
    if isinstance(options.get("seed"), str) and options["seed"] == "generator":
        options["seed"] = torch.Generator()
    shufd.torch.global_shuffle(data, _groups[world], **options)


def shuffle_over(world, rows, group):
    """With an argument that is no process group."""
    return bytes_of(shufd.torch.global_shuffle(tensor_of(rows, None), group))


def measure_rounds(world, rows, **options):
    """The most bytes of rounds that ran at the same time, and the number of rounds."""
    under_way, most, rounds = [0], [0], [0]
    start = _global_shuffle.Ranks.start

    def counting_start(self, received, sent, arriving, to):
        size = received.numel() + sent.numel() + 8 * (len(arriving) and (received.numel() + sent.numel()) // rows.shape[1])
        under_way[0] += size
        rounds[0] += 1
        most[0] = max(most[0], under_way[0])
        wait = start(self, received, sent, arriving, to)

        def finish():
            wait()
            under_way[0] -= size

        return finish

    _global_shuffle.Ranks.start = counting_start
    try:
        result = shuffle(world, rows, **options)
    finally:
        _global_shuffle.Ranks.start = start
    assert under_way == [0]
    return result, most[0], rounds[0]


@contextlib.contextmanager
def by_store(world):
    """The ranks agree through their store, as with NCCL."""
    group = _groups[world]
    with mock.patch.object(_process_group.Ranks, "has_only_nccl", True):
        yield
    assert _process_group._gathers.pop(group) is not None


def shuffle_by_store(world, rows, **options):
    with by_store(world):
        return shuffle(world, rows, **options)


def shuffle_with_version(world, rows, version):
    with mock.patch.object(_agreement, "VERSION", version):
        return shuffle(world, rows, seed=7)


def interrupted_by_store(world, rows, epochs):
    """The last rank is interrupted in the second agreement of the first call. Nothing moves: gloo would wait for ever for
    this rank. Returns the outcomes of the calls."""
    read, reads, outcomes = _process_group.StoreGather._read, [0], []

    def interrupted_read(self, keys):
        reads[0] += 1
        if dist.get_rank(_groups[world]) == world - 1 and reads[0] == 2:
            raise KeyboardInterrupt
        return read(self, keys)

    with by_store(world), mock.patch.object(_process_group.StoreGather, "_read", interrupted_read), \
            mock.patch.object(_moves.TorchMove, "run", lambda self, rounds: self.out):  # fmt: skip
        for epoch in range(epochs):
            try:
                shuffle(world, rows, seed=7, epoch=epoch)
                outcomes.append("done")
            except BaseException as error:
                outcomes.append(f"{type(error).__name__}: {error}")
    return outcomes


def shuffle_with_little_memory(world, rows, most, **options):
    """The last rank has no memory for rounds of more bytes; with 0 for any."""

    def allocate(self, rounds):
        if (most == 0 or self.count_rounds(most) > rounds) and dist.get_rank(_groups[world]) == world - 1:
            raise torch.cuda.OutOfMemoryError("no room")

    with mock.patch.object(_moves.TorchMove, "_allocate", allocate), mock.patch.object(_moves, "_LEAST_BUDGET", 1):
        return measure_rounds(world, rows, **options)


def verify(world, **options):
    return shufd.verify(group=_groups[world], **options)


def without_daemon(world, rows):
    """As a rank of a machine without a daemon."""
    before = os.environ.get("SHUFD_SOCKET")
    os.environ["SHUFD_SOCKET"] = "/nowhere/shufd.sock"
    try:
        return shuffle(world, rows, seed=7)
    finally:
        os.environ["SHUFD_SOCKET"] = before


def end(world, rows):
    os._exit(0)


def end_between_plan_and_rows(world, rows):
    _moves.TorchMove.run = end
    return shuffle(world, rows, seed=7)


# ---- The processes -------------------------------------------------------------------------------


def _run(rank, world, port, connection):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    for size in range(1, world + 1):
        _groups[size] = dist.new_group(range(size))
    while True:
        name, arguments, options = connection.recv()
        try:
            connection.send(("result", globals()[name](*arguments, **options)))
        except BaseException as error:
            connection.send(("error", (type(error).__name__, str(error), traceback.format_exc())))
            del error


class Failed(Exception):
    """A rank has failed: .kind and .text of its error."""

    def __init__(self, kind, text, trace):
        super().__init__(f"{kind}: {text}\n{trace}")
        self.kind, self.text = kind, text


class Job:
    """A process group whose ranks wait for calls."""

    def __init__(self, world):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ranks"])
        port = free_port()
        self.connections, self.processes = [], []
        for rank in range(world):
            here, there = context.Pipe()
            process = context.Process(target=_run, args=(rank, world, port, there), daemon=True)
            process.start()
            there.close()
            self.connections.append(here)
            self.processes.append(process)

    def start(self, calls):
        """Starts calls[rank] = (function, arguments, options) in the first ranks."""
        for connection, call in zip(self.connections, calls):
            connection.send(call)

    def finish(self, count):
        """The results of the first ranks. A rank that has failed gives its error, one that has ended None."""
        results = []
        for connection in self.connections[:count]:
            try:
                kind, value = connection.recv() if connection.poll(120) else ("error", ("Hang", "", ""))
            except EOFError:
                kind, value = "result", None
            results.append(value if kind == "result" else Failed(*value))
        return results

    def call_each(self, name, arguments, options=None):
        """Calls a function on each rank. `arguments` has a tuple for each rank."""
        world = len(arguments)
        each = options if isinstance(options, list) else [options or {}] * world
        self.start([(name, (world, *own), keywords) for own, keywords in zip(arguments, each)])
        return self.finish(world)

    def call(self, *arguments):
        """As call_each(), and fails where a rank has failed."""
        results = self.call_each(*arguments)
        for result in results:
            if isinstance(result, Failed):
                raise result
        return results

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()


def cut(rows, sizes):
    """The part of each rank."""
    return np.split(rows, np.cumsum(sizes)[:-1])
