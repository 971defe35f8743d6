# SPDX-License-Identifier: MIT
"""Memory of other processes that stays mapped, without a GPU: opening and closing are replaced, and connections record the
limits of the daemon's memory."""

import contextlib
import ctypes
import gc
import os
import threading
import time
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shufd
from conftest import await_value
from shufd import _device, _errors, _peer_memory
from shufd._peer_memory import Freed, Offer, PeerMemory

DEVICE = torch.device("cuda", 0)


@pytest.fixture
def driver(monkeypatch):
    """The opened and the closed addresses. Mappings stay for 0.2 s."""
    opened, closed = [], []

    def open_handle(ordinal, handle):
        if handle == b"refused":
            return None
        opened.append(0x1000 * (len(opened) + 1))
        return opened[-1]

    monkeypatch.setattr(_peer_memory, "_open", open_handle)
    monkeypatch.setattr(_peer_memory, "_close", lambda ordinal, address: closed.append(address))
    monkeypatch.setattr(_peer_memory, "_mappings", _peer_memory._Mappings())
    monkeypatch.setattr(_peer_memory, "KEPT_S", 0.2)
    return opened, closed


def offer_of(handle, offset=0, machine=None, process=1):
    return Offer(machine or _peer_memory._machine(), process, handle, offset)


def test_a_mapping_is_used_again_and_closed_when_it_is_idle(driver):
    opened, closed = driver
    memory = PeerMemory(DEVICE)
    assert memory.open(offer_of(b"a", 16)) == 0x1010
    assert memory.open(offer_of(b"a", 32)) == 0x1020  # another tensor of the allocation
    assert memory.open(offer_of(b"b")) == 0x2000
    memory.close()
    again = PeerMemory(DEVICE)
    assert again.open(offer_of(b"a")) == 0x1000 and opened == [0x1000, 0x2000]
    assert await_value(lambda: closed, [0x2000]) == [0x2000]
    time.sleep(0.3)
    assert closed == [0x2000]  # the other one is in use
    again.close()
    assert await_value(lambda: closed, [0x2000, 0x1000], 2) == [0x2000, 0x1000]
    assert PeerMemory(DEVICE).open(offer_of(b"a")) == 0x3000  # opened again


def test_a_mapping_is_closed_at_once_if_nobody_else_uses_it(driver):
    opened, closed = driver
    first, second = PeerMemory(DEVICE), PeerMemory(DEVICE)
    for memory in (first, second):
        memory.open(offer_of(b"a"))
    first.close(at_once=True)
    assert closed == []
    second.open(offer_of(b"b"))
    second.close(at_once=True)
    assert closed == [0x1000, 0x2000]
    second.close()


def test_memory_that_its_owner_has_freed(driver):
    """Its mapping is closed at once, or when nobody uses it any more."""
    opened, closed = driver
    first, second = PeerMemory(DEVICE), PeerMemory(DEVICE)
    for handle in (b"a", b"b", b"c"):
        first.open(offer_of(handle))
    second.open(offer_of(b"b"))
    first.close()
    machine = _peer_memory._machine()
    _peer_memory.forget(Freed("another", 1, (b"a", b"b")))
    _peer_memory.forget(Freed(machine, 2, (b"a", b"b")))
    assert closed == []
    _peer_memory.forget(Freed(machine, 1, (b"a", b"b", b"unknown")))
    assert closed == [0x1000]
    second.close()
    assert closed == [0x1000, 0x2000]
    assert PeerMemory(DEVICE).open(offer_of(b"c")) == 0x3000 and len(opened) == 3


