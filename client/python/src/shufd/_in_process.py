# SPDX-License-Identifier: MIT
"""Calls of libshuf that compute in this process, without a daemon. local.c has them."""

from __future__ import annotations

import re
from typing import Any

from . import _errors, _interrupt
from ._shuf import ffi, lib

_INSTALL = "; the Python package contains it if its build found nvcc: pip install ./client/python"


def failure() -> BaseException:
    """The error of the call that failed last in this thread, or the exception of a signal handler, such as
    KeyboardInterrupt."""
    if (interrupt := _interrupt.take()) is not None:
        return interrupt
    message = ffi.string(lib.shufpy_message()).decode(errors="replace")
    if lib.shufpy_status() == lib.SHUF_DEVICE and "install libshuf-cuda.so" in message:
        message += _INSTALL
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
