# SPDX-License-Identifier: MIT
"""What dir(), help() and errors show: the names of a module, the advice about names that it lacks and about arguments
with the names that other libraries give them, and the text of functions that stand for a method of the client."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, Callable, Iterable, Mapping, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])
_ARGUMENTS = {
    "num_replicas": ("world",), "num_shards": ("world",), "world_size": ("world", "num_replicas"),
    "mean": ("loc",), "std": ("scale",), "loc": ("mean",), "scale": ("std",), "shape": ("size",), "high": ("bound",),
}  # fmt: skip
_OF_DAEMONS = {"key": "a named key never leaves its daemon; use the function of shufd or of a Client"}


def dir_of(names: Iterable[str]) -> Callable[[], list[str]]:
    """The function __dir__ of a module with these public names. Without it, dir() also shows the names that the
    module imports for its own use."""
    shown = sorted([*names, "__all__", "__doc__", "__file__", "__name__"])
    return lambda: shown


def own_classes(module: str, values: Iterable[Any]) -> None:
    """Names the module in its public classes. Else help(), error reports and pickles name the private modules of
    these classes. Since Python 3.12.3, help() also names the module of each method."""
    for value in values:
        if isinstance(value, type) and value.__module__.startswith(f"{module}._"):
            value.__module__ = module
            for method in vars(value).values():
                method = getattr(method, "__func__", method)  # of a class method
                if inspect.isfunction(method):
                    method.__module__ = module


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


def advise_arguments(function: _Function) -> _Function:
    """Adds to the TypeError about an unknown argument how this function names it. The type stays the same, so type
    checkers know the arguments."""
    parameters = inspect.signature(function).parameters

    def meant(name: str) -> str | None:
        known = [other for other in _ARGUMENTS.get(name, ()) if other in parameters]
        return next(iter(known or difflib.get_close_matches(name, parameters, 1)), None)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # the function itself failed
                raise
            for name in options.keys() - parameters.keys():
                text = str(error).partition(". Did you mean ")[0]  # Python 3.13 has advice of its own
                if f"'{name}'" not in text:
                    continue
                if name in _OF_DAEMONS:
                    raise TypeError(f"{text}; {_OF_DAEMONS[name]}") from None
                if other := meant(name):
                    raise TypeError(f"{text}; did you mean {other}=?") from None
            raise

    return cast(_Function, call)


def documented_by(method: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Gives a function the parameters and the text of a method, for help() and for completion."""

    def document(function: _Function) -> _Function:
        signature = inspect.signature(method)
        parameters = list(signature.parameters.values())[1:]  # without self
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
        function.__doc__ = f"{function.__doc__}\n\n{inspect.getdoc(method)}"
        return function

    return document
