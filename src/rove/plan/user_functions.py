"""Users' functions on their way to another node.

Law: a function that both ends import under one name travels as that name, and is the same function there. Any other
travels by value if the sender has a pickler for it, and is read only by a receiver that trusts the sender, because
reading it runs code.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

from rove.model.errors import PlanError
from rove.plan import wire

Pickler = Callable[[Any], bytes]


def write_function(function: Any, pickled: Pickler | None) -> wire.Function:
    """A function as its name, or by value."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name and _is_known_as(function, module, name):
        return wire.Reference(module, name)
    shown = getattr(function, "__name__", repr(function))
    if pickled is None:
        raise PlanError(
            f"the function `{shown}` has no name that another node could import it by: define it in a module that is "
            "installed on every node that runs it, or send it by value (encode(…, pickled=cloudpickle.dumps))"
        )
    try:
        return wire.Pickled(pickled(function))
    except Exception as error:  # whatever the function drags along has its own way to refuse
        raise PlanError(f"the function `{shown}` cannot be sent by value: {error}") from error


def read_function(word: wire.Function, trusted: bool) -> Callable[..., Any]:
    """The function that a word stands for."""
    if isinstance(word, wire.Pickled):
        if not trusted:
            raise PlanError(
                "this plan carries a function by value, and reading it would run its sender's code: "
                "decode(…, trusted=True) if you trust the sender, or have the function sent by name"
            )
        found = _unpickled(word.data)
    else:
        found = _imported(word)
    if not callable(found):
        raise PlanError(f"a function of this plan turns out to be {type(found).__name__}, which cannot be called")
    function: Callable[..., Any] = found
    return function


def _is_known_as(function: Any, module: str, name: str) -> bool:
    """`__main__` is another program on every node."""
    if module == "__main__" or module not in sys.modules:
        return False
    try:
        return _named(sys.modules[module], name) is function
    except AttributeError:
        return False


def _named(module: object, name: str) -> Any:
    return reduce(getattr, name.split("."), module)


def _imported(word: wire.Reference) -> Any:
    try:
        return _named(import_module(word.module), word.name)
    except (Exception, SystemExit) as error:  # a module may do anything while it is imported
        raise PlanError(
            f"this node has no function `{word.module}:{word.name}` ({error}): install the module that defines it"
        ) from error


def _unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except (Exception, SystemExit) as error:
        raise PlanError(
            f"a function of this plan cannot be read here ({error}): install what it was made with, or have it sent "
            "by name"
        ) from error
