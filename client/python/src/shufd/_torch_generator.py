# SPDX-License-Identifier: MIT
"""shufd.torch.Generator: the place in a random stream, for a training loop that draws tensors one after the other."""

from __future__ import annotations

import hashlib
import struct
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from . import _request, _torch_fill as fill
from ._arguments import integer, shown, u64
from ._errors import Invalid
from ._ranks import in_worker
from ._torch_fill import recorder
from ._torch_random import bits_, exponential_, integers_, normal_, randperm, uniform_
from .random import Stream, kind_of

_ORDERS = ("randperm", 1)  # the kind of permutations; each uses a draw
_KINDS = {  # numbers of a draw
    "": (1,), "uniform": (2, 4), "table": (2,), "box-muller": (2, 4), "exponential": (2, 4), "bits": (2, 4),
    "integers": (2, 4), "randperm": (1,),
}  # fmt: skip

_FIELDS = ("seed", "stream", "draw", "used", "method", "numbers_of_draw", "spawned")


def _refuse_capture() -> None:
    """Refuses a call that is recorded: each replay would repeat the numbers."""
    by = recorder()
    if not by and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        by = "a CUDA graph"
    if not by:
        return
    raise Invalid(
        f"generator: {by} would repeat its numbers at each call: pass seed= and offset= to shufd.torch.normal_() or "
        "uniform_(), or seed= and epoch= to randperm()"
    )


def _opaque_to_compile(method: Any) -> Any:
    """torch.compile calls the method as it is: it moves the place, which is no part of a graph."""
    method._torchdynamo_disable = True
    return method


