# SPDX-License-Identifier: MIT
"""Arrays over the memory of leases: of NumPy over host memory, DeviceArrays over that of a GPU, which torch, CuPy and JAX take.
A lease ends with its last array."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import math
from functools import cache, partial
from typing import Any, Iterator, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _process
from ._dtype import BY_NUMBER
from ._errors import Closed, DeviceError, Invalid
from ._shuf import ffi, lib

# ---- The work of other libraries on a GPU --------------------------------------------------------
# A consumer may drop an array while kernels that it has started still read the memory. The memory of a lease must not go
# back to the daemon before these kernels have ended.

_LEGACY, _PER_THREAD = 1, 2  # the default streams, as DLPack and CUDA number them


@cache
def libcuda() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _is_handle(stream: Any) -> bool:
    """Whether `stream`, as in __dlpack__(), names a stream that any thread can wait for."""
    return isinstance(stream, int) and stream >= _LEGACY and stream != _PER_THREAD


@contextlib.contextmanager
def primary_context(ordinal: int) -> Iterator[Any]:
    """Makes the primary context of the device current in this thread, as other libraries use it. Gives
    libcuda, or None after an error of the device."""
    cuda, context = libcuda(), ctypes.c_void_p()
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(ordinal)) != 0:
        yield None
        return
    is_current = cuda.cuCtxPushCurrent_v2(context) == 0
    try:
        yield cuda if is_current else None
    finally:
        if is_current:
            cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
        cuda.cuDevicePrimaryCtxRelease_v2(ctypes.c_int(ordinal))


def wait_for_work(ordinal: int, stream: Any = None) -> None:
    """Waits for the work that was given to a stream before, or without a stream to all streams of the
    device's primary context, which other libraries use too. After an error of the device it returns
    at once."""
    with primary_context(ordinal) as cuda:
        if cuda is not None and _is_handle(stream):
            cuda.cuStreamSynchronize(ctypes.c_void_p(stream))
        elif cuda is not None:
            cuda.cuCtxSynchronize()


# ---- Host memory ---------------------------------------------------------------------------------

# Looked up once: a call of a small permutation costs a few microseconds.
_end = lib.shufpy_end
_own = ffi.gc
_buffer = ffi.buffer
_array = np.frombuffer
_U32 = np.dtype(np.uint32)


def array_of_u32(lease: Any, count: int) -> np.ndarray[Any, Any]:
    """A read-only array over a lease of u32. It takes the lease over."""
    address = _own(lease.data, partial(_end, lease))
    return _array(memoryview(_buffer(address, 4 * count)).toreadonly(), _U32)


class Lease:
    """A lease of the daemon's memory in this process. It ends when nothing refers to `address`."""

    __slots__ = ("address", "bytes", "dtype", "_fields")

    def __init__(self, lease: Any) -> None:
        self._fields = lease.lease
        self.bytes: int = lease.bytes
        self.dtype = BY_NUMBER.get(lease.dtype)
        self.address = _own(lease.data, partial(_end, lease))

    @property
    def rows(self) -> int:
        return int(self._fields.result.shape.rows)

    @property
    def count(self) -> int:
        """Values in a row."""
        return int(self._fields.result.shape.count)

    @property
    def block(self) -> tuple[int, int]:
        """The id and the bytes of the daemon's block that has the values."""
        return int(self._fields.block), int(self._fields.block_bytes)

    def release(self) -> None:
        """Ends the lease now. Further calls do nothing."""
        ffi.release(self.address)

    def array(self, dtype: npt.DTypeLike | None = None) -> np.ndarray[Any, Any]:
        """A read-only array without a copy, of one dimension, or of two with several rows."""
        kind: Any = self.dtype if dtype is None else dtype
        if self.bytes == 0:
            empty: np.ndarray[Any, Any] = np.empty((self.rows * self.count,), kind)
            empty.flags.writeable = False
            return empty
        return _array(memoryview(_buffer(self.address, self.bytes)).toreadonly(), kind)


# ---- The memory of a GPU -------------------------------------------------------------------------