def test_owner_tells_what_it_has_freed(monkeypatch):
    """An allocation at the same address has another handle."""
    handles = {0x1000: b"a", 0x2000: b"b", 0x3000: b"c"}

    class Driver:
        def cuMemGetAddressRange_v2(self, base, size, address):
            base._obj.value = address.value & ~0xFFF
            return 0

        def cuIpcGetMemHandle(self, handle, base):
            handle._obj.raw = handles.get(base.value, b"").ljust(64, b"\0")
            return base.value not in handles

    driver = contextlib.nullcontext(Driver())
    monkeypatch.setattr(_peer_memory._device, "primary_context", lambda ordinal: driver)
    monkeypatch.setattr(_peer_memory, "_offered", {})
    for address in (0x1010, 0x2020, 0x2030, 0x3000):
        tensor = types.SimpleNamespace(device=DEVICE, data_ptr=lambda address=address: address)
        assert _peer_memory.offer(tensor).offset == address & 0xFFF
    assert _peer_memory.freed() is None
    del handles[0x1000]
    handles[0x2000] = b"d"
    freed = _peer_memory.freed()
    assert freed.machine == _peer_memory._machine()
    assert [handle.rstrip(b"\0") for handle in freed.handles] == [b"a", b"b"] and freed.process == os.getpid()
    assert _peer_memory.freed() is None


@pytest.mark.parametrize("copied, waited", [(0, 0), (1, 0), (0, 700)])
def test_head_of_a_device_array(monkeypatch, copied, waited):
    """The copy is complete, or fails with the error of the copy or of the wait."""
    calls = []

    class Driver:
        """cuda.h: cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream), cuStreamSynchronize(CUstream)"""

        def cuMemcpyDtoHAsync_v2(self, target, source, size, stream):
            calls.append(("copy", stream.value))
            ctypes.memmove(target.value, source.value, size.value)
            return copied

        def cuStreamSynchronize(self, stream):
            calls.append(("wait", stream.value))
            return waited

    values = np.arange(10, dtype=np.uint32)
    array = types.SimpleNamespace(_check=lambda: None, dtype=values.dtype, device=0, ptr=values.ctypes.data)
    monkeypatch.setattr(_device, "primary_context", lambda ordinal: contextlib.nullcontext(Driver()))
    if copied or waited:
        with pytest.raises(_errors.DeviceError, match=f"CUDA error {copied or waited} in a copy to host memory"):
            _device.head_of(array, 4, 96)
    else:
        assert _device.head_of(array, 4, 96).tolist() == [0, 1, 2, 3]
    assert calls == [("copy", 96), ("wait", 96)][: 1 if copied else 2]


def test_nothing_is_read_of_the_machine_without_offers(monkeypatch):
    """In a sandbox /proc/sys may be missing."""

    def missing():
        raise FileNotFoundError("boot_id")

    monkeypatch.setattr(_peer_memory, "_machine", missing)
    monkeypatch.setattr(_peer_memory, "_offered", {})
    assert _peer_memory.freed() is None


def test_what_cannot_be_opened(driver):
    memory = PeerMemory(DEVICE)
    assert memory.open(offer_of(b"refused")) is None
    assert memory.open(offer_of(b"a", machine="another")) is None
    assert memory.open(offer_of(b"a", process=os.getpid())) is None
    memory.close()
    assert driver == ([], [])


