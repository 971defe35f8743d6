# SPDX-License-Identifier: MIT
"""The context of other libraries on a GPU, and waits for their work.

A consumer may drop an array while kernels that it has started still read the memory. The memory of a
lease must not go back to the daemon before these kernels have ended.
"""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache
from typing import Any, Iterator

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


def wait(ordinal: int, stream: Any = None) -> None:
    """Waits for the work that was given to a stream before, or without a stream to all streams of the
    device's primary context, which other libraries use too. After an error of the device it returns
    at once."""
    with primary_context(ordinal) as cuda:
        if cuda is not None and _is_handle(stream):
            cuda.cuStreamSynchronize(ctypes.c_void_p(stream))
        elif cuda is not None:
            cuda.cuCtxSynchronize()
