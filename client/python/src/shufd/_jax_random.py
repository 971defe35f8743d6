# SPDX-License-Identifier: MIT
"""Permutations and random numbers as arrays of JAX, computed in this process; shufd.jax exports them.

They are callbacks of the host: XLA calls Python, which fills an array by shufd.local. So a call costs some 300 us more than
the computation, holds Python's global lock for a moment, and on a GPU also two copies. The seed and the place may be
values that jit and vmap trace.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Callable, Sequence, Union

import numpy as np

from . import _arguments, _dtype, _request, local
from ._arguments import seed_of, u64
from ._errors import Invalid

_LOW = 0xFFFF_FFFF
Shape = Union[int, Sequence[int]]
if TYPE_CHECKING:  # the samplers for Grain need no JAX
    import jax

    Number = Union[int, jax.Array]


def _words(name: str, value: Any) -> Any:
    """A number of 64 bits, which may be traced, as two of 32: without jax_enable_x64, JAX has no others."""
    import jax.numpy as jnp

    if not isinstance(value, (jnp.ndarray, np.ndarray)):
        number = seed_of(value) if name == "seed" else u64(name, value)
        return np.array([number & _LOW, number >> 32], np.uint32)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise Invalid(f"{name}: {value.dtype}, shape {value.shape}: expected a single integer; for several, use jax.vmap")
    if value.dtype.itemsize == 8:
        return jnp.stack([(value & _LOW).astype(jnp.uint32), ((value >> 32) & _LOW).astype(jnp.uint32)])
    above = jnp.where(value < 0, np.uint32(_LOW), np.uint32(0)) if jnp.issubdtype(value.dtype, jnp.signedinteger) else jnp.zeros_like(value)
    return jnp.stack([value.astype(jnp.uint32), above.astype(jnp.uint32)])


@functools.lru_cache(maxsize=1024)
def _filler(write: Callable[..., Any], shape: tuple[int, ...], kind: Any) -> Callable[[Any], Any]:
    """The callback for arrays that write(out, *numbers) fills. XLA compiles a call anew for each other callback."""

    def fill(words: Any) -> Any:
        words = np.asarray(words)
        numbers = words[..., 0] | words[..., 1].astype(np.uint64) << np.uint64(32)
        places = numbers.reshape(-1, numbers.shape[-1])
        out = np.empty((len(places), math.prod(shape)), kind)
        for row, place in zip(out, places.tolist()):
            write(row, *place)
        return out.reshape((*numbers.shape[:-1], *shape))

    return fill


def _call(write: Callable[..., Any], shape: tuple[int, ...], kind: Any, **numbers: Any) -> Any:
    """The array that write(out, *numbers) fills. Under vmap, XLA calls it once, with the numbers of all elements."""
    import jax
    import jax.numpy as jnp

    if np.dtype(kind).itemsize == 8 and not jax.config.jax_enable_x64:
        raise Invalid(f"dtype: {kind}: expected a type of at most 32 bits; set jax_enable_x64 for 64 bits")
    words = jnp.stack([jnp.asarray(_words(name, value)) for name, value in numbers.items()])
    result = jax.ShapeDtypeStruct(shape, kind)
    return jax.pure_callback(_filler(write, shape, kind), result, words, vmap_method="expand_dims")


@functools.lru_cache(maxsize=1024)
def _order(n: int) -> Callable[..., Any]:
    return lambda out, seed, epoch: local.permute(n, seed, epoch, out=out)


@functools.lru_cache(maxsize=1024)
def _draw(name: str, kind: Any, **law: Any) -> Callable[..., Any]:
    draw = functools.partial(getattr(local, name), dtype=kind, **law)
    return lambda out, seed, stream, offset: draw(seed=seed, stream=stream, offset=offset, out=out)


def randperm(n: int, seed: Number, epoch: Number = 0, *, dtype: Any = None) -> jax.Array:
    """The permutation of [0, n) by primefold that seed and epoch select, computed in this process. The values are those of
    shufd.permute().

    n            1 to 2^62
    seed, epoch  numbers, or single integers of JAX, which jit and vmap may trace. A negative seed selects the same as seed +
                 2^64
    dtype        "u32" (n <= 2^32) or i64 and u64, which need jax_enable_x64; by default the smaller one that holds n - 1

    Works eagerly, under jit and vmap, and beside grad, on each platform of JAX; a callback of the host computes it, see
    the module. Errors: Invalid; if a call is traced, JAX reports an error of the computation as its own.
    """
    request = _request.permutation(n, 0, None, 0, None, _request._NO_SHARD, _request._NO_PART, dtype, "primefold")
    form = _request.shape_of(request)
    return _call(_order(int(request.permutation.n)), (int(form.count),), _dtype.BY_NUMBER[form.dtype], seed=seed, epoch=epoch)


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
    kind = _dtype.numpy_of(_dtype.number_of(dtype, _dtype.GAUSS))
    local.normal(loc, scale, 0, seed=0, dtype=kind, method=method)  # checks the arguments
    law = {"loc": float(loc), "scale": float(scale), "method": method}
    return _numbers(_draw("normal", kind, **law), shape, kind, seed, stream, offset)


def uniform(
    shape: Shape, seed: Number, *, stream: Number = 0, offset: Number = 0, dtype: Any = "f32"
) -> jax.Array:
    """Uniform random numbers of [0, 1), computed in this process. The values are those of shufd.uniform().

    dtype  "f32" or "u32", or "f64" and "u64", which need jax_enable_x64; integers are all those of the type
    The other arguments and the errors are those of normal().
    """
    kind = _dtype.numpy_of(_dtype.number_of(dtype, _dtype.UNIFORM))
    return _numbers(_draw("uniform", kind), shape, kind, seed, stream, offset)


def _numbers(write: Callable[..., Any], shape: Shape, kind: Any, seed: Any, stream: Any, offset: Any) -> Any:
    import jax.numpy as jnp

    lengths = _arguments.shape(shape)
    if math.prod(lengths) == 0:
        return jnp.empty(lengths, kind)
    return _call(write, lengths, kind, seed=seed, stream=stream, offset=offset)
