# SPDX-License-Identifier: MIT
"""Arrays in device memory: the structures of DLPack, and with a GPU other libraries that use the arrays."""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import shufd
from conftest import Daemon, await_value, lease_count, run_in_child
from shufd import _device
from shufd._device import Lease


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class VersionedTensor(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


def take_tensor(capsule, version):
    """Takes the tensor out of the capsule like a consumer: renames the capsule and returns the tensor."""
    name, used, kind = (
        (b"dltensor_versioned", b"used_dltensor_versioned", VersionedTensor)
        if version
        else (b"dltensor", b"used_dltensor", ManagedTensor)
    )
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_SetName", ctypes.pythonapi)
    )
    address = get(capsule, name)
    rename(capsule, used)
    return kind.from_address(address), address, used


@pytest.fixture
def waits(monkeypatch):
    """The devices and streams that are waited for."""
    calls = []
    monkeypatch.setattr(_device, "wait_for_work", lambda ordinal, stream=None: calls.append((ordinal, stream)))
    return calls


@pytest.fixture
def array(client, monkeypatch, waits):
    """A DeviceArray over host memory, for the tests that need no GPU."""
    monkeypatch.setattr(_device, "_ordinal_of", lambda address: 3)

    def make_array():
        request = shufd._request.whole(1000, 7, None, 0, "primefold")
        connection = client._connection()
        lease = Lease(connection.take(request, shufd._request.HOST))
        return _device.DeviceArray(lease, lease.dtype, (10, 100), -1)

    return make_array


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_consumer_keeps_lease(client, array, version):
    leases_before = lease_count(client)
    a = array()
    capsule = a.__dlpack__(max_version=version)
    managed, address, name = take_tensor(capsule, version)
    tensor = managed.tensor
    assert tensor.data == a.ptr and (tensor.device_type, tensor.device_id) == a.__dlpack_device__() == (2, 3)
    assert (tensor.code, tensor.bits, tensor.lanes) == (1, 32, 1)
    assert tensor.ndim == 2 and tensor.shape[:2] == [10, 100] and not tensor.strides
    if version:
        assert (managed.major, managed.flags) == (1, 1)  # read-only
    del capsule
    a.close()
    del a
    assert lease_count(client) == leases_before + 1  # the consumer still has the lease
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
    thread = threading.Thread(target=deleter, args=(address,))
    thread.start()
    thread.join()
    assert lease_count(client) == leases_before and not _device._owners


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_unused_capsules_free_their_leases(client, array, version):
    leases_before = lease_count(client)
    for _ in range(100):
        a = array()
        a.__dlpack__(max_version=version)
    del a
    assert lease_count(client) == leases_before and not _device._owners


def test_end_waits_for_the_stream_of_the_consumer(array, waits):
    managed, address, _ = take_tensor(array().__dlpack__(stream=5), None)
    assert not waits
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(address)
    assert waits == [(3, 5)]


def test_end_waits_for_consumers_of_the_interface(array, waits):
    array()
    assert not waits  # nobody has seen its address
    a = array()
    assert a.__cuda_array_interface__
    del a
    gc.collect()
    assert waits == [(3, None)]


def test_cuda_array_interface(array):
    a = array()
    interface = a.__cuda_array_interface__
    assert interface["data"] == (a.ptr, True) and interface["shape"] == (10, 100)
    assert interface["typestr"] == "<u4" and interface["version"] == 3 and interface["stream"] is None
    assert "cuda:3" in repr(a) and len(a) == 10 and a.nbytes == 4000


def test_part_of_a_lease_and_view(array):
    a = array()
    whole = _device.DeviceArray(a._lease, a.dtype, (1000,), -1)
    part = whole[990:]
    assert part.ptr == a.ptr + 4 * 990 and part.nbytes == 40 and len(part) == 10
    assert whole[5:3].shape == (0,) and len(whole[-3:-1]) == 2 and whole[:].ptr == whole.ptr
    for wrong in (lambda: whole[0], lambda: whole[::2], lambda: a[:5]):
        with pytest.raises(shufd.Invalid, match="expected a slice"):
            wrong()
    signed = part.view("i4")
    assert signed.__cuda_array_interface__["typestr"] == "<i4" and part.dtype == np.uint32
    assert signed.ptr == part.ptr and signed.shape == part.shape
    with pytest.raises(shufd.Invalid, match="dtype: int64: expected 4 bytes, as uint32 has"):
        part.view("i8")


def test_closed_array_is_refused(array):
    a = array()
    a.close()
    a.close()
    for use in (lambda: a.__cuda_array_interface__, a.__dlpack__):
        with pytest.raises(shufd.Closed, match="request it again"):
            use()
    assert "closed" in repr(a)


def test_array_of_parent_is_refused(array):
    a = array()

    def child():
        with pytest.raises(shufd.DeviceError, match="of the parent process"):
            a.__dlpack__()

    run_in_child(child)


def test_copies_are_refused(array):
    with pytest.raises(BufferError):
        array().__dlpack__(copy=True)
    with pytest.raises(BufferError):
        array().__dlpack__(dl_device=(1, 0))


# ---- With a GPU ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    """A client of a daemon on the GPU."""
    daemon = Daemon(tmp_path_factory.mktemp("gpu"), "--backend", "cuda")
    try:
        daemon.start()
    except (AssertionError, shufd.DeviceError):  # the daemon has ended, perhaps with a last reply
        pytest.skip("no GPU that shufd can use")
    with shufd.connect(daemon.socket) as client:
        yield client
    daemon.stop()


