# SPDX-License-Identifier: MIT
"""Requests of libshuf from arguments of Python. libshuf checks the ranges; only numbers that its
fields cannot hold fail here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _dtype
from ._arguments import counted, seed_of, shown, u64
from ._errors import Invalid, make
from ._shuf import ffi, lib

_REQUEST = ffi.typeof("shuf_request *")
_OPTIONS = ffi.typeof("shuf_lease_options *")
_NO_SHARD = (None, None, False, None)
_NO_PART = (None, None, None)
_MESSAGE = 512  # bytes, as libshuf's messages
_names: dict[str, Any] = {}


class Law(NamedTuple):
    """The distribution of numbers, its method, the types of its values, the function that draws them, and the names of its
    arguments for fields of libshuf."""

    distribution: int
    method: int
    types: tuple[str, ...]
    function: str
    names: dict[str, str]


_FLOATS = ("f64", "f32", "f16", "bf16")
LAWS = {  # a normal law has the name of its method
    "uniform": Law(lib.SHUF_UNIFORM, 0, ("f64", "f32", "u32", "u64"), "uniform", {}),
    "table": Law(lib.SHUF_GAUSS, 0, _FLOATS, "normal", {"mean": "loc", "std": "scale"}),
    "box-muller": Law(lib.SHUF_GAUSS, 1, _FLOATS, "normal", {"mean": "loc", "std": "scale"}),
    "exponential": Law(lib.SHUF_EXPONENTIAL, 0, ("f64", "f32"), "exponential", {"mean": "scale"}),
    "bits": Law(lib.SHUF_BERNOULLI, 0, ("u32", "u64"), "bits", {"mean": "p"}),
    "integers": Law(lib.SHUF_INTEGERS, 0, ("u32", "u64"), "integers", {}),
}
METHODS = tuple(name for name, law in LAWS.items() if law.function == "normal")


def _text(field: str, name: str) -> Any:
    """The name of an algorithm or a key as a C string, which lives as long as the process: there are
    few."""
    text = _names.get(name) if isinstance(name, str) else None
    if text is None:
        if not isinstance(name, str) or not 0 < len(name) <= 31 or not name.isprintable():
            raise Invalid(f"{field}: {shown(name)}: expected the name of the {field}, 1 to 31 characters")
        text = _names[name] = ffi.new("char[]", name.encode())
    return text


def _given(**arguments: Any) -> str:
    """The arguments that the caller has given, for a message."""
    return ", ".join(f"{name}: {shown(value)}" for name, value in arguments.items() if value is not None)


def _set_seed(request: Any, seed: int | None, key: str | None) -> None:
    if (seed is None) == (key is None):
        raise Invalid(f"seed: {seed!r}, key: {key!r}: expected one of the two")
    if key is not None:
        request.key = _text("key", key)
    else:
        request.seed = seed_of(seed)


def _new(kind: int) -> Any:
    request = ffi.new(_REQUEST)
    request.kind = kind
    return request


def whole(
    n: int, seed: int | None, key: str | None, epoch: int, algorithm: str, chunk: int | None = None, window: int | None = None
) -> Any:
    """A shuf_request for a whole permutation, or with chunk and window for a whole windowed order."""
    request = _new(lib.SHUF_PERMUTATION)
    order = request.permutation
    order.algorithm = _text("algorithm", algorithm)
    order.n = u64("n", n)
    _set_seed(order, seed, key)
    order.epoch = u64("epoch", epoch)
    if chunk is not None or window is not None:
        _set_windows(order, chunk, window)
    return request


def _set_windows(request: Any, chunk: int | None, window: int | None) -> None:
    if chunk is None or window is None:
        raise Invalid(f"chunk: {shown(chunk)}, window: {window}: expected both or none")
    if np.iterable(chunk):
        raise Invalid(f"chunk: {shown(chunk)}: expected an integer; for the sizes of chunks, use shufd.local.Permutation")
    request.chunk, request.window = u64("chunk", chunk), u64("window", window)
    if request.chunk == 0 or request.window == 0:
        raise Invalid(f"chunk: {chunk}, window: {window}: expected at least 1")


def _set_slice(request: Any, n: int, offset: int | None, count: int | None, stride: int | None) -> None:
    first = u64("offset", 0 if offset is None else offset)
    step = u64("stride", 1 if stride is None else stride)
    if step == 0:  # libshuf would take 1
        raise Invalid("stride 0: expected at least 1")
    if first > n > 0:
        raise Invalid(f"offset: {first}: expected at most n, which is {n}")
    number = u64("count", -((first - n) // step) if count is None else count)
    if number == 0:
        _set_shard(request, 0, 1, False, n, None)  # the rest after the last value, which is empty
        return
    request.view = lib.SHUF_VIEW_SLICE
    request.offset, request.stride, request.count = first, step, number


def _set_shard(
    request: Any, rank: int | None, world: int | None, drop_last: bool, step: int | None,
    count: int | None,
) -> None:
    if rank is None or world is None:
        raise Invalid(f"rank: {rank}, world: {world}: expected both or none")
    if count is not None and count == 0:
        raise Invalid("count: 0: expected 1 or more, or None for all values of the rank")
    request.view = lib.SHUF_VIEW_SHARD
    request.rank, request.world = u64("rank", rank), u64("world", world)
    request.step = u64("step", 0 if step is None else step)
    request.count = u64("count", 0 if count is None else count)
    request.drop_last = bool(drop_last)


def _set_epochs(request: Any, epochs: range) -> None:
    if not isinstance(epochs, range) or epochs.step != 1 or not epochs:
        single = f"; did you mean epoch={epochs} or epochs=range({epochs})?" if isinstance(epochs, int) else ""
        raise Invalid(f"epochs: {shown(epochs)}: expected a range with step 1 and at least one epoch{single}")
    request.epoch, request.epochs = u64("epochs", epochs.start), u64("epochs", epochs.stop - epochs.start)


def permutation(
    n: int,
    seed: int | None,
    key: str | None,
    epoch: int,
    epochs: range | None,
    shard: tuple[int | None, int | None, bool, int | None],
    part: tuple[int | None, int | None, int | None],
    dtype: Any,
    algorithm: str,
    chunk: int | None = None,
    window: int | None = None,
) -> Any:
    """A shuf_request for a permutation. `shard` is rank, world, drop_last and step; `part` is offset, count and
    stride. A count belongs to either."""
    if isinstance(epoch, range):
        raise Invalid(f"epoch: {epoch!r}: expected an integer; did you mean epochs={epoch!r}?")
    request = whole(n, seed, key, epoch, algorithm, chunk, window)
    order = request.permutation
    if dtype is not None:
        order.dtype = _dtype.number_of(dtype, _dtype.PERMUTATION)
    if epochs is not None:
        if epoch != 0:
            raise Invalid(f"epoch: {epoch}, epochs: {epochs!r}: expected one of the two")
        _set_epochs(order, epochs)
    if shard == _NO_SHARD and part == _NO_PART:
        return request
    rank, world, drop_last, step = shard
    offset, count, stride = part
    if (rank, world) != (None, None):
        if (offset, stride) != (None, None):
            given = _given(rank=rank, world=world, offset=offset, stride=stride)
            raise Invalid(f"{given}: expected rank, world and step, or offset and stride")
        _set_shard(order, rank, world, drop_last, step, count)
    elif drop_last or step is not None:
        raise Invalid(f"{_given(drop_last=drop_last or None, step=step)}: expected rank and world, too")
    else:
        _set_slice(order, order.n, *part)
    return request


def shape_of(request: Any) -> Any:
    """The shuf_shape of the result of a request. Needs no daemon. Fails with Invalid for a wrong request, and with
    OutOfMemory for a result of 2^63 bytes or more."""
    result, message = ffi.new("shuf_shape *"), ffi.new("char[]", _MESSAGE)
    status = lib.shuf_shape_of(request, result, message, _MESSAGE)
    if status != lib.SHUF_OK:
        raise make(ffi.string(lib.shuf_status_name(status)).decode(), ffi.string(message).decode(errors="replace"), False)
    return result


def bytes_of(request: Any) -> int:
    """The bytes of the result of a request, checked as shape_of() does."""
    return int(shape_of(request).bytes)


def check_method(method: Any) -> None:
    if method not in METHODS:
        raise Invalid(f"method: {method!r}: expected one of {', '.join(METHODS)}")


def numbers(
    law: str,
    seed: int | None,
    key: str | None,
    stream: int,
    offset: int,
    count: int,
    dtype: int,
    mean: float = 0.0,
    std: float = 0.0,
    bound: int = 0,
) -> Any:
    """A shuf_request for numbers of a law. `dtype` is a number of shuf_dtype.h."""
    request = _new(lib.SHUF_NUMBERS)
    fields = request.numbers
    fields.distribution, fields.method = LAWS[law][:2]
    _set_seed(fields, seed, key)
    fields.stream = u64("stream", stream)
    fields.offset, fields.count = u64("offset", offset), u64("size", count)
    fields.mean, fields.std, fields.bound = mean, std, bound
    fields.dtype = dtype
    return request


def type_of_bound(bound: int) -> int:
    """The number of the type of integers below a bound, if the caller gives none."""
    return _dtype.NUMBERS["u32" if bound <= 2**32 else "u64"]


def records(
    n: int, size: int, seed: int | None, key: str | None, epoch: int, inverse: bool, algorithm: str
) -> Any:
    """A shuf_request for the shuffle of n records of `size` bytes, without its input."""
    request = _new(lib.SHUF_RECORDS)
    order = request.records
    order.algorithm = _text("algorithm", algorithm)
    order.n, order.record, order.inverse = n, size, inverse
    _set_seed(order, seed, key)
    order.epoch = u64("epoch", epoch)
    return request


def buffer(size: int) -> Any:
    """A shuf_request for a buffer of `size` bytes."""
    request = _new(lib.SHUF_BUFFER)
    request.bytes = size
    return request


def _sizes(field: str, sizes: npt.ArrayLike | None, world: int) -> Any:
    """One size for each rank as an array of C, or NULL."""
    if sizes is None:
        return ffi.NULL
    values = [u64(field, size) for size in np.asarray(sizes).reshape(-1).tolist()]
    if len(values) != world:
        raise Invalid(f"{field}: {counted(len(values), 'size')}, expected world = {world}, or None")
    return ffi.new("uint64_t[]", values)


def ranks(
    n: int, seed: int | None, key: str | None, epoch: int, rank: int, world: int,
    input: npt.ArrayLike | None, output: npt.ArrayLike | None, inverse: bool, algorithm: str,
    part: int = 0,
) -> tuple[Any, ...]:
    """A shuf_request for a plan, and the arrays that it refers to."""
    request = _new(lib.SHUF_RANKS)
    plan = request.ranks
    plan.algorithm = _text("algorithm", algorithm)
    plan.n = u64("n", n)
    _set_seed(plan, seed, key)
    plan.epoch, plan.inverse = u64("epoch", epoch), bool(inverse)
    plan.rank, plan.world = u64("rank", rank), u64("world", world)
    sizes = _sizes("input", input, plan.world), _sizes("output", output, plan.world)
    plan.input, plan.output = sizes
    plan.part = u64("part", part)
    return (request, *sizes)


def options(transports: int) -> Any:
    """shuf_lease_options for a set of transports."""
    result = ffi.new(_OPTIONS)
    result.transports = transports
    return result


HOST = options(lib.SHUF_MEMFD | lib.SHUF_INLINE)
DEVICE = options(lib.SHUF_CUDA_FD | lib.SHUF_CUDA_IPC)
