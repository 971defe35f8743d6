# SPDX-License-Identifier: MIT
"""Functions of the module that stand for a method of the client."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def documented_by(method: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Gives a function the parameters and the text of a method, for help() and for completion."""

    def document(function: _Function) -> _Function:
        signature = inspect.signature(method)
        parameters = list(signature.parameters.values())[1:]  # without self
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
        function.__doc__ = f"{function.__doc__}\n\n{inspect.getdoc(method)}"
        return function

    return document
