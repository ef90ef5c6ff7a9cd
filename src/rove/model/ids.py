"""The names of things, each a type of its own, so that one is never taken for another.

Law: a name is checked once, where it comes in. So every name is also a folder's name, a word on a command line and a
label of a metric, without quotes or escapes.
"""

from __future__ import annotations

import re
from typing import NewType

from rove.model.errors import BadName

NAME_BYTES_MAX = 128

NodeId = NewType("NodeId", str)
QueryId = NewType("QueryId", str)
Origin = NewType("Origin", str)  # who numbers batches: a source, or a stateful operator
Stage = NewType("Stage", int)  # how far a batch has come: the number of the last operator it went through
Version = NewType("Version", int)  # of a query's deployment; a newer one replaces an older one

_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{NAME_BYTES_MAX - 1}}}")


def checked_name(name: str, what: str) -> str:
    """The same name, if `what` (a node, a stream, a query, a table) can have it."""
    if _NAME.fullmatch(name):
        return name
    shown = name if len(name) <= NAME_BYTES_MAX else f"{name[:NAME_BYTES_MAX]}…"
    raise BadName(
        f"`{shown}` cannot name {what}; use letters a to z, digits, `-`, `_` and `.`, with no dot in front, "
        f"at most {NAME_BYTES_MAX} bytes"
    )


def name_of(origin: str) -> str:
    """An origin whatever start of its process it belongs to: `name_of("trains/tram~17")` is `trains/tram`."""
    return origin.partition("~")[0]


def source_of(origin: str) -> str:
    """The origin of a batch, whatever stage it was taken at and on whichever side of a union or join."""
    return origin.rpartition(" ")[2].partition("|")[0]
