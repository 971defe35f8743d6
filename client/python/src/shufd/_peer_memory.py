# SPDX-License-Identifier: MIT
"""Memory of another process on a GPU of the same machine, by CUDA IPC.

A process offers the allocation of a tensor. Another process opens it, and its kernels then read it over
NVLink or PCI Express. The owner keeps the tensor until all readers have read it.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading
import time
from functools import cache
from typing import Any, NamedTuple

import torch

KEPT_S = 10.0  # an unused mapping stays open so long
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


class Offer(NamedTuple):
    """A tensor that other processes of the machine may open."""

    machine: str  # the same for all processes that can open it
    process: int
    handle: bytes  # of the allocation
    offset: int  # of the tensor in it


class _Handle(ctypes.Structure):
    """CUipcMemHandle, passed by value"""

    _fields_ = [("bytes", ctypes.c_char * 64)]


@cache
def _libcuda() -> Any:
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), _Handle, ctypes.c_uint]
    return cuda


@cache
def _machine() -> str:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def offer(tensor: torch.Tensor) -> Offer | None:
    """None if the memory of the tensor has no handle, as memory of PyTorch's expandable segments."""
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), (ctypes.c_char * 64)()
    address = ctypes.c_uint64(tensor.data_ptr())
    with torch.cuda.device(tensor.device):
        if _libcuda().cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), address) != 0:
            return None
        if _libcuda().cuIpcGetMemHandle(ctypes.byref(handle), base) != 0:
            return None
    return Offer(_machine(), os.getpid(), bytes(handle.raw), tensor.data_ptr() - base.value)


class _Mapping:
    """An allocation that this process has opened for one of its devices."""

    def __init__(self, device: torch.device, address: int) -> None:
        self.device, self.address = device, address
        self.users, self.idle_since = 0, 0.0


class _Mappings:
    """Opening takes longer than most exchanges, so a mapping stays for a while after its use. As long as
    it does, the memory exists, even if its owner frees it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_key: dict[tuple[int, int, bytes], _Mapping] = {}
        self.timer: threading.Timer | None = None
        self.process = os.getpid()

    def take(self, device: torch.device, other: Offer) -> tuple[int, int, bytes] | None:
        key = (device.index, other.process, other.handle)
        with self.lock:
            mapping = self.by_key.get(key)
            if mapping is None:
                address = self._open(device, other.handle)
                if address is None:
                    return None
                mapping = self.by_key[key] = _Mapping(device, address)
            mapping.users += 1
        return key

    def give_back(self, keys: list[tuple[int, int, bytes]]) -> None:
        with self.lock:
            for key in keys:
                mapping = self.by_key[key]
                mapping.users -= 1
                mapping.idle_since = time.monotonic()
            if keys and self.timer is None:
                self._start_timer()

    def _start_timer(self) -> None:
        self.timer = threading.Timer(KEPT_S, self._close_idle)
        self.timer.daemon = True
        self.timer.start()

    def _close_idle(self) -> None:
        with self.lock:
            for key, mapping in list(self.by_key.items()):
                if mapping.users == 0 and time.monotonic() - mapping.idle_since >= KEPT_S:
                    del self.by_key[key]
                    with torch.cuda.device(mapping.device):
                        _libcuda().cuIpcCloseMemHandle(ctypes.c_uint64(mapping.address))
            self.timer = None
            if self.by_key:
                self._start_timer()

    def _open(self, device: torch.device, bytes_of_handle: bytes) -> int | None:
        address, handle = ctypes.c_uint64(), _Handle()
        ctypes.memmove(ctypes.byref(handle), bytes_of_handle, 64)
        with torch.cuda.device(device):
            result = _libcuda().cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, _LAZY_PEER_ACCESS)
        return address.value if result == 0 else None


_mappings = _Mappings()


class PeerMemory:
    """Tensors of other processes, which a call reads from a device of this process."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._keys: list[tuple[int, int, bytes]] = []

    def open(self, other: Offer) -> int | None:
        """The address of the tensor; None if this process cannot open it: it lies on another machine or
        in this process, or the GPUs cannot read each other."""
        global _mappings
        if other.machine != _machine() or other.process == os.getpid():
            return None
        if _mappings.process != os.getpid():  # a child has none of its parent's mappings
            _mappings = _Mappings()
        key = _mappings.take(self.device, other)
        if key is None:
            return None
        self._keys.append(key)
        return _mappings.by_key[key].address + other.offset

    def close(self) -> None:
        """The kernels that read the memory have ended."""
        if self._keys:
            _mappings.give_back(self._keys)
            self._keys = []
