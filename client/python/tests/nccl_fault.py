# SPDX-License-Identifier: MIT
"""A rank of two over nccl for test_nccl.py: rank 1 ends before a call of global_shuffle(), or while rows move in it.

    nccl_fault.py before | written | direct

Rank 0 prints its error or, if its call has returned, how its rows move. Then it waits for its GPU, for which it may wait
until torch ends it.
"""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

import shufd
import shufd.torch
from shufd import _peer_moves, _process_group

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


def main():
    how, rank = sys.argv[1], int(os.environ["RANK"])
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
        kind = {"written": _peer_moves.WrittenMove, "direct": _peer_moves.DirectMove}[how]
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


if __name__ == "__main__":
    main()
