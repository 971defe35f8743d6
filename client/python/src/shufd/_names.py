# SPDX-License-Identifier: MIT
"""The names of a module: those that dir() shows, and the advice about names that it lacks."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping


def dir_of(names: Iterable[str]) -> Callable[[], list[str]]:
    """The function __dir__ of a module with these public names. Without it, dir() also shows the names that the
    module imports for its own use."""
    shown = sorted([*names, "__all__", "__doc__", "__file__", "__name__"])
    return lambda: shown


def advice_of(module: str, others: Mapping[str, str], submodules: Iterable[str]) -> Callable[[str], Any]:
    """The function __getattr__ of a module. Its error proposes what to use for a name of another library or of
    shufctl, in `others`, and the import of a submodule. The interpreter itself proposes names that are only
    misspelled."""
    advice = {name: f"did you mean {meant}?" for name, meant in others.items()}
    advice |= {name: f"import {module}.{name} first" for name in submodules}

    def fail(name: str) -> Any:
        error = f"module {module!r} has no attribute {name!r}"
        if name in advice:  # a given name keeps the interpreter from proposing another one
            raise AttributeError(f"{error}; {advice[name]}", name=name)
        raise AttributeError(error)

    return fail
