"""Types for names and numbers, so that one kind is never taken for another.

Law: a name is checked once, where it enters. So every name can be used as a folder, on a command line and as a label of
a metric, without quotes or escapes.

An origin is a value with fields. Its text is for people, and for files and columns that hold text. Only this module
makes and reads it. Two origins never have the same text, because no name contains one of its separators.

    trains/tram-7~17      the source of stream `trains` on node `tram-7`, in its 17th start
    busy#3                operator 3 of query `busy`, the same on every node
    busy#3/mast-1~4       operator 3 of query `busy` on node `mast-1`, in its 4th start
    trains/tram-7~17|0    the same source, as seen by the first side of a join or union
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

import msgspec

from rove.model.errors import BadName

NAME_BYTES_MAX = 128
SIDES_MAX = 64  # joins and unions that one origin passes
CHECKED_MAX = 16_384  # origins that are remembered as valid
SOURCE = -1  # the stage of an origin that is a source, not an operator

NodeId = NewType("NodeId", str)
QueryId = NewType("QueryId", str)
Stage = NewType("Stage", int)  # how far a batch has come: the number of the last operator that was applied
Version = NewType("Version", int)  # the version of a query's deployment; a newer one replaces an older one

_NAME_PATTERN = rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{NAME_BYTES_MAX - 1}}}"
_NUMBER_PATTERN = r"(?:0|[1-9][0-9]{0,18})"
_NAME = re.compile(_NAME_PATTERN)
_ORIGIN = re.compile(
    rf"({_NAME_PATTERN})(?:#({_NUMBER_PATTERN}))?(?:/({_NAME_PATTERN}))?(?:~([1-9][0-9]{{0,18}}))?"
    rf"((?:\|{_NUMBER_PATTERN})*)"
)


class Origin(msgspec.Struct, frozen=True, order=True, array_like=True, cache_hash=True, gc=False):
    """The producer of batches: a source, or a stateful operator. It is a key of many tables, so its hash is cached."""

    name: str  # the stream of a source, the query of an operator
    node: str = ""  # empty for an operator that has one origin for all nodes
    start: int = 0  # the start of the node, if numbers begin at 0 with each start; else 0
    stage: int = SOURCE  # the operator's number in the whole plan
    side: tuple[int, ...] = ()  # the sides of the joins and unions through which it is seen, the last one last

    def __str__(self) -> str:
        stage = "" if self.stage == SOURCE else f"#{self.stage}"
        node = f"/{self.node}" if self.node else ""
        start = f"~{self.start}" if self.start else ""
        return f"{self.name}{stage}{node}{start}{self.sides}"

    @property
    def shown(self) -> str:
        """The origin for people: `trains/tram-7`, and when its node was started if each start is an origin of its
        own."""
        plain = str(Origin(self.name, self.node, 0, self.stage))
        if not self.start:
            return plain
        return f"{plain}, started {datetime.fromtimestamp(self.start // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}"

    @property
    def sides(self) -> str:
        """The sides as text."""
        return "".join(f"|{side}" for side in self.side)

    def on_side(self, side: int) -> Origin:
        """The same origin as one side of a join or union sees it. One source may feed several sides."""
        return Origin(self.name, self.node, self.start, self.stage, (*self.side, side))

    @property
    def unsided(self) -> Origin:
        """The origin without sides. Rows are counted under it."""
        return Origin(self.name, self.node, self.start, self.stage) if self.side else self

    @property
    def maker(self) -> str:
        """Who makes its batches: a node, or, like `busy#3`, an operator that has one origin for all nodes."""
        return self.node or f"{self.name}#{self.stage}"

    @property
    def any_start(self) -> Origin:
        """The origin without the start of its node."""
        return Origin(self.name, self.node, 0, self.stage, self.side)


NOBODY = Origin("")  # the origin of entries that no origin made


def read_origin(text: str) -> Origin:
    """Read an origin from its text."""
    found = _ORIGIN.fullmatch(text)
    if found is None or (found[2] is None and found[3] is None):
        raise BadName(f"`{text[:NAME_BYTES_MAX]}` is not an origin; write it like trains/tram-7~17 or busy#3")
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
    """Refuse an origin that has no text of its own. A recent check is remembered, and costs one lookup."""
    checked_name(origin.name, "a stream" if origin.stage == SOURCE else "a query")
    if origin.node or origin.stage == SOURCE:
        checked_name(origin.node, "a node")
    if min(origin.start, origin.stage - SOURCE, *origin.side, 0) < 0 or len(origin.side) > SIDES_MAX:
        raise BadName(
            f"`{str(origin)[:NAME_BYTES_MAX]}` is not an origin: its numbers are 0 or more, and it has at most "
            f"{SIDES_MAX} sides"
        )


def checked_name(name: str, what: str) -> str:
    """Check a name of `what` (a node, a stream, a query, a table) and return it."""
    if _NAME.fullmatch(name):
        return name
    shown = name if len(name) <= NAME_BYTES_MAX else f"{name[:NAME_BYTES_MAX]}…"
    raise BadName(
        f"`{shown}` cannot name {what}; use letters a to z, digits, `-`, `_` and `.`, with no dot in front, "
        f"at most {NAME_BYTES_MAX} bytes"
    )
