# SPDX-License-Identifier: MIT
"""A rank of two over nccl for test_nccl.py: rank 1 ends before a call of global_shuffle(). Rank 0 prints its error."""

import datetime
import os

import torch
import torch.distributed as dist

import shufd
import shufd.torch

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
    if rank == 1:
        os._exit(0)
    try:
        shufd.torch.global_shuffle(rows, seed=2, client=client)
    except shufd.IOFailure as error:
        print("IOFailure:", error, flush=True)
        os._exit(3)


if __name__ == "__main__":
    main()
