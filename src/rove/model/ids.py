"""Types for names and numbers, so that one kind is never taken for another.

Law: a name is checked once, where it enters. So every name can be used as a folder, on a command line and as a label of
a metric, without quotes or escapes.
"""

from __future__ import annotations

import re
from typing import NewType

from rove.model.errors import BadName

NAME_BYTES_MAX = 128

NodeId = NewType("NodeId", str)
QueryId = NewType("QueryId", str)
Origin = NewType("Origin", str)  # the producer of batches: a source, or a stateful operator
Stage = NewType("Stage", int)  # how far a batch has come: the number of the last operator that was applied
Version = NewType("Version", int)  # the version of a query's deployment; a newer one replaces an older one

_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{NAME_BYTES_MAX - 1}}}")


def checked_name(name: str, what: str) -> str:
    """Check a name of `what` (a node, a stream, a query, a table) and return it."""
    if _NAME.fullmatch(name):
        return name
    shown = name if len(name) <= NAME_BYTES_MAX else f"{name[:NAME_BYTES_MAX]}…"
    raise BadName(
        f"`{shown}` cannot name {what}; use letters a to z, digits, `-`, `_` and `.`, with no dot in front, "
        f"at most {NAME_BYTES_MAX} bytes"
    )


def name_of(origin: str) -> str:
    """An origin without the start of its process: `name_of("trains/tram~17")` is `trains/tram`."""
    return origin.partition("~")[0]


def source_of(origin: str) -> str:
    """An origin without the stage at which it is read and the side of a union or join."""
    return origin.rpartition(" ")[2].partition("|")[0]
