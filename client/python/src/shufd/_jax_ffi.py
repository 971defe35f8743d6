# SPDX-License-Identifier: MIT
"""Calls of libshuf by XLA, for _jax_random.py. Two handlers of XLA's foreign function interface (ffi/xla.c) fill host
memory, and CUDA memory in XLA's stream, without Python."""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
import re
import warnings
from typing import Any, NamedTuple

import numpy as np

from . import _request
from ._errors import DeviceError
from ._in_process import workspace_bytes
from ._shuf import ffi, lib

_TARGET = "shufd_fill"
_ALIGNMENT = 16  # bytes, of CUDA memory
_WORKSPACE_ALIGNMENT = 256


class Platforms(NamedTuple):
    """The platforms of JAX, such as "cpu", on which XLA can call libshuf, and whether this process has others."""

    names: frozenset[str]
    has_others: bool


@functools.cache
def platforms() -> Platforms:
    """The first call registers the handlers. JAX has jax.ffi from version 0.5.0 on."""
    try:
        import jax.ffi
        from jax.extend.backend import backends
    except ImportError:
        return Platforms(frozenset(), True)
    found = set(backends())
    names = set()
    if _is_known(*_version()) and _register("cpu", "cpu", "shufpy_xla_fill_host"):
        names.add("cpu")
        if "cuda" in found and _has_cuda_library() and _register("cuda", "CUDA", "shufpy_xla_fill_cuda"):
            names.add("cuda")
    return Platforms(frozenset(names), not found <= names)


def _version() -> tuple[int, int]:
    """The version of the interface, from the header that jaxlib brings for handlers; without it, the oldest one."""
    import jax.ffi

    header = pathlib.Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h")
    if not header.exists():
        return 0, 1
    text = header.read_text()
    major, minor = (int(re.findall(rf"#define XLA_FFI_API_{name} (\d+)", text)[0]) for name in ("MAJOR", "MINOR"))
    return major, minor


def _is_known(major: int, minor: int) -> bool:
    if not lib.shufpy_xla_set_version(major, minor):
        _warn(f"its foreign function interface has version {major}.{minor}, expected 0.1 or a later 0.x")
        return False
    return True


def _register(name: str, platform: str, handler: str) -> bool:
    import jax.ffi

    address = int(ffi.cast("uintptr_t", ffi.addressof(lib, handler)))
    try:
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform=platform)
    except Exception as error:  # its class differs between versions of JAX
        _warn(f"XLA refuses the function of libshuf for {name}: {error}")
        return False
    return True


def _warn(reason: str) -> None:
    import jax

    text = f"jax {jax.__version__}: {reason}; callbacks of Python compute the values instead, which takes longer"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _has_cuda_library() -> bool:
    try:
        workspace_bytes(_request.whole(1, 0, None, 0, "primefold"))
    except DeviceError as error:
        _warn(str(error))
        return False
    return True


def workspace(request: Any) -> int:
    """The device memory that a GPU needs for a request; 0 if no GPU may compute it. Fails with Invalid if no GPU can."""
    return workspace_bytes(request) if "cuda" in platforms().names else 0


def fill(shape: tuple[int, ...], kind: Any, workspace: int, *words: Any, **attributes: Any) -> Any:
    """An array that libshuf fills. The handler takes its numbers from `words` or from the attribute of this name. Under vmap
    there is still one call, with the words of all elements, and a workspace for each of them."""
    import jax

    count = math.prod(shape)
    lanes = _ALIGNMENT // kind.itemsize if "cuda" in platforms().names else 1
    filled = -(-count // lanes) * lanes  # so each row of a batch begins at an aligned address
    results = [jax.ShapeDtypeStruct(shape if filled == count else (filled,), kind)]
    if workspace:
        results.append(jax.ShapeDtypeStruct((-(-workspace // _WORKSPACE_ALIGNMENT), _WORKSPACE_ALIGNMENT // 4), np.uint32))
    values = jax.ffi.ffi_call(_TARGET, results, vmap_method="expand_dims")(*words, **attributes)[0]
    return values if filled == count else values[:count].reshape(shape)