_CUDA = 2  # kDLCUDA
_CODES = {"i": 0, "u": 1, "f": 2}  # DLDataTypeCode
_BFLOAT = 4
_DIMENSIONS = 8  # of shufpy_tensor
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def _capi(name: str, *types: Any) -> Any:
    """A function of Python's C interface. ctypes.pythonapi itself is shared with other packages."""
    return ctypes.PYFUNCTYPE(*types)((name, ctypes.pythonapi))


# A destructor gets a capsule without references, so its address travels, not the object.
_new_capsule = _capi("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_name = _capi("PyCapsule_GetName", ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = _capi("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"  # PyCapsule keeps the pointers


def _free_unused(capsule: int) -> None:
    """The destructor of a capsule. A consumer that took the tensor has renamed the capsule."""
    name = _capsule_name(capsule)
    if name in (_PLAIN, _VERSIONED):
        pointer = _capsule_pointer(capsule, name)
        lib.shufpy_dlpack_free(ffi.cast("void *", pointer), name == _VERSIONED)


_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_free_unused)
_DESTRUCTOR = ctypes.cast(_destructor, ctypes.c_void_p).value

_owners: dict[Any, _Owner] = {}  # by handles of cffi


class _Owner(NamedTuple):
    """What a tensor of a consumer keeps alive."""

    handle: Any  # of cffi
    lease: Lease
    generation: int
    device: int
    stream: Any  # on which the consumer uses the memory; None: any


@ffi.def_extern()
def shufpy_dlpack_owner_free(handle: Any) -> None:
    owner = _owners.pop(int(ffi.cast("uintptr_t", handle)), None)
    if owner is not None and owner.generation == _process.generation:
        wait_for_work(owner.device, owner.stream)


def gpu_of(device: Any) -> Any:
    """None for host memory, which None, "cpu" and torch.device("cpu") mean; else the device."""
    return None if device is None or str(device).partition(":")[0] == "cpu" else device


def device_of(device: Any) -> int:
    """The ordinal of a device such as "cuda", "cuda:0", torch.device("cuda") or 0; -1 for any."""
    text = str(device)
    kind, _, ordinal = ("cuda", ":", text) if text.isdigit() else text.partition(":")
    if kind != "cuda" or not (ordinal == "" or ordinal.isdigit()):
        raise Invalid(f'device: {device!r}: expected None, "cpu", "cuda" or "cuda:" with a number')
    return int(ordinal) if ordinal else -1


def _ordinal_of(address: int) -> int:
    """The number of the GPU, as this process counts them. libshuf has loaded libcuda before."""
    ordinal = ctypes.c_int()
    status = libcuda().cuPointerGetAttribute(
        ctypes.byref(ordinal), ctypes.c_int(_ORDINAL), ctypes.c_uint64(address)
    )
    if status != 0:
        raise DeviceError(f"address {address:#x}: expected memory of a GPU; cuPointerGetAttribute: {status}")
    return ordinal.value


