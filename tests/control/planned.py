"""Deployments of one query in a small world, for tests that look at what nodes are told."""

from __future__ import annotations

from collections.abc import Mapping

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.fragments import Terms, ends_of
from rove.control.deployment.split import split
from rove.control.placement import Load, Placement, Request
from rove.model.ids import NodeId
from rove.model.messages import Fragment, Sink


def deployed(
    asked: Request,
    placed: Placement,
    sinks: Mapping[str, Sink] | None = None,
    load: Load | None = None,
    absent: tuple[str, ...] = (),
) -> Deployment:
    """What a strategy decided, put down and settled."""
    parts = split(asked.stages, placed.spark)
    ends = ends_of(asked.query, parts, sinks or {}, asked.sink)
    terms = Terms(query=asked.query, stages=asked.stages, split=parts, ends=ends, copies=True)
    found = Deployment(terms, asked.root, load or Load(), {})
    found.place(placed, asked.sources)
    for node in absent:
        found.set_absent(NodeId(node), True)
    found.settle()
    found.validate()
    return found


def told(asked: Request, placed: Placement, sinks: Mapping[str, Sink] | None = None) -> Mapping[NodeId, Fragment]:
    return deployed(asked, placed, sinks).fragments
