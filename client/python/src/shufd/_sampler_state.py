# SPDX-License-Identifier: MIT
"""The states of samplers: dicts of plain values that load_state_dict() checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Mapping

from . import _errors
from ._arguments import integer, shown, u64
from ._chunks import named

if TYPE_CHECKING:
    from ._orders import Epoch

VERSION = 1

# Why a field of a state has another value.
_OF_THIS = "as in this sampler; make the sampler with the {name} of the state"
_REASONS = {
    "version": "the version of this release; the state is of another release of shufd",
    "n": "the length of the dataset of this sampler",
}


def _class_of(fields: Mapping[str, Any]) -> str:
    if "weights" in fields:
        return "WeightedRandomSampler"
    return "RandomSampler" if "num_samples" in fields else "DistributedSampler"


def _check_class(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Fails if the state is a whole state of another class of samplers."""
    of, own = _class_of(state), _class_of(expected)
    common = {*expected, "position"} - {"num_samples", "replacement", "weights"}
    if of != own and common <= {*state}:
        raise _errors.Invalid(f"state: of a {of}: expected one of a {own}, as this sampler is")


def check(state: Any, expected: Mapping[str, Any], free: Collection[str]) -> tuple[int, int]:
    """Checks that a state fits a sampler, whose own state has the values `expected`, apart from the fields
    `free`. Returns its epoch and position."""
    if not isinstance(state, Mapping):
        raise _errors.Invalid(f"state: {shown(state)}: expected a dict of state_dict()")
    _check_class(state, expected)
    for name in [*expected, "position"]:
        if name not in state:
            raise _errors.Invalid(f"state: no field {name}: expected a whole dict of state_dict()")
    for name in expected:
        if name not in free and state[name] != expected[name]:
            reason = _REASONS.get(name, _OF_THIS).format(name=name)
            raise _errors.Invalid(f"state: {name} {shown(state[name])}: expected {expected[name]!r}, {reason}")
    most = expected.get("num_samples", expected["n"])
    position = integer("state: position", state["position"])
    if not 0 <= position <= most:
        raise _errors.Invalid(f"state: position {position}: expected 0 to {most}")
    return u64("state: epoch", state["epoch"]), position


def state_of(epoch: Epoch, **more: Any) -> dict[str, Any]:
    """An order as a dict of plain values."""
    return {
        "version": VERSION,
        "algorithm": epoch.algorithm,
        "n": epoch.n,
        "seed": epoch.seed,
        "shuffle": epoch.shuffle,
        "chunk": named(epoch.chunk),
        "window": epoch.window,
        "epoch": epoch.epoch,
        **more,
    }
