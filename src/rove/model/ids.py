"""The names of things, each a type of its own, so that one is never taken for another."""

from __future__ import annotations

from typing import NewType

NodeId = NewType("NodeId", str)
QueryId = NewType("QueryId", str)
Origin = NewType("Origin", str)  # who numbers batches: a source, or a stateful operator
Stage = NewType("Stage", int)  # how far a batch has come: the number of the last operator it went through
Version = NewType("Version", int)  # of a query's deployment; a newer one replaces an older one


def name_of(origin: str) -> str:
    """An origin whatever start of its process it belongs to: `name_of("trains/tram~17")` is `trains/tram`."""
    return origin.partition("~")[0]


def source_of(origin: str) -> str:
    """The origin of a batch, whatever stage it was taken at and on whichever side of a union or join."""
    return origin.rpartition(" ")[2].partition("|")[0]
