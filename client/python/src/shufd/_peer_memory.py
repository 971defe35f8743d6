# SPDX-License-Identifier: MIT
"""Memory of other processes that stays mapped in this one between calls of global_shuffle(): that of the peers on the GPUs of
the same machine, and that of the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import threading
import time
import weakref
from collections import deque
from functools import cache
from typing import Any, NamedTuple

import torch

from . import _device
from ._shuf import lib

# ---- The memory of peers, by CUDA IPC ------------------------------------------------------------
# A process offers the allocation of a tensor. Another process opens it, and its kernels then read it over NVLink or PCI
# Express. The owner keeps the tensor until all readers have read it. If the owner frees the allocation, the memory exists
# as long as other processes have it open. The next offers of the owner list what it has freed, and the ranks of that call
# close it. Other ranks keep it open for KEPT_S.

KEPT_S = 10.0  # memory without a user stays mapped so long
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Offer(NamedTuple):
    """A tensor that other processes of the machine may open."""

    machine: str  # the same for all processes that can open it
    process: int
    handle: bytes  # of the allocation
    offset: int  # of the tensor in it


class Freed(NamedTuple):
    """Allocations that a process had offered, and has freed."""

    machine: str
    process: int
    handles: tuple[bytes, ...]


class _Handle(ctypes.Structure):
    """CUipcMemHandle, passed by value"""

    _fields_ = [("bytes", ctypes.c_char * 64)]


_offered: dict[bytes, tuple[int, int]] = {}  # handles: the device and the address of the allocation
_offered_lock = threading.Lock()


@cache
def _machine() -> str:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def offer(tensor: torch.Tensor) -> Offer | None:
    """None if the memory of the tensor has no handle, as memory of PyTorch's expandable segments, or if the
    user has switched off reads between GPUs."""
    if os.environ.get("NCCL_P2P_DISABLE") == "1":
        return None
    try:
        with _device.primary_context(tensor.device.index) as cuda:
            return cuda and _offer(cuda, tensor.device.index, tensor.data_ptr())
    except OSError:  # no libcuda.so.1, as with GPUs of another maker
        return None


def _offer(cuda: Any, ordinal: int, address: int) -> Offer | None:
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), (ctypes.c_char * 64)()
    if cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address)) != 0:
        return None
    if cuda.cuIpcGetMemHandle(ctypes.byref(handle), base) != 0:
        return None
    with _offered_lock:
        _offered[bytes(handle.raw)] = ordinal, base.value
    return Offer(_machine(), os.getpid(), bytes(handle.raw), address - base.value)


def freed() -> Freed | None:
    """What this process has freed since the last call of this function; None if there is nothing."""
    with _offered_lock:
        gone = [handle for handle, (ordinal, base) in _offered.items() if not _exists(ordinal, base, handle)]
        for handle in gone:
            del _offered[handle]
    return Freed(_machine(), os.getpid(), tuple(gone)) if gone else None


def _exists(ordinal: int, base: int, handle: bytes) -> bool:
    """Whether the allocation has not been freed. Another one at its address has another handle."""
    now = (ctypes.c_char * 64)()
    with _device.primary_context(ordinal) as cuda:
        return cuda is None or (cuda.cuIpcGetMemHandle(ctypes.byref(now), ctypes.c_uint64(base)) == 0 and now.raw == handle)


def _open(ordinal: int, bytes_of_handle: bytes) -> int | None:
    address, handle = ctypes.c_uint64(), _Handle()
    ctypes.memmove(ctypes.byref(handle), bytes_of_handle, 64)
    with _device.primary_context(ordinal) as cuda:
        if cuda is None or cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, _LAZY_PEER_ACCESS) != 0:
            return None
    return address.value


def _close(ordinal: int, address: int) -> None:
    """Another thread may be capturing a CUDA graph: the close is no part of it."""
    mode = ctypes.c_int(_RELAXED)
    with _device.primary_context(ordinal) as cuda:
        if cuda is not None:
            cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
            cuda.cuIpcCloseMemHandle(ctypes.c_uint64(address))
            cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


class _Mapping:
    """An allocation that this process has opened for one of its devices."""

    def __init__(self, ordinal: int, address: int) -> None:
        self.ordinal, self.address = ordinal, address
        self.users, self.idle_since = 0, 0.0
        self.is_freed = False  # by its owner


_Key = tuple[int, int, bytes]  # the device, the owner and its handle


class _Mappings:
    """Opening takes longer than most exchanges, so a mapping stays for a while after its use, unless its owner has freed
    the memory."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_key: dict[_Key, _Mapping] = {}
        self.has_timer = False
        self.process = os.getpid()

    def take(self, ordinal: int, other: Offer) -> _Key | None:
        key = (ordinal, other.process, other.handle)
        with self.lock:
            if key not in self.by_key:
                address = _open(ordinal, other.handle)
                if address is None:
                    return None
                self.by_key[key] = _Mapping(ordinal, address)
            self.by_key[key].users += 1
        return key

    def give_back(self, keys: list[_Key], at_once: bool) -> None:
        """`at_once`: unmaps what has no other user."""
        with self.lock:
            for key in keys:
                mapping = self.by_key[key]
                mapping.users -= 1
                mapping.idle_since = time.monotonic()
                if at_once or mapping.is_freed:
                    self._close_unused(key)
            if not self.has_timer:
                self._start_timer(KEPT_S)

    def forget(self, freed: Freed) -> None:
        """Closes what its owner has freed, as soon as it has no user."""
        with self.lock:
            for key in [key for key in self.by_key if key[1] == freed.process and key[2] in freed.handles]:
                self.by_key[key].is_freed = True
                self._close_unused(key)

    def _close_unused(self, key: _Key) -> None:
        """With the lock."""
        mapping = self.by_key[key]
        if mapping.users == 0:
            del self.by_key[key]
            _close(mapping.ordinal, mapping.address)

    def _start_timer(self, seconds: float) -> None:
        """If no thread can start, the next use starts it."""
        timer = threading.Timer(seconds, self._close_idle)
        timer.daemon = True
        try:
            timer.start()
            self.has_timer = True
        except RuntimeError:
            self.has_timer = False

    def _close_idle(self) -> None:
        with self.lock:
            end = time.monotonic() - KEPT_S
            idle = {key: mapping for key, mapping in self.by_key.items() if mapping.users == 0}
            for key, mapping in idle.items():
                if mapping.idle_since <= end:
                    self._close_unused(key)
            waiting = [mapping.idle_since - end for key, mapping in idle.items() if key in self.by_key]
            self.has_timer = False
            if waiting:
                self._start_timer(min(waiting))


