# SPDX-License-Identifier: MIT
"""Weighted draws and samples as tensors of torch, computed in this process; shufd.torch exports them."""

from __future__ import annotations

from typing import Any

import torch

from . import _torch_fill as fill
from ._arguments import shown, u64
from ._errors import Invalid
from ._names import advise_arguments
from ._torch_ops import is_transformed, recorder
from ._torch_random import check_tensor


def _refuse_recorders() -> None:
    """Refuses what sees only the new memory of a result, and not the call that fills it: a replay would not fill it."""
    if by := recorder() or ("a transform of torch.func" if is_transformed() else ""):
        raise Invalid(f"weights: {by} cannot see weighted draws: make them before, and pass the indices in")


def _weights_of(weights: Any) -> torch.Tensor:
    """The weights as float64, float32, or integers of 64 bits that are not negative."""
    _refuse_recorders()
    check_tensor("weights", weights)
    values = weights.detach()
    if values.dim() != 1 or values.numel() == 0:
        raise Invalid(f"weights: shape {tuple(values.shape)}: expected one dimension with at least one number")
    if values.is_complex():
        raise Invalid(f"weights: {values.dtype}: expected numbers")
    if values.is_floating_point():
        return values if values.dtype in (torch.float64, torch.float32) else values.to(torch.float32)
    numbers = values.to(torch.int64)
    least = int(numbers.min())
    if least < 0:
        raise Invalid(f"weights: {least}: expected numbers of 0 or more, below 2^63 as integers")
    return numbers


class WeightTable:
    """Weighted draws with replacement as tensors, on the CPU or a GPU, with the same bits: those of shufd.local.Weighted.

    weights  a tensor of one dimension, with finite numbers of 0 or more, not all 0; on a GPU at most 2^30 of them. Only
             their ratios matter. A weight of 0 is never drawn

    The table is made at once, on the device of the weights, and does not change with them. It has 8 bytes for each weight,
    with their number rounded up to a power of two; while a GPU makes it, it takes twice that more, and waits for the current stream.
    Each probability is off by less than 2^-60. docs/spec.md, "Weighted draws", defines the draws.

    The calls are no operators of torch. torch.jit.trace(), torch.export(), make_fx(), torch.func and torch.compile() fail: make
    the draws outside, or for torch.compile() in a function with torch.compiler.disable().

    n, device  the number of weights, and their device
    Errors: Invalid; OutOfMemory; DeviceError without libshuf-cuda or a GPU; those of torch for memory.
    """

    @advise_arguments
    def __init__(self, weights: torch.Tensor) -> None:
        values = _weights_of(weights)
        self.n, self.device = values.numel(), values.device
        self._table = fill.weight_table(values)

    @advise_arguments
    def draw(self, count: int, *, seed: int, epoch: int = 0, offset: int = 0, stride: int = 1) -> torch.Tensor:
        """The draws number offset, offset + stride, ... of a seed and an epoch, as a tensor of int64 on the table's device.
        Any draw can be the first. On a GPU the work is queued in the current stream, and a CUDA graph can capture it.

        count           of draws; all numbers of draws are below 2^62
        offset, stride  a rank of several takes offset=rank, stride=world
        """
        _refuse_recorders()
        number, first, step = u64("count", count), u64("offset", offset), u64("stride", stride)
        if number > fill.MOST:
            raise Invalid(f"count: {number}: expected at most 2^62")
        return fill.draws(self._table, self.n, self.device, seed, epoch, first, number, step)

    def __repr__(self) -> str:
        return f"shufd.torch.WeightTable(n={self.n}, device={str(self.device)!r})"


@advise_arguments
def weighted_sample(weights: torch.Tensor, count: int, *, seed: int, epoch: int = 0) -> torch.Tensor:
    """`count` different indices, in the order in which successive draws without replacement give them: those of
    shufd.local.weighted_sample(), as a tensor of int64 on the device of the weights.

    weights  as in WeightTable
    count    at most the number of weights above 0

    A GPU sorts a key for each weight. This takes 24 bytes for each, and waits for the current stream. docs/spec.md,
    "Weighted samples", defines the sample. Recorders, transforms and errors: as in WeightTable.
    """
    values = _weights_of(weights)
    number = u64("count", count)
    if number > values.numel():
        raise Invalid(f"count: {number}: expected at most {values.numel()}, the weights")
    return fill.weighted_sample(values, number, seed, epoch)
