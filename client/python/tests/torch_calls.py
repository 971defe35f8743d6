# SPDX-License-Identifier: MIT
"""A call of shufd.torch for each function, algorithm, law, type and method, as function(device) -> tensor."""

import functools

import torch

import shufd.torch as shuftorch

PLACE = {"seed": 2**63 + 7, "stream": 5, "offset": 3}


def order(algorithm, dtype, device):
    return shuftorch.randperm(1003, seed=7, epoch=3, dtype=dtype, algorithm=algorithm, device=device)


def part_of_order(algorithm, device):
    return shuftorch.randperm(1003, seed=7, offset=100, count=200, stride=3, algorithm=algorithm, device=device)


def shuffled(algorithm, inverse, device):
    rows = torch.arange(3009.0, device=device).reshape(1003, 3)
    return shuftorch.shuffle(rows, seed=7, epoch=3, algorithm=algorithm, inverse=inverse)


def looked_up(inverse, device):
    return shuftorch.index(torch.arange(1003, device=device), 2000, seed=7, epoch=3, inverse=inverse)


def drawn(function, dtype, *arguments, **options):
    def draw(device):
        return function(torch.empty(1003, dtype=dtype, device=device), *arguments, **PLACE, **options)

    return draw


def _calls():
    for algorithm in ("primefold", "philox24", "lcg"):
        for dtype in (torch.int64, torch.int32):
            yield functools.partial(order, algorithm, dtype)
        yield functools.partial(part_of_order, algorithm)
        for inverse in (False, True):
            yield functools.partial(shuffled, algorithm, inverse)
    for inverse in (False, True):
        yield functools.partial(looked_up, inverse)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for method in ("table", "box-muller"):
            yield drawn(shuftorch.normal_, dtype, 1.0, 2.0, method=method)
    for dtype in (torch.float64, torch.float32):
        yield drawn(shuftorch.uniform_, dtype)
        yield drawn(shuftorch.uniform_, dtype, -1.0, 2.0)
        yield drawn(shuftorch.exponential_, dtype, 3.0)
    for dtype in (torch.int32, torch.int64):
        yield drawn(shuftorch.bits_, dtype, 0.3)
        yield drawn(shuftorch.integers_, dtype, 2**31 - 1)


CALLS = list(_calls())
