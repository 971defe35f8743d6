# SPDX-License-Identifier: MIT
"""The lists of a plan as torch and the kernel need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _device
from ._device import head_of
from ._plan import NUMBER_BYTES, OneSidedPlan, Plan

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


class _Plan:
    """The lists of a plan in the memory of a GPU or of the host."""

    plan: Plan | OneSidedPlan
    numbers: Any  # of NumPy, or in the memory of a GPU with an attribute `device`
    read: Any = None  # an event of CUDA
    has_waited = False

    @property
    def on_host(self) -> bool:
        return isinstance(self.numbers, np.ndarray)

    def mark(self) -> Any:
        """The event after all work that reads the lists: that of the current stream until now."""
        self.read = torch.cuda.current_stream(self.numbers.device).record_event()
        return self.read

    def wait(self) -> None:
        """Waits until the GPU has read the lists, because the lease of the plan may end then."""
        if not self.on_host:
            (self.read or self.mark()).synchronize()
        self.has_waited = True


def _tensor_of(numbers: Any) -> Any:
    """torch computes little with unsigned types, so the bits of a signed one."""
    signed: Any = numbers.view(f"i{numbers.dtype.itemsize}")
    return signed if isinstance(signed, np.ndarray) else torch.from_dlpack(signed)


class OneSidedLists(_Plan):
    """A one-sided plan in the memory of a GPU. The kernels need the addresses of its lists only. Its lease ends with this
    object, and not before wait() or the end of all work of the GPU."""

    plan: OneSidedPlan

    def __init__(self, plan: OneSidedPlan) -> None:
        numbers: Any = plan.numbers
        self.plan, self.windows, self.numbers = plan, plan.windows, numbers
        self._columns = self.windows[-1] + 1
        begins = plan.begins if self.on_host else self._read_begins(numbers, plan.parts * self._columns)
        #: of each part and window, and the places of each part
        self.begins: list[list[int]] = begins.reshape(-1, self._columns).tolist()
        self._first = int(numbers.ctypes.data if self.on_host else numbers.ptr)

    @staticmethod
    def _read_begins(numbers: Any, count: int) -> Any:
        return head_of(numbers, count, torch.cuda.current_stream(numbers.device).cuda_stream)

    def __del__(self) -> None:
        """Waits if an exception, such as a second KeyboardInterrupt, has prevented wait()."""
        if not self.has_waited and not self.on_host:
            _device.wait_for_work(self.numbers.device)

    def longest(self) -> list[int]:
        """The most records that a part has of each rank."""
        ranks = list(zip(self.windows, self.windows[1:]))
        return [max(part[end] - part[first] for part in self.begins) for first, end in ranks]

    def begins_at(self, part: int, window: int) -> int:
        """An address, as those below."""
        return self._address(part * self._columns + window)

    def records_at(self, part: int) -> int:
        return self._address(len(self.numbers) - 2 * self.plan.places + part * self.plan.part)

    def indices_at(self, place: int) -> int:
        return self._address(len(self.numbers) - self.plan.places + place)

    def _address(self, number: int) -> int:
        return self._first + number * NUMBER_BYTES


class BothSidesLists(_Plan):
    """A plan of both sides as torch needs it."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.numbers = plan, _tensor_of(plan.numbers)
        numbers = self.numbers
        split, end = 2 * plan.world, 2 * plan.world + plan.sent
        counts = np.asarray(numbers[:split] if isinstance(numbers, np.ndarray) else numbers[:split].cpu())
        self.to, self.arriving = counts.view(plan.numbers.dtype).reshape(2, -1).tolist()
        self.order = Numbers(numbers[split:end], plan.sent)
        self.places = Numbers(numbers[end:], len(numbers) - end)
