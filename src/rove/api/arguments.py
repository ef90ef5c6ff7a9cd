"""Refuses arguments of a wrong kind before a public function runs.

Law: what a parameter is annotated with is what it takes. A wrong argument raises before the function runs, and the
error names the function, the parameter, what it takes and what it got. Lists may be given as tuples, and numbers as
NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, wraps
from inspect import Parameter, isfunction, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from rove.model.errors import WrongKind

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_NUMBERS: dict[object, type] = {int: Integral, float: Real}
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "True or False", bytes: "bytes"}
_TEXT = (str, bytes)


def checks_arguments(kind: type[T]) -> type[T]:
    """Check the arguments of all public methods of a class."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(checked(member.__func__)))
        elif isfunction(member):
            setattr(kind, name, checked(member))
    return kind


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which first compares its arguments with its annotations."""
    takes = signature(function)

    @wraps(function)
    def door(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = takes.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}: {error}") from None
        for name, hint in hints_of(function):
            if name in given:
                several = takes.parameters[name].kind
                for value in _values(given[name], several):
                    if not _fits(hint, value):
                        raise WrongKind(
                            f"`{name}` of {function.__qualname__} takes {said(hint)}, "
                            f"and got {value!r:.80} of type {type(value).__name__}"
                        )
        return function(*args, **kwargs)

    return door


@lru_cache(None)
def hints_of(function: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """The parameters with what they take. Kinds that are imported for type checkers only are not checked."""
    found = []
    for name, parameter in signature(function).parameters.items():
        if parameter.annotation is Parameter.empty:  # self
            continue
        with suppress(NameError):
            found.append((name, eval(parameter.annotation, function.__globals__)))
    return tuple(found)


def _values(value: Any, kind: Any) -> Collection[Any]:
    if kind is Parameter.VAR_POSITIONAL:
        return tuple(value)
    return tuple(value.values()) if kind is Parameter.VAR_KEYWORD else (value,)


def _fits(hint: Any, value: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in parts)
    if hint is Any:
        return True
    if hint is None or hint is NoneType:
        return value is None
    if origin in (list, Sequence):
        return isinstance(value, Collection) and not isinstance(value, _TEXT) and all(_fits(parts[0], v) for v in value)
    if origin in (dict, Mapping):
        key, content = parts
        return isinstance(value, Mapping) and all(_fits(key, k) and _fits(content, v) for k, v in value.items())
    if origin is Callable:
        return callable(value)
    if origin is Literal:
        return value in parts
    kind = _NUMBERS.get(hint, hint)
    return isinstance(value, kind) if origin is None and isinstance(kind, type) else True


def said(hint: Any) -> str:
    """What a parameter takes, in words.

    >>> said(str | list[int] | None)
    'text, a list of whole numbers or None'
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        *first, last = dict.fromkeys(said(part) for part in parts)
        return f"{', '.join(first)} or {last}" if first else last
    if hint is None or hint is NoneType:
        return "None"
    if origin in (list, Sequence):
        return f"a list of {_several(said(parts[0]))}"
    if origin in (dict, Mapping):
        return f"a dict from {said(parts[0])} to {said(parts[1])}"
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin is not None:
        return "a function"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"


def _several(what: str) -> str:
    return " or ".join(f"{part.removeprefix('a ')}s" if part.startswith("a ") else part for part in what.split(" or "))