class Generator:
    """A place in a random stream, which each call moves behind the numbers that it takes. No two numbers of an object come
    from the same random bits, whatever types, methods and sizes a program mixes, apart from the values of
    one permutation, and the numbers of one block or pair of a normal law. The numbers do not depend on the device.

    seed    -2^63 to 2^64 - 1; a negative seed selects the same as seed + 2^64
    stream  0 to 2^64 - 1; the streams of a seed are independent

    The place is a number of draws, as in shufd.Stream: Generator(7).normal_(x) gives the numbers of normal_(x, seed=7), and
    of shufd.normal(..., generator=shufd.Stream(7)). A call that fails leaves the contents of the tensor undefined. It does not
    move the place, except if a signal handler raises after the numbers were written. Threads may share a generator;
    their calls take turns. It can be copied and pickled: a copy gives the same numbers again, so the workers of a DataLoader
    each need their own, from spawn(), and new ones in each epoch. In a worker that has not made it, any other generator
    warns (RuntimeWarning) at its first call. torch.utils.checkpoint calls a function twice, and a
    generator gives it other numbers the second time, so gradients are wrong: draw outside. torch.compile ends a graph at each
    call. torch.jit.trace(), torch.export() and the capture of a CUDA graph fail; torch.fx.symbolic_trace() keeps the drawn
    numbers as constants: there, and in a checkpoint, use the functions of shufd.torch with a seed and an offset.
    """

    __slots__ = ("_place", "_fits_worker")

    def __init__(self, seed: int, stream: int = 0) -> None:
        self._place = Stream(seed, stream)
        self._fits_worker = in_worker()  # a worker has made it, or spawn()

    @property
    def seed(self) -> int:
        """The seed, 0 to 2^64 - 1."""
        return self._place.seed

    @property
    def stream(self) -> int:
        """The number of the stream."""
        return self._place.stream

    @property
    def draw(self) -> int:
        """The number of the first draw that is not used. A draw has four numbers of float32, integers of 32 bits, and
        box-muller float16 and bfloat16. It has two of 64 bits, and of the method "table"."""
        return self._place.draw

    # ---- Tensors -------------------------------------------------------------------------------

    @_opaque_to_compile
    def normal_(
        self, tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, method: str = "table"
    ) -> torch.Tensor:
        """Fills a tensor with the next normal numbers, and returns it. Arguments and errors: as shufd.torch.normal_()."""
        _request.check_method(method)
        return self._fill(normal_, method, tensor, mean, std, method=method)

    @_opaque_to_compile
    def uniform_(self, tensor: torch.Tensor, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Fills a tensor with the next uniform numbers of [low, high), and returns it. Arguments and errors: as
        shufd.torch.uniform_()."""
        return self._fill(uniform_, "uniform", tensor, low, high)

    @_opaque_to_compile
    def exponential_(self, tensor: torch.Tensor, lambd: float = 1.0) -> torch.Tensor:
        """Fills a tensor with the next exponential numbers, and returns it. Arguments and errors: as
        shufd.torch.exponential_()."""
        return self._fill(exponential_, "exponential", tensor, lambd)

    @_opaque_to_compile
    def bits_(self, tensor: torch.Tensor, p: float = 0.5) -> torch.Tensor:
        """Fills a tensor with the next integers of random bits, and returns it. Arguments and errors: as
        shufd.torch.bits_()."""
        return self._fill(bits_, "bits", tensor, p)

    @_opaque_to_compile
    def integers_(self, tensor: torch.Tensor, bound: int) -> torch.Tensor:
        """Fills a tensor with the next integers below a bound, and returns it. Arguments and errors: as
        shufd.torch.integers_()."""
        return self._fill(integers_, "integers", tensor, bound)

    def _begin(self) -> None:
        """What each call that draws does first."""
        _refuse_capture()
        if not self._fits_worker and in_worker():
            self._fits_worker = True
            warnings.warn(
                f"{self!r}: each worker of the DataLoader has a copy, which draws the same numbers; give each worker one of "
                "generator.spawn(n), or pass seed= and offset= to the functions", RuntimeWarning, stacklevel=4,
            )  # fmt: skip

    def _fill(self, fill_: Any, law: str, tensor: Any, *arguments: Any, **options: Any) -> torch.Tensor:
        """fill_(tensor, *arguments) with the next numbers of a law."""
        self._begin()
        place = self._place
        return place._take(_kind_of(law, tensor), tensor.numel(), lambda offset: fill_(
            tensor, *arguments, seed=place.seed, stream=place.stream, offset=offset, **options
        ))  # fmt: skip

    def randn(self, *size: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
        """A new tensor of normal numbers with mean 0 and standard deviation 1, as torch.randn(). By default of torch's
        default type and device."""
        return self.normal_(torch.empty(*size, dtype=dtype, device=device))

    def rand(self, *size: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
        """A new tensor of uniform numbers of [0, 1), as torch.rand()."""
        return self.uniform_(torch.empty(*size, dtype=dtype, device=device))

    @_opaque_to_compile
    def randperm(self, n: int, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
        """A permutation of [0, n) as a new tensor, as torch.randperm(). It takes one draw. Arguments and errors: as
        shufd.torch.randperm(). In the stream 0, it is randperm(n, seed=seed, epoch=draw)."""
        self._begin()
        seed = self._seed_of_orders()
        return self._place._take(
            _ORDERS, 1, lambda draw: randperm(n, seed=seed, epoch=draw, dtype=dtype, device=device)
        )

    def _seed_of_orders(self) -> int:
        """Permutations have no stream. Of a million streams, two have the same seed with probability 3e-8."""
        if self.stream == 0:
            return self.seed
        text = b"Generator" + struct.pack("<QQ", self.seed, self.stream)
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    # ---- The place -------------------------------------------------------------------------------

    @_opaque_to_compile
    def advance(self, draws: int) -> Generator:
        """Moves from the first unused draw by `draws`, also backwards. Returns the generator."""
        self._place.advance(draws)
        return self

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators of independent streams of the same seed. Each call returns new ones; a copy, or a generator at another
        draw, has the same children."""
        return [_of(place) for place in self._place.spawn(n_children)]

    def state_dict(self) -> dict[str, Any]:
        """The seed and the place, as a new dict of integers and a text, which torch.load(weights_only=True) takes."""
        state = self._place.__getstate__()
        (method, width), used = state["_kind"], state["_used"]
        return {
            "seed": state["seed"], "stream": state["stream"], "draw": state["_draw"], "used": used,
            "method": method, "numbers_of_draw": width, "spawned": state["_spawned"],
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the seed and the place of a state. Fails with Invalid for a dict that state_dict() has not made."""
        if not isinstance(state_dict, Mapping) or not state_dict.keys() >= set(_FIELDS):
            raise Invalid(f"state_dict: {shown(state_dict)}: expected one of shufd.torch.Generator.state_dict()")
        state = {name: state_dict[name] for name in _FIELDS}
        method, width = state["method"], integer("numbers_of_draw", state["numbers_of_draw"])
        used = integer("used", state["used"])
        if not isinstance(method, str) or width not in _KINDS.get(method, ()) or not 0 <= used < width:
            raise Invalid(
                f"state_dict: method {shown(method)}, numbers_of_draw {width}, used {used}: expected a method of this "
                "version, its numbers of a draw, and fewer used numbers"
            )
        place = Stream(state["seed"], state["stream"], state["draw"])
        place._kind, place._used, place._spawned = (method, width), used, u64("spawned", state["spawned"])
        self._place = place

    def __getstate__(self) -> dict[str, Any]:
        return {**self.state_dict(), "fits_worker": self._fits_worker}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state_dict(state)
        self._fits_worker = bool(state.get("fits_worker")) or in_worker()

    def __repr__(self) -> str:
        return f"shufd.torch.Generator(seed={self.seed}, stream={self.stream}, draw={self.draw})"


def _of(place: Stream) -> Generator:
    generator = Generator(place.seed, place.stream)
    generator._place, generator._fits_worker = place, True
    return generator


def _kind_of(law: str, tensor: Any) -> tuple[str, int]:
    if not isinstance(tensor, torch.Tensor):
        raise Invalid(f"tensor: {shown(tensor)}: expected a tensor")
    return kind_of(law, fill.named(tensor.dtype, fill.TYPES[law]))