def consumers():
    """Functions that pass a device array to a library. Each returns the address, the values on the host, and the
    library's array."""
    def with_torch(torch, a):
        t = torch.from_dlpack(a)
        return t.data_ptr(), t.cpu().numpy(), t

    def with_cupy(cupy, a):
        c = cupy.asarray(a)
        return c.data.ptr, cupy.asnumpy(c), c

    def with_jax(jax, a):
        import jax.dlpack

        jax.config.update("jax_enable_x64", True)  # otherwise JAX converts i64 to 32 bits
        j = jax.dlpack.from_dlpack(a)
        return j.unsafe_buffer_pointer(), np.asarray(j), j

    return {"torch": with_torch, "cupy": with_cupy, "jax": with_jax}


@pytest.mark.parametrize("name", ["torch", "cupy", "jax"])
def test_consumers_see_the_same_memory(gpu, name):
    module = pytest.importorskip(name)
    if name == "torch" and not module.cuda.is_available():
        pytest.skip("torch sees no GPU")
    leases_before = lease_count(gpu)
    a = gpu.permute(1_000_003, 7, 3, dtype="i64", device="cuda")
    address, values, consumer = consumers()[name](module, a)
    assert address == a.ptr
    assert (values == gpu.permute(1_000_003, 7, 3, dtype="i64")).all()
    del a
    gc.collect()
    assert lease_count(gpu) == leases_before + 1
    del consumer
    assert await_value(lambda: lease_count(gpu), leases_before) == leases_before


def test_no_leak_over_many_epochs(gpu):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    leases_before = lease_count(gpu)
    gpu.permute(1_000_000, 7, device="cuda")
    descriptors, free = len(os.listdir("/proc/self/fd")), torch.cuda.mem_get_info()[0]
    for epoch in range(int(os.environ.get("SHUF_TEST_EPOCHS", 1000))):
        t = torch.from_dlpack(gpu.permute(1_000_000, 7, epoch, dtype="i64", device="cuda"))
    assert int(t.sum()) == 499_999_500_000
    del t
    assert lease_count(gpu) == leases_before
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
    assert torch.cuda.mem_get_info()[0] > free - (1 << 30)


def test_streams_on_the_gpu(gpu):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    t = torch.from_dlpack(gpu.normal(1.0, 2.0, (30, 40), seed=7, dtype="f32", device="cuda:0"))
    assert t.shape == (30, 40)
    assert np.allclose(t.cpu().numpy(), gpu.normal(1.0, 2.0, (30, 40), seed=7, dtype="f32"))


@pytest.mark.parametrize("n", [1000, 3_000_000])
def test_kernels_that_still_read_keep_the_memory(gpu, n):
    """The index array ends while the stream is busy. A small block gets the next epoch's values then, and
    a large one is unmapped."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    rows = torch.arange(n, device="cuda") + 1
    gathered = []
    for epoch in range(8):
        torch.cuda._sleep(50_000_000)  # cycles
        gathered.append(rows[torch.from_dlpack(gpu.permute(n, 7, epoch, dtype="i64", device="cuda"))])
    for epoch, values in enumerate(gathered):
        assert (values.cpu().numpy() == gpu.permute(n, 7, epoch, dtype="i64") + 1).all()


LISTS = ("to", "arriving", "order", "places")


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("sizes", [None, [300_000, 0, 700_001]])
def test_plans_on_the_gpu(gpu, sizes, inverse):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    for rank in range(3):
        asked = dict(seed=7, epoch=2, rank=rank, world=3, input=sizes, inverse=inverse)
        there, here = (gpu.exchange(1_000_001, device=device, **asked) for device in ("cuda", None))
        assert sum(map(len, (getattr(there, name) for name in LISTS))) == len(there.numbers)
        with pytest.raises(shufd.Invalid, match="expected a slice"):
            there.order[3]
        for name in LISTS:
            values = torch.from_dlpack(getattr(there, name).view("i4")).cpu().numpy()
            assert np.array_equal(values, getattr(here, name)), (rank, name)


@pytest.mark.parametrize("budget", [1 << 30, 1 << 20])
def test_global_shuffle_on_the_gpu(gpu, budget, monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    import shufd.torch

    plans, exchange, leases_before = [], gpu.exchange, lease_count(gpu)
    monkeypatch.setattr(gpu, "exchange", lambda *a, **o: plans.append(type(exchange(*a, **o).order)) or exchange(*a, **o))
    rows = {"x": torch.arange(300_000, device="cuda").reshape(100_000, 3), "y": torch.rand(100_000, device="cuda").half()}
    shuffled = shufd.torch.global_shuffle(rows, seed=7, epoch=1, budget=budget, client=gpu)
    order = torch.from_dlpack(gpu.permute(100_000, 7, 1, dtype="i64", device="cuda"))
    assert all(torch.equal(shuffled[name], rows[name][order]) for name in rows)
    back = shufd.torch.global_shuffle(shuffled, seed=7, epoch=1, inverse=True, budget=budget, client=gpu)
    assert all(torch.equal(back[name], rows[name]) for name in rows)
    assert plans == [_device.DeviceArray] * 2
    del order
    assert await_value(lambda: lease_count(gpu), leases_before) == leases_before


def test_unused_device_is_refused(gpu):
    with pytest.raises(shufd.DeviceError, match="cuda:63"):
        gpu.permute(10, 7, device="cuda:63")


def test_hidden_gpu_is_refused(gpu):
    text = (
        "import shufd\n"
        "try: shufd.connect().permute(10, 7, device='cuda')\n"
        "except shufd.DeviceError as e: print('DeviceError', e)"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "SHUFD_SOCKET": gpu.socket}
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0 and result.stdout.startswith("DeviceError"), result.stdout + result.stderr
