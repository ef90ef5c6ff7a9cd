"""Rove: stream processing for things that move.

One query, written as a PySpark user would write it, runs from the device through the edge into Spark. Nothing heavy
is imported until it is used: a device that only names columns never loads a parser, and only the cloud part loads
Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rove.api import functions as functions
    from rove.api.portable import functions_for as functions_for
    from rove.api.session import Session as Session
    from rove.api.stream import Stream as Stream
    from rove.model.errors import RoveError as RoveError

__version__ = "0.1.0"

_HOMES = {
    "functions": ("rove.api.functions", None),
    "functions_for": ("rove.api.portable", "functions_for"),
    "Session": ("rove.api.session", "Session"),
    "Stream": ("rove.api.stream", "Stream"),
    "RoveError": ("rove.model.errors", "RoveError"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"rove has no `{name}`; it has {', '.join(_HOMES)}")
    module, attribute = _HOMES[name]
    found = import_module(module)
    value = found if attribute is None else getattr(found, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_HOMES, "__version__"]