_mappings = _Mappings()


def forget(freed: Freed) -> None:
    """Closes the memory that another process has freed, when nothing in this process uses it any more."""
    if freed.machine == _machine() and _mappings.process == os.getpid():
        _mappings.forget(freed)


class PeerMemory:
    """Tensors of other processes, which a call reads from a device of this process."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._keys: list[_Key] = []

    def open(self, other: Offer) -> int | None:
        """The address of the tensor; None if this process cannot open it: it lies on another machine or
        in this process, or the GPUs cannot read each other."""
        global _mappings
        if other.machine != _machine() or other.process == os.getpid():
            return None
        if _mappings.process != os.getpid():  # a child has none of its parent's mappings
            _mappings = _Mappings()
        key = _mappings.take(self.device.index, other)
        if key is None:
            return None
        self._keys.append(key)
        return _mappings.by_key[key].address + other.offset

    def close(self, at_once: bool = False) -> None:
        """The kernels that read the memory have ended. `at_once`: its owners need it for something else."""
        keys, self._keys = self._keys, []
        if keys:
            _mappings.give_back(keys, at_once)


# ---- The memory of the daemon --------------------------------------------------------------------
# Mapping takes longer the larger the block is, and the more ranks map at the same time: four ranks with plans of 2 GiB save
# 0.9 ms (bench/results/2026-11-26-h200-shuffle.txt). The daemon cannot free a block that is mapped. So blocks stay mapped only
# if the daemon uses them again, and are unmapped KEPT_S after the last call.

_BLOCKS = 2  # that the daemon uses in turn
_SMALL = 4 << 20  # bytes of a block that libshuf keeps mapped by itself

_kept: weakref.WeakKeyDictionary[Any, _Kept] = weakref.WeakKeyDictionary()  # by connection


class _Kept:
    """What stays mapped of a connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = weakref.ref(connection)
        self.lock = threading.Lock()
        self.seen: deque[int] = deque(maxlen=2 * _BLOCKS)
        self.limit = 0  # bytes
        self.last = 0.0  # time of the last call
        self.has_timer = False

    def use(self, block: int, bytes: int) -> None:
        with self.lock:
            self.last = time.monotonic()
            if block not in self.seen:
                self.seen.append(block)
            elif self._start_timer(KEPT_S) and self.limit < _BLOCKS * bytes:
                self._set_limit(_BLOCKS * bytes)

    def _set_limit(self, bytes: int) -> None:
        connection = self.connection()
        if connection is not None:
            connection.call(lib.shufpy_set_idle_mappings, bytes)
        self.limit = bytes

    def _start_timer(self, seconds: float) -> bool:
        """Whether a timer runs. No thread may be able to start."""
        if not self.has_timer:
            timer = threading.Timer(seconds, self._end)
            timer.daemon = True
            with contextlib.suppress(RuntimeError):
                timer.start()
                self.has_timer = True
        return self.has_timer

    def _end(self) -> None:
        with self.lock:
            self.has_timer = False
            rest = self.last + KEPT_S - time.monotonic()
            if rest > 0 and self._start_timer(rest):
                return
            self.limit = 0  # also after an error
            with contextlib.suppress(Exception):  # of a daemon that has ended
                self._set_limit(0)


def keep(connection: Any, block: int, bytes: int) -> None:
    """Keeps a block of so many bytes mapped after its lease, if the daemon has used it for an earlier plan. Errors: as of
    any call."""
    if bytes <= _SMALL:
        return
    if connection not in _kept:
        _kept[connection] = _Kept(connection)
    _kept[connection].use(block, bytes)
