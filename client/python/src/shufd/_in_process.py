# SPDX-License-Identifier: MIT
"""Computations of this process: the calls of libshuf, and the memory that they fill."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any, Iterator, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _arguments, _dtype, _errors, _process
from ._arguments import counted, integer, shown
from ._errors import Invalid, OutOfMemory
from ._names import advise_arguments
from ._shuf import ffi, lib

# ---- Calls of libshuf ----------------------------------------------------------------------------


def failure() -> BaseException:
    """The error of the call that failed last in this thread, or the exception of a signal handler, such as
    KeyboardInterrupt."""
    if (interrupt := _process.take_interrupt()) is not None:
        return interrupt
    message = ffi.string(lib.shufpy_message()).decode(errors="replace")
    return _errors.make(ffi.string(lib.shuf_status_name(lib.shufpy_status())).decode(), message, False)


def check(status: int) -> None:
    """Raises the error of a call that has failed."""
    if status:
        raise failure()


def check_shuffle(name: str, status: int) -> None:
    """check() for a shuffle of an array with this name, which libshuf calls `in`."""
    try:
        check(status)
    except _errors.Invalid as error:
        raise _errors.Invalid(
            re.sub("^in and out overlap: (.*)", rf"{name} and out overlap: \1; a shuffle cannot be in place", str(error))
        ) from None


def workspace_bytes(request: Any) -> int:
    """The device memory that a GPU needs beside the result of a shuf_request."""
    size = ffi.new("size_t *")
    check(lib.shufpy_cuda_workspace(request, size))
    return int(size[0])


# ---- Intervals -----------------------------------------------------------------------------------


class Interval(NamedTuple):
    """low + u (high - low) for u in [0, 1), with the same rounding in NumPy and torch, on any device. The fields are numbers of
    the type of the values. `last` is the number before `high`, or `low` if they are equal: the sum
    for the last u before 1 may round to `high`."""

    low: float
    width: float
    last: float


def interval(low: float, high: float, kind: np.dtype[Any]) -> Interval | None:
    """The interval for a type of NumPy; None for [0, 1). Fails with Invalid for a type of integers, and for limits that
    the type cannot hold."""
    if low == 0.0 and high == 1.0:
        return None
    if kind.kind == "u":
        raise Invalid(
            f"low: {low}, high: {high}: expected neither with dtype {kind}, which draws all integers of the type; "
            "for a range, use numpy.random.Generator(shufd.BitGenerator(seed)).integers(low, high)"
        )
    most = float(np.finfo(kind).max)
    for name, value in (("low", low), ("high", high)):
        if not -most <= value <= most:
            raise Invalid(f"{name}: {value}: expected a finite number of type {kind}")
    if not 0 <= high - low <= most:
        raise Invalid(f"high: {high}: expected at least low = {low}, and a finite difference of type {kind}")
    of = kind.type
    # The sum makes 0 of -0: the minimum of the two may be either.
    return Interval(float(of(low)) + 0.0, float(of(high - low)), float(np.nextafter(of(high), of(low))) + 0.0)


def scale(values: Any, to: Interval) -> None:
    """Moves numbers of [0, 1) in an array of NumPy or CuPy to the interval, in place."""
    kind = values.dtype.type
    values *= kind(to.width)
    values += kind(to.low)
    values.clip(None, kind(to.last), out=values)


# ---- The memory that a call fills ----------------------------------------------------------------

Shape = tuple[int, ...]


def _refuse_tensor(array: Any, name: str = "out") -> None:
    if type(array).__module__.partition(".")[0] == "torch":
        raise Invalid(f"{name}: a tensor of torch: expected an array of NumPy or CuPy; for tensors, use shufd.torch")


def is_on_device(array: Any, name: str = "out") -> bool:
    """Whether an array is in the memory of a GPU. A tensor of torch has streams of its own."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__cuda_array_interface__"):
        return False
    _refuse_tensor(array, name)
    return True


def number_of(dtype: Any, out: Any, default: str | None, allowed: tuple[str, ...]) -> int:
    """The number of the type of the values. If the caller gives none, that of `out`, or the default."""
    _refuse_tensor(out)
    return _dtype.number_of_out(out, default, allowed) if dtype is None else _dtype.number_of(dtype, allowed)


def threads_of(threads: Any) -> int:
    """The number of threads as libshuf takes it."""
    number = integer("threads", threads)
    if not 0 <= number < 2**31:
        raise Invalid(f"threads: {number}: expected 0, which means all processors, or a number of threads")
    return number


def _is_contiguous(out: Any) -> bool:
    if isinstance(out, np.ndarray):
        return out.flags.c_contiguous and out.flags.aligned
    interface = out.__cuda_array_interface__
    strides, expected = interface.get("strides"), np.dtype(interface["typestr"]).itemsize
    for length, stride in zip(reversed(interface["shape"]), reversed(strides or ())):
        if stride != expected and length > 1:
            return False
        expected *= length
    return True


def _is_writeable(out: Any) -> bool:
    return bool(out.flags.writeable if isinstance(out, np.ndarray) else not out.__cuda_array_interface__["data"][1])


def _kind_of(out: Any) -> Any:
    return out.dtype if isinstance(out, np.ndarray) else np.dtype(out.__cuda_array_interface__["typestr"])


def _is_same_on_device(out: Any, kind: np.dtype[Any]) -> bool:
    """CuPy's bfloat16 is no type of the interface, which then shows bytes or ml_dtypes' type."""
    return not isinstance(out, np.ndarray) and kind.kind == "V" and _kind_of(out).itemsize == kind.itemsize


