# SPDX-License-Identifier: MIT
"""The states of samplers: dicts of plain values that load_state_dict() checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Mapping

from . import _errors
from ._arguments import integer, seed_of, shown, u64
from ._chunks import named
from ._order import Order

if TYPE_CHECKING:
    from ._orders import Epoch

VERSION = 1

# Why a field of a state has another value.
_OF_THIS = "as in this sampler; make the sampler with the {name} of the state"
_REASONS = {
    "version": "the version of this release; the state is of another release of shufd",
    "n": "the length of the dataset of this sampler",
}


# Kinds of samplers, by a field that only their states have.
_KINDS = {
    "weights": "a WeightedRandomSampler",
    "subset": "a sampler of a subset",
    "mixture": "a sampler of a mixture",
    "num_samples": "a RandomSampler",
}
_OPTIONAL = {*_KINDS, "length", "replacement"}


def _kind_of(fields: Mapping[str, Any]) -> str:
    return next((kind for name, kind in _KINDS.items() if name in fields), "a DistributedSampler")


def _check_kind(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Fails if the state is a whole state of another kind of samplers."""
    of, own = _kind_of(state), _kind_of(expected)
    if of != own and {*expected, "position"} - _OPTIONAL <= {*state}:
        raise _errors.Invalid(f"state: of {of}: expected one of {own}, as this sampler is")


def check(state: Any, expected: Mapping[str, Any], free: Collection[str]) -> tuple[int, int]:
    """Checks that a state fits a sampler, whose own state has the values `expected`, apart from the fields
    `free`. Returns its epoch and position."""
    if not isinstance(state, Mapping):
        raise _errors.Invalid(f"state: {shown(state)}: expected a dict of state_dict()")
    _check_kind(state, expected)
    for name in [*expected, "position"]:
        if name not in state:
            raise _errors.Invalid(f"state: no field {name}: expected a whole dict of state_dict()")
    for name in expected:
        if name not in free and state[name] != expected[name]:
            reason = _REASONS.get(name, _OF_THIS).format(name=name)
            raise _errors.Invalid(f"state: {name} {shown(state[name])}: expected {expected[name]!r}, {reason}")
    if "seed" in free and state["seed"] is not None:
        seed_of(state["seed"])
    most = expected.get("length", expected.get("num_samples", expected["n"]))
    position = integer("state: position", state["position"])
    if not 0 <= position <= most:
        raise _errors.Invalid(f"state: position {position}: expected 0 to {most}")
    return u64("state: epoch", state["epoch"]), position


def state_of(epoch: Epoch | Order, **more: Any) -> dict[str, Any]:
    """An order as a dict of plain values."""
    details = epoch._details() if isinstance(epoch, Order) else {}
    return {
        "version": VERSION,
        "algorithm": epoch.algorithm,
        "n": epoch.n,
        "seed": epoch.seed,
        "shuffle": getattr(epoch, "shuffle", True),
        "chunk": named(epoch.chunk),
        "window": epoch.window,
        "epoch": epoch.epoch,
        **details,
        **more,
    }
