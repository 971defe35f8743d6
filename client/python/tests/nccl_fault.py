# SPDX-License-Identifier: MIT
"""A rank of two over nccl for test_nccl.py: rank 1 ends before a call of global_shuffle(), or after the ranks have agreed in
it. Rank 0 prints what happens to it.

    RANK=0 ... nccl_fault.py {before,after}
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist

import shufd
import shufd.torch
from shufd import _moves

TIMEOUT_S = 10


def main():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=TIMEOUT_S), device_id=device)
    client = shufd.connect(os.environ["SHUFD_SOCKET"])
    rows = torch.arange(1 << 20, device=device)
    shufd.torch.global_shuffle(rows, seed=1, client=client)
    torch.cuda.synchronize()
    if rank == 1 and sys.argv[1] == "before":
        os._exit(0)
    if rank == 1:
        _moves.WrittenMove.run = lambda self, rounds: os._exit(0)
    try:
        shufd.torch.global_shuffle(rows, seed=2, client=client)
    except shufd.IOFailure as error:
        print("IOFailure:", error, flush=True)
        os._exit(3)
    print("returned", flush=True)
    torch.cuda.synchronize()
    print("moved", flush=True)


if __name__ == "__main__":
    main()
