# SPDX-License-Identifier: MIT
"""Permutations and random numbers as arrays of JAX, computed in this process; shufd.jax exports them.

On CPUs, and on GPUs of CUDA if the package has its CUDA library, XLA calls libshuf without Python: two handlers of XLA's
foreign function interface (ffi/xla.c) fill the memory of the result, on a GPU in XLA's stream. The seed and the place may be values that jit and vmap trace. On a GPU, a call whose numbers are not
fixed in its program first waits for the work before it and copies these numbers to the host.

On other platforms, and with JAX before 0.5.0, a callback of the host computes the values: XLA calls Python, which costs
some 300 us, holds Python's global lock for a moment, and copies the values.
"""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
import re
import warnings
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence, Union

import numpy as np

from . import _arguments, _dtype, _request, local
from ._arguments import seed_of, u64
from ._errors import DeviceError, Invalid, renamed
from ._in_process import check, workspace_bytes
from ._shuf import ffi, lib

_LOW = 0xFFFF_FFFF
_TARGET = "shufd_fill"
_ALIGNMENT = 16  # bytes, of CUDA memory
_WORKSPACE_ALIGNMENT = 256
Shape = Union[int, Sequence[int]]
if TYPE_CHECKING:  # the samplers for Grain need no JAX
    import jax

    Number = Union[int, jax.Array]


def _is_array(value: Any) -> bool:
    """Whether a number is an array of NumPy or JAX, which jit may trace."""
    import jax.numpy as jnp

    return isinstance(value, (jnp.ndarray, np.ndarray))


def _words(name: str, value: Any) -> Any:
    """A number of 64 bits, which may be traced, as two of 32: without jax_enable_x64, JAX has no others."""
    import jax.numpy as jnp

    if isinstance(value, np.ndarray) and not value.shape and value.dtype.kind in "iu":
        value = int(value)
    if not _is_array(value):
        number = seed_of(value) if name == "seed" else u64(name, value)
        return np.array([number & _LOW, number >> 32], np.uint32)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise Invalid(f"{name}: {value.dtype}, shape {value.shape}: expected a single integer; for several, use jax.vmap")
    if value.dtype.itemsize == 8:
        return jnp.stack([(value & _LOW).astype(jnp.uint32), ((value >> 32) & _LOW).astype(jnp.uint32)])
    above = jnp.where(value < 0, np.uint32(_LOW), np.uint32(0)) if jnp.issubdtype(value.dtype, jnp.signedinteger) else jnp.zeros_like(value)
    return jnp.stack([value.astype(jnp.uint32), above.astype(jnp.uint32)])


class _Form(NamedTuple):
    """A call of libshuf, without the numbers that select the values: a permutation, or with n 0 random numbers."""

    shape: tuple[int, ...]
    dtype: int
    n: int = 0
    algorithm: str = ""
    law: str = ""
    mean: float = 0.0
    std: float = 0.0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def kind(self) -> Any:
        return np.dtype(_dtype.numpy_of(self.dtype))

    @property
    def source(self) -> tuple[int, int]:
        """The distribution and the method of random numbers."""
        return _request.LAWS[self.law][:2] if self.law else (0, 0)

    def request(self, seed: int = 0, epoch: int = 0) -> Any:
        """That of a permutation."""
        request = _request.whole(self.n, seed, None, epoch, self.algorithm)
        request.permutation.dtype = self.dtype
        return request

    def fill(self, out: Any, place: list[int]) -> None:
        """Fills an array in host memory."""
        if self.n:
            status = lib.shufpy_host_fill(self.request(*place), 1, out.ctypes.data, out.nbytes)
        else:
            status = lib.shufpy_host_numbers(
                self.source[0], *place, self.size, self.mean, self.std, 0, self.dtype, self.source[1], 1, out.ctypes.data,
                out.nbytes,
            )  # fmt: skip
        check(status)


# ---- The platforms on which XLA can call libshuf -------------------------------------------------


