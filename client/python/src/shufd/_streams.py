# SPDX-License-Identifier: MIT
"""Waits for the work of other libraries on a GPU.

A consumer may drop an array while kernels that it has started still read the memory. The memory of a
lease must not go back to the daemon before these kernels have ended.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_LEGACY, _PER_THREAD = 1, 2  # the default streams, as DLPack and CUDA number them


@cache
def _libcuda() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _is_handle(stream: Any) -> bool:
    """Whether `stream`, as in __dlpack__(), names a stream that any thread can wait for."""
    return isinstance(stream, int) and stream >= _LEGACY and stream != _PER_THREAD


def wait(ordinal: int, stream: Any = None) -> None:
    """Waits for the work that was given to a stream before, or without a stream to all streams of the
    device's primary context, which other libraries use too. After an error of the device it returns
    at once."""
    cuda, context = _libcuda(), ctypes.c_void_p()
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(ordinal)) != 0:
        return
    if cuda.cuCtxPushCurrent_v2(context) == 0:
        if _is_handle(stream):
            cuda.cuStreamSynchronize(ctypes.c_void_p(stream))
        else:
            cuda.cuCtxSynchronize()
        cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
    cuda.cuDevicePrimaryCtxRelease_v2(ctypes.c_int(ordinal))