def test_without_a_thread_for_the_timer(driver, monkeypatch):
    opened, closed = driver

    def refuse(self):
        raise RuntimeError("can't start new thread")

    memory = PeerMemory(DEVICE)
    memory.open(offer_of(b"a"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Timer, "start", refuse)
        memory.close()
    memory.open(offer_of(b"a"))
    memory.close()
    assert await_value(lambda: closed, [0x1000]) == [0x1000]


def test_no_offer_without_the_driver(monkeypatch):
    def missing(ordinal):
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(_peer_memory._device, "primary_context", missing)
    assert _peer_memory.offer(torch.zeros(1)) is None


def test_no_offer_if_the_user_forbids_it(monkeypatch):
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    assert _peer_memory.offer(torch.zeros(1)) is None


# ---- Blocks of the daemon that stay mapped between calls of global_shuffle() ---------------------

BYTES = 8 << 20


class Connection:
    def __init__(self):
        self.limits = []
        self.set = threading.Event()

    def call(self, function, bytes):
        self.limits.append(bytes)
        self.set.set()


@pytest.fixture
def short_time(monkeypatch):
    monkeypatch.setattr(_peer_memory, "KEPT_S", 0.3)


def keep_all(connection, blocks, bytes=BYTES):
    for block in blocks:
        _peer_memory.keep(connection, block, bytes)


def wait_for_end(connection):
    end = time.monotonic() + 20
    while connection.limits[-1:] != [0] and time.monotonic() < end:
        time.sleep(0.01)
    assert connection.limits[-1] == 0


def test_blocks_stay_mapped_only_if_they_come_again(short_time):
    connection = Connection()
    keep_all(connection, range(20))
    assert connection.limits == []
    keep_all(connection, [18, 19, 18])
    assert connection.limits == [2 * BYTES]
    wait_for_end(connection)
    assert connection.limits == [2 * BYTES, 0]


def test_the_limit_grows_with_the_blocks(short_time):
    connection = Connection()
    keep_all(connection, [1, 1, 1])
    keep_all(connection, [2, 2], 5 * BYTES)
    keep_all(connection, [1, 2])
    assert connection.limits == [2 * BYTES, 10 * BYTES]
    wait_for_end(connection)
    keep_all(connection, [1])
    assert connection.limits == [2 * BYTES, 10 * BYTES, 0, 2 * BYTES]
    wait_for_end(connection)


def test_each_call_extends_the_time(short_time, monkeypatch):
    monkeypatch.setattr(_peer_memory, "KEPT_S", 3)
    connection = Connection()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        keep_all(connection, [1])
        time.sleep(0.01)
    assert connection.limits == [2 * BYTES]
    wait_for_end(connection)


def test_the_time_keeps_no_connection(short_time):
    connection = Connection()
    keep_all(connection, [1, 1])
    limits = connection.limits
    del connection
    gc.collect()
    assert len(_peer_memory._kept) == 0
    time.sleep(0.5)
    assert limits == [2 * BYTES]


def test_a_daemon_that_has_ended_is_no_error(short_time, capfd):
    connection = Connection()
    keep_all(connection, [1, 1])
    connection.set.clear()

    def fail(function, bytes):
        connection.set.set()
        raise shufd.NoDaemon("gone")

    connection.call = fail
    assert connection.set.wait(20)
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_the_limit_is_set_again_after_an_error_at_its_end(short_time):
    connection = Connection()
    keep_all(connection, [1, 1])
    call, connection.call = connection.call, None
    connection.set.clear()

    def fail(function, bytes):
        connection.limits.append(bytes)
        connection.set.set()
        raise shufd.Timeout("the daemon is busy")  # libshuf has set the limit all the same

    connection.call = fail
    assert connection.set.wait(20)
    connection.call = call
    keep_all(connection, [1])
    assert connection.limits == [2 * BYTES, 0, 2 * BYTES]
    wait_for_end(connection)


def test_small_blocks_leave_the_limit_alone(short_time):
    """libshuf keeps them mapped by itself."""
    connection = Connection()
    keep_all(connection, [1, 1, 1], 4 << 20)
    assert connection.limits == []


def test_nothing_stays_mapped_if_no_thread_can_end_it(short_time, monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    connection = Connection()
    monkeypatch.setattr(threading.Timer, "start", fail)
    keep_all(connection, [1, 1, 1])
    assert connection.limits == []
    monkeypatch.undo()


def test_a_real_connection_takes_the_limit(short_time, client):
    connection = client._connection()
    keep_all(connection, [1, 1])
    assert _peer_memory._kept[connection].limit == 2 * BYTES
    _peer_memory._kept[connection]._set_limit(0)
    client.permute(10, seed=1)