class DeviceArray:
    """A read-only array in the memory of the daemon's GPU, without a copy.

    torch.from_dlpack(array), cupy.asarray(array) and jax.dlpack.from_dlpack(array) take it. The lease
    lives until this object and all arrays of the consumers are gone, or until `close()` if there is
    no consumer. The values are complete on every stream when the object exists. The end of the last
    array waits for the kernels that still read the memory: those of the stream that the consumer gave
    to `__dlpack__()`, or else all kernels of this process on the device.

    shape, dtype, nbytes  as in NumPy
    ptr                   the address in device memory
    device                the ordinal of the GPU in this process
    """

    _lease: Lease | None = None
    _is_shown = False  # by __cuda_array_interface__: its consumers keep this object

    def __init__(self, lease: Lease, dtype: Any, shape: tuple[int, ...], ordinal: int) -> None:
        self._lease = lease
        self._generation = _process.generation
        if len(shape) > _DIMENSIONS:
            raise Invalid(f"size: {len(shape)} dimensions: expected at most {_DIMENSIONS} with a device")
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        address = int(ffi.cast("uintptr_t", lease.address))
        self.ptr = address
        try:
            self.device = _ordinal_of(address) if address else max(0, ordinal)
        except BaseException:
            lease.release()
            raise
        if ordinal not in (-1, self.device):
            lease.release()
            raise DeviceError(f"device: cuda:{ordinal}: the daemon computes on cuda:{self.device}")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._check()
        self._is_shown = True
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr, True),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA, self.device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:
        """A capsule for a consumer. The values are complete, so no stream has to wait."""
        self._check()
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("expected no copy and the device of the array")
        versioned = max_version is not None and max_version[0] >= 1
        managed = lib.shufpy_dlpack_make(self._tensor(stream), versioned)
        if managed == ffi.NULL:
            raise MemoryError("__dlpack__: out of memory")
        name = _VERSIONED if versioned else _PLAIN
        return _new_capsule(int(ffi.cast("uintptr_t", managed)), name, _DESTRUCTOR)

    def _tensor(self, stream: Any) -> Any:
        """The description for shim.h. Its owner is a reference to the lease."""
        assert self._lease is not None
        handle = ffi.new_handle(self._lease)
        _owners[int(ffi.cast("uintptr_t", handle))] = _Owner(
            handle, self._lease, _process.generation, self.device, stream
        )
        tensor = ffi.new("shufpy_tensor *")
        tensor.data, tensor.owner, tensor.device = ffi.cast("void *", self.ptr), handle, self.device
        tensor.code = _CODES.get(self.dtype.kind, _BFLOAT)
        tensor.bits = 8 * self.dtype.itemsize
        tensor.dimensions = len(self.shape)
        tensor.shape[0 : len(self.shape)] = list(self.shape)
        return tensor

    def view(self, dtype: Any) -> DeviceArray:
        """The same values as another type of the same size."""
        other = copy.copy(self)
        other.dtype = np.dtype(dtype)
        if other.dtype.itemsize != self.dtype.itemsize:
            raise Invalid(f"dtype: {other.dtype}: expected {self.dtype.itemsize} bytes, as {self.dtype} has")
        return other

    def __getitem__(self, part: slice) -> DeviceArray:
        """A part of an array of one dimension, without a copy. The step is 1."""
        if not isinstance(part, slice) or len(self.shape) != 1 or part.step not in (None, 1):
            raise Invalid(f"array[{part!r}]: expected a slice without a step, of one dimension; or use torch, CuPy or JAX")
        first, end, _ = part.indices(len(self))
        other = copy.copy(self)
        other.shape = (max(0, end - first),)
        other.nbytes = other.shape[0] * self.dtype.itemsize
        other.ptr = self.ptr + first * self.dtype.itemsize if self.ptr else 0
        return other

    def _check(self) -> None:
        if self._lease is None:
            raise Closed("array: it is closed; request it again")
        if self._generation != _process.generation:
            raise DeviceError("array: of the parent process; a child requests its own after fork()")

    def close(self) -> None:
        """Gives the lease back, unless a consumer still uses it. Further calls do nothing."""
        if self._is_shown and self._lease is not None and self._generation == _process.generation:
            wait_for_work(self.device)
        self._lease = None

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        state = ", closed" if self._lease is None else ""
        return f"<shufd.DeviceArray {self.shape} {self.dtype} on cuda:{self.device}{state}>"


def head_of(array: DeviceArray, count: int, stream: int) -> np.ndarray[Any, Any]:
    """The first `count` values of an array of one dimension, in host memory, by a copy in a stream of CUDA. Takes less time
    than a copy by torch. Errors: DeviceError."""
    array._check()
    values = np.empty(count, array.dtype)
    with primary_context(array.device) as cuda:
        error = cuda is None or cuda.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(array.ptr), ctypes.c_size_t(values.nbytes),
            ctypes.c_void_p(stream),
        ) or cuda.cuStreamSynchronize(ctypes.c_void_p(stream))  # fmt: skip
    if error:
        raise DeviceError(f"array: CUDA error {int(error)} in a copy to host memory")
    return values


def block_of(array: DeviceArray) -> tuple[int, int]:
    """The id and the bytes of the daemon's block that has the values."""
    array._check()
    assert array._lease is not None
    return array._lease.block
