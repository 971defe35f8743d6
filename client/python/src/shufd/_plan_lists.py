# SPDX-License-Identifier: MIT
"""The lists of a plan as torch and the kernel need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._plan import Plan

_INDEX_BYTES = 8  # a record's index in a round: torch indexes with int64


class Numbers:
    """A list of a plan. Gives its numbers as an index of torch."""

    def __init__(self, numbers: Any, below: int = 1 << 64) -> None:
        """An array of NumPy, or a tensor on a GPU, with the bits of unsigned numbers as a signed type. All
        numbers are less than `below`."""
        self.numbers = numbers
        self.count = len(numbers)
        self.on_host = isinstance(numbers, np.ndarray)
        self.width = int(numbers.itemsize if self.on_host else numbers.element_size())
        self.is_signed = below <= 1 << 8 * self.width - 1  # the numbers fit the signed type

    @property
    def index_bytes(self) -> int:
        """The most bytes that a number takes while wide() runs."""
        return _INDEX_BYTES + self.width

    def index(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, as int32 or int64."""
        return self.take(slices, device) if self.is_signed else self.wide(slices, device)

    def wide(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, as int64."""
        index = self.take(slices, device)
        if self.width == 8:
            return index
        index = index.to(torch.int64)
        return index if self.is_signed else index.bitwise_and_(0xFFFFFFFF)

    def take(self, slices: list[slice], device: torch.device) -> torch.Tensor:
        """The numbers of all slices on the device, in their own width."""
        parts = [self.numbers[part] for part in merged(slices)]
        if self.on_host:
            return torch.from_numpy(np.concatenate(parts)).to(device)
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(device)

    def address(self, first: int) -> int:
        """The address of a number in the memory of the GPU."""
        return int(self.numbers.data_ptr()) + first * self.width


def merged(slices: list[slice]) -> list[slice]:
    """The same numbers by fewer slices, at least one."""
    parts = [slice(0, 0)]
    for part in slices:
        if part.start == parts[-1].stop:
            parts[-1] = slice(parts[-1].start, part.stop)
        elif part.start < part.stop:
            parts.append(part)
    return parts[1:] if len(parts) > 1 and parts[0].stop == 0 else parts


class Lists:
    """The plan as torch needs it."""

    def __init__(self, plan: Plan) -> None:
        numbers: Any = plan.numbers.view(f"i{plan.numbers.dtype.itemsize}")  # torch computes little with unsigned types
        if not isinstance(numbers, np.ndarray):
            numbers = torch.from_dlpack(numbers)
        split, end = 2 * plan.world, 2 * plan.world + plan.sent
        counts = np.asarray(numbers[:split] if isinstance(numbers, np.ndarray) else numbers[:split].cpu())
        self.to, self.arriving = counts.view(plan.numbers.dtype).reshape(2, -1).tolist()
        self.all_to = [self.to]  # of every rank; set when the ranks have agreed
        self.read: Any = None  # an event of CUDA
        self.order = Numbers(numbers[split:end], plan.sent)
        self.places = Numbers(numbers[end:], len(numbers) - end)

    def mark(self) -> Any:
        """The event after all work that reads the lists: that of the current stream until now."""
        self.read = torch.cuda.current_stream(self.order.numbers.device).record_event()
        return self.read

    def wait(self) -> None:
        """Waits until the GPU has read the lists, because the lease of the plan may end then."""
        if not self.order.on_host:
            (self.read or self.mark()).synchronize()