def new(shape: Shape, kind: np.dtype[Any]) -> Any:
    """A new array."""
    try:
        return np.empty(shape, kind)
    except (MemoryError, ValueError, OverflowError) as error:
        size = math.prod(shape) * kind.itemsize
        if size < 2**63 and not isinstance(error, MemoryError):
            raise Invalid(f"result: {counted(len(shape), 'dimension')}, {size} bytes: {error}") from None
        raise OutOfMemory(f"result: {size} bytes: they do not fit the memory of this process; ask for a part of it") from None


def array_for(out: Any, shape: Shape, kind: Any, name: str = "out") -> Any:
    """A new array, or `out` after its check."""
    if type(out) is np.ndarray and out.dtype == kind and out.shape == shape and out.flags.carray:
        return out  # the usual one, in a quarter of the time
    kind = np.dtype(kind)
    if out is None:
        return new(shape, kind)
    _refuse_tensor(out, name)
    if isinstance(out, np.ma.MaskedArray) or not (isinstance(out, np.ndarray) or is_on_device(out)):
        raise Invalid(f"{name}: {shown(out)}: expected an array of NumPy or CuPy of shape {shape} and type {kind}")
    given = _kind_of(out)
    if given != kind and not _is_same_on_device(out, kind):
        order = " in native byte order" if kind.isnative and not given.isnative else ""
        raise Invalid(f"{name}: type {given}: expected {kind}{order}")
    if tuple(out.shape) != shape:
        raise Invalid(f"{name}: shape {tuple(out.shape)}: expected {shape}")
    if not _is_contiguous(out):
        raise Invalid(f"{name}: strides {out.strides}: expected a C-contiguous array that is aligned for its type")
    if not _is_writeable(out):
        raise Invalid(f"{name}: read-only: expected an array that may be written")
    return out


@contextlib.contextmanager
def _stream_of(array: Any) -> Iterator[int]:
    """CuPy's current stream on the device of an array, whose work is queued there."""
    import cupy

    device = getattr(array, "device", None)
    if not isinstance(device, cupy.cuda.Device):
        device = cupy.cuda.Device(cupy.cuda.runtime.pointerGetAttributes(address_of(array)).device)
    with device:
        yield int(cupy.cuda.get_current_stream().ptr)


def _workspace(request: Any) -> tuple[Any, int, int]:
    """The workspace of a request in CuPy's memory: what keeps it, its address and bytes. Its end does not wait, because
    CuPy gives the memory only to later work of the same stream."""
    import cupy

    size = workspace_bytes(request)
    memory = cupy.cuda.alloc(max(1, size))
    return memory, int(memory.ptr) if size else 0, size


def scale_out(out: Any, to: Interval) -> None:
    """Turns uniform numbers of [0, 1) into those of an interval, on the device of the array."""
    with contextlib.nullcontext() if isinstance(out, np.ndarray) else _stream_of(out):
        scale(out, to)


def fill(request: Any, out: Any, threads: int) -> None:
    """Writes the result of a shuf_request to an array of its size."""
    if isinstance(out, np.ndarray):
        check(lib.shufpy_host_fill(request, threads, address_of(out), out.nbytes))
        return
    with _stream_of(out) as stream:
        kept, workspace, size = _workspace(request)
        check(lib.shufpy_cuda_fill(request, address_of(out), out.nbytes, workspace, size, stream))
        del kept


def shuffle(request: Any, rows: Any, out: Any, threads: int) -> None:
    """Writes the shuffle of contiguous rows to an array of the same size and place."""
    records = ffi.addressof(request, "records")
    if isinstance(out, np.ndarray):
        check_shuffle("array", lib.shufpy_host_shuffle(records, threads, address_of(rows), address_of(out), out.nbytes))
        return
    with _stream_of(out) as stream:
        kept, workspace, size = _workspace(request)
        check_shuffle("array", lib.shufpy_cuda_shuffle(
            records, address_of(rows), address_of(out), out.nbytes, workspace, size, stream
        ))  # fmt: skip
        del kept


_ADDRESS = ffi.typeof("uintptr_t")


def address_of_integers(array: npt.NDArray[Any]) -> int:
    """The address of a contiguous array of integers. array.ctypes.data takes a microsecond."""
    return int(ffi.cast(_ADDRESS, ffi.from_buffer(array)))


def address_of(array: Any) -> int:
    """The address of the first value."""
    return array.ctypes.data if isinstance(array, np.ndarray) else int(array.__cuda_array_interface__["data"][0])


# ---- Fingerprints --------------------------------------------------------------------------------


@advise_arguments
def fingerprint(values: npt.ArrayLike, *, threads: int = 1) -> str:
    """The fingerprint of an array, which is that of Client.fingerprint() for the values of a whole permutation: 64 bits
    computed from all values in their order, as 0x and 16 hexadecimal digits.

    values  of a type with 2, 4 or 8 bytes, of any shape. Integers below 2^32 have one fingerprint as u32, u64 and i64. The
            order of the bytes in memory makes no difference
    """
    given = _arguments.array("values", values)
    array = _arguments.contiguous("values", given, given.dtype.newbyteorder("="))
    if array.dtype.hasobject or array.itemsize not in (2, 4, 8):
        raise Invalid(f"values: type {array.dtype}: expected a type with 2, 4 or 8 bytes")
    result = ffi.new("uint64_t *")
    check(lib.shufpy_host_fingerprint(
        array.ctypes.data, array.itemsize, array.size, threads_of(threads), result
    ))  # fmt: skip
    return f"{result[0]:#018x}"