class Platforms(NamedTuple):
    """The platforms of JAX, such as "cpu", on which XLA can call libshuf, and whether this process has others."""

    names: frozenset[str]
    has_others: bool


@functools.cache
def _platforms() -> Platforms:
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


def _workspace_of(request: Any) -> int:
    """The device memory that a GPU needs for a request; 0 if no GPU may compute it. Fails with Invalid if no GPU can."""
    return workspace_bytes(request) if "cuda" in _platforms().names else 0


# ---- Calls ---------------------------------------------------------------------------------------


def _by_xla(form: _Form, workspace: int, *words: Any, **fixed: Any) -> Any:
    """An array that libshuf fills. The handler takes its numbers from `words` or from the attribute of this name. Under vmap
    there is still one call, with the words of all elements, and a workspace for each of them."""
    import jax

    fields = np.array([form.n, form.source[0], form.dtype, form.source[1], form.size], np.uint64)
    lanes = _ALIGNMENT // form.kind.itemsize if "cuda" in _platforms().names else 1
    filled = -(-form.size // lanes) * lanes  # so each row of a batch begins at an aligned address
    results = [jax.ShapeDtypeStruct(form.shape if filled == form.size else (filled,), form.kind)]
    if workspace:
        results.append(jax.ShapeDtypeStruct((-(-workspace // _WORKSPACE_ALIGNMENT), _WORKSPACE_ALIGNMENT // 4), np.uint32))
    values = jax.ffi.ffi_call(_TARGET, results, vmap_method="expand_dims")(
        *words, **fixed, form=fields, law=np.array([form.mean, form.std]), algorithm=form.algorithm
    )[0]
    return values if filled == form.size else values[: form.size].reshape(form.shape)


def _by_callback(form: _Form, words: Any) -> Any:
    """The same by a callback of the host: XLA calls Python."""
    import jax

    def fill(words: Any) -> Any:
        words = np.asarray(words)
        numbers = words[..., 0] | words[..., 1].astype(np.uint64) << np.uint64(32)
        places = numbers.reshape(-1, numbers.shape[-1])
        out = np.empty((len(places), form.size), form.kind)
        for row, place in zip(out, places.tolist()):
            form.fill(row, place)
        return out.reshape((*numbers.shape[:-1], *form.shape))

    return jax.pure_callback(fill, jax.ShapeDtypeStruct(form.shape, form.kind), words, vmap_method="expand_dims")


@functools.lru_cache(maxsize=1024)
def _program(form: _Form, fixed: tuple[int, ...] = ()) -> Callable[..., Any]:
    """The computation as a function of the words, or without arguments if their values are `fixed`."""
    import jax

    constant = np.array(fixed, np.uint32)
    names, has_others = _platforms()
    workspace = 0
    try:
        workspace = _workspace_of(form.request()) if form.n else 0
    except Invalid:  # the permutation is too large for a GPU
        names, has_others = names - {"cuda"}, True

    def by_xla(*words: Any) -> Any:
        return _by_xla(form, workspace, *words) if words else _by_xla(form, workspace, words=constant)

    def by_callback(*words: Any) -> Any:
        return _by_callback(form, *(words or (constant.reshape(-1, 2),)))

    def run(*words: Any) -> Any:
        if not has_others:
            return by_xla(*words)
        return jax.lax.platform_dependent(*words, default=by_callback, **dict.fromkeys(names, by_xla))

    program: Callable[..., Any] = jax.jit(run, inline=True)
    return program


def _call(form: _Form, **numbers: Any) -> Any:
    """The values of a call. `numbers` may be traced.

    On a GPU, libshuf needs them in host memory. So numbers that a program has fixed become attributes of its call. Others
    are arguments, which the handler copies; so eager calls compile nothing for new numbers."""
    import jax
    import jax.numpy as jnp

    if form.kind.itemsize == 8 and not jax.config.jax_enable_x64:
        raise Invalid(f"dtype: {form.kind}: expected a type of at most 32 bits; set jax_enable_x64 for 64 bits")
    each = [_words(name, value) for name, value in numbers.items()]
    if form.size == 0:
        return jnp.empty(form.shape, form.kind)
    if not all(isinstance(words, np.ndarray) for words in each):
        return _program(form)(jnp.stack(each))
    words = np.stack(each)
    if "cuda" in _platforms().names and isinstance(jnp.asarray(words), jax.core.Tracer):
        return _program(form, tuple(words.ravel().tolist()))()
    return _program(form)(words)


def randperm(
    n: int, seed: Number, epoch: Number = 0, *, dtype: Any = None, algorithm: str = "primefold"
) -> jax.Array:
    """The permutation of [0, n) that algorithm, seed and epoch select, computed in this process. The values are those of
    shufd.permute().

    n            1 to 2^62
    seed, epoch  numbers, or single integers of JAX, which jit and vmap may trace. A negative seed selects the same as seed +
                 2^64
    dtype        "u32" (n <= 2^32) or i64 and u64, which need jax_enable_x64; by default the smaller one that holds n - 1
    algorithm    "primefold", "philox24" or "lcg". On a GPU the last two need a workspace, for each element of a batch

    Works eagerly, under jit and vmap, and beside grad, on each platform of JAX. A traced epoch or stream below 0 is that number +
    2^64. Errors: Invalid; for traced numbers out of
    range, a ValueError or RuntimeError of JAX when the program runs.
    """
    request = _request.permutation(n, 0, None, 0, None, _request._NO_SHARD, _request._NO_PART, dtype, algorithm)
    number = int(_request.shape_of(request).dtype)
    count = int(request.permutation.n)
    return _call(_Form((count,), number, count, algorithm), seed=seed, epoch=epoch)


def normal(
    shape: Shape, seed: Number, *, loc: float = 0.0, scale: float = 1.0, stream: Number = 0, offset: Number = 0,
    dtype: Any = "f32", method: str = "table",
) -> jax.Array:  # fmt: skip
    """Normal random numbers, computed in this process. The values are those of shufd.normal().

    shape      a length or a shape
    seed, stream, offset
               numbers, or single integers of JAX, as in randperm()
    loc, scale mean and standard deviation: plain numbers, -2^100 to 2^100 and 2^-100 to 2^100
    dtype      "f32", "f16", "bf16", or "f64", which needs jax_enable_x64
    method     "table" or "box-muller"
    Errors: as randperm().
    """
    number = _dtype.number_of(dtype, _request.LAWS["table"].types)
    local.normal(loc, scale, 0, seed=0, dtype=_dtype.numpy_of(number), method=method)  # checks the arguments
    form = _Form(_arguments.shape(shape), number, law=method, mean=float(loc), std=float(scale))
    return _numbers(form, seed, stream, offset)


def uniform(
    shape: Shape, seed: Number, *, stream: Number = 0, offset: Number = 0, dtype: Any = "f32"
) -> jax.Array:
    """Uniform random numbers of [0, 1), computed in this process. The values are those of shufd.uniform().

    dtype  "f32" or "u32", or "f64" and "u64", which need jax_enable_x64; integers are all those of the type
    The other arguments and the errors are those of normal().
    """
    number = _dtype.number_of(dtype, _request.LAWS["uniform"].types)
    return _numbers(_Form(_arguments.shape(shape), number, law="uniform"), seed, stream, offset)


def _numbers(form: _Form, seed: Any, stream: Any, offset: Any) -> Any:
    if not _is_array(offset):
        _check_place(form, u64("offset", offset))
    return _call(form, seed=seed, stream=stream, offset=offset)


def _check_place(form: _Form, offset: int) -> None:
    """Fails at once with Invalid. If the offset is traced, XLA fails when it calls libshuf."""
    try:
        _request.bytes_of(
            _request.numbers(form.law, 0, None, 0, offset, max(1, form.size), form.dtype, form.mean, form.std)
        )
    except Invalid as error:
        raise renamed(error, count="size") from None
