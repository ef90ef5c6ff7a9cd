"""The names of things, each a type of its own, so that one is never taken for another.

Law: a name is checked once, where it comes in. So every name is also a folder's name, a word on a command line and a
label of a metric, without quotes or escapes.

An origin is a value with fields. Its text is for people, and for files and columns that hold text; this module alone
makes and reads it. Two origins never have the same text, because no name holds one of its marks.

    trains/tram-7~17      the source of stream `trains` on node `tram-7`, in its 17th start
    busy#3                operator 3 of query `busy`, one wherever it runs
    busy#3/mast-1~4       operator 3 of query `busy` on node `mast-1`, in its 4th start
    trains/tram-7~17|0    the same source as the first side of a join hears it, or of a union
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NewType

import msgspec

from rove.model.errors import BadName

NAME_BYTES_MAX = 128
CHECKED_MAX = 16_384  # origins that are known to be sound
SOURCE = -1  # stands for the number of an operator where there is none: the origin is a source

NodeId = NewType("NodeId", str)
QueryId = NewType("QueryId", str)
Stage = NewType("Stage", int)  # how far a batch has come: the number of the last operator it went through
Version = NewType("Version", int)  # of a query's deployment; a newer one replaces an older one

_NAME_PATTERN = rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{NAME_BYTES_MAX - 1}}}"
_NUMBER_PATTERN = r"(?:0|[1-9][0-9]{0,18})"
_NAME = re.compile(_NAME_PATTERN)
_ORIGIN = re.compile(
    rf"({_NAME_PATTERN})(?:#({_NUMBER_PATTERN}))?(?:/({_NAME_PATTERN}))?(?:~([1-9][0-9]{{0,18}}))?"
    rf"((?:\|{_NUMBER_PATTERN})*)"
)


class Origin(msgspec.Struct, frozen=True, order=True, array_like=True, cache_hash=True, gc=False):
    """Who numbers batches: a source, or a stateful operator. A key of many tables, so its hash is kept."""

    name: str  # the stream of a source, the query of an operator
    node: str = ""  # empty for an operator that is one wherever it runs
    start: int = 0  # of the node, where numbers begin anew with each start; else 0
    stage: int = SOURCE  # the operator's number in the whole plan
    side: tuple[int, ...] = ()  # of the joins and unions that it was heard through, the last one last

    def __str__(self) -> str:
        stage = "" if self.stage == SOURCE else f"#{self.stage}"
        node = f"/{self.node}" if self.node else ""
        start = f"~{self.start}" if self.start else ""
        return f"{self.name}{stage}{node}{start}" + "".join(f"|{side}" for side in self.side)

    def on_side(self, side: int) -> Origin:
        """The same origin as one side of a join or union hears it: there, one source may speak on several sides."""
        return Origin(self.name, self.node, self.start, self.stage, (*self.side, side))

    @property
    def unsided(self) -> Origin:
        """The same origin, whatever side it was heard on: the one that its rows are counted under."""
        return Origin(self.name, self.node, self.start, self.stage) if self.side else self

    @property
    def any_start(self) -> Origin:
        """The same origin, whatever start of its node it belongs to."""
        return Origin(self.name, self.node, 0, self.stage, self.side)


NOBODY = Origin("")  # of entries that no origin made


def read_origin(text: str) -> Origin:
    """The origin that has this text."""
    found = _ORIGIN.fullmatch(text)
    if found is None or (found[2] is None and found[3] is None):
        raise BadName(f"`{text[:NAME_BYTES_MAX]}` is no origin; one reads like trains/tram-7~17, or like busy#3")
    name, stage, node, start, sides = found.groups()
    return Origin(
        name,
        node or "",
        int(start or 0),
        SOURCE if stage is None else int(stage),
        tuple(map(int, sides.split("|")[1:])),
    )


@lru_cache(CHECKED_MAX)
def check_origin(origin: Origin) -> None:
    """Refuse an origin that has no text of its own. One that was checked lately costs a look into a table."""
    checked_name(origin.name, "a stream" if origin.stage == SOURCE else "a query")
    if origin.node or origin.stage == SOURCE:
        checked_name(origin.node, "a node")
    if min(origin.start, origin.stage - SOURCE, *origin.side, 0) < 0:
        raise BadName(f"`{origin}` is no origin: its numbers are 0 or more")


def checked_name(name: str, what: str) -> str:
    """The same name, if `what` (a node, a stream, a query, a table) can have it."""
    if _NAME.fullmatch(name):
        return name
    shown = name if len(name) <= NAME_BYTES_MAX else f"{name[:NAME_BYTES_MAX]}…"
    raise BadName(
        f"`{shown}` cannot name {what}; use letters a to z, digits, `-`, `_` and `.`, with no dot in front, "
        f"at most {NAME_BYTES_MAX} bytes"
    )
