# SPDX-License-Identifier: MIT
"""Fingerprints of arrays."""

from __future__ import annotations

import numpy.typing as npt

from . import _arguments, _out
from ._errors import Invalid
from ._in_process import check
from ._names import advise_arguments
from ._shuf import ffi, lib


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
        array.ctypes.data, array.itemsize, array.size, _out.threads_of(threads), result
    ))  # fmt: skip
    return f"{result[0]:#018x}"
