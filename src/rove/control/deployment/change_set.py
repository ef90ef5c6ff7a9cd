"""A change set: what one batch of changes does to one query. Some nodes get a fragment, some a new version of theirs,
some lose theirs.

Law: a change set is one value. Unchanged fragments are not in it, so untouched nodes are told nothing and nothing is
stored for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from rove.control.deployment.part import PartRecord
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Fragment


@dataclass(frozen=True, slots=True)
class Difference:
    """How two deployments of a query differ. `fragments` are those that nodes are told to run: to `deploy` on a node
    that had none, or to `update`. `undeploy` names the nodes that lose theirs."""

    fragments: Mapping[NodeId, Fragment]
    update: frozenset[NodeId]
    undeploy: tuple[NodeId, ...]

    @property
    def deploy(self) -> frozenset[NodeId]:
        return frozenset(self.fragments.keys() - self.update)

    def __bool__(self) -> bool:
        return bool(self.fragments or self.undeploy)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """A difference of one query, and what to store. Records change for some nodes whose fragment stays as it is."""

    query: QueryId
    version: Version
    difference: Difference
    records: tuple[PartRecord, ...]
    causes: tuple[str, ...] = ()  # in words

    def __bool__(self) -> bool:
        return bool(self.difference or self.records)


def difference(before: Mapping[NodeId, Fragment], after: Mapping[NodeId, Fragment | None]) -> Difference:
    """Compare the fragments of the nodes in `after`, the touched ones, with what they had. A fragment that differs in
    nothing but its version stays as it is. O(touched nodes)."""
    fragments: dict[NodeId, Fragment] = {}
    undeploy: list[NodeId] = []
    for node, new in after.items():
        old = before.get(node)
        if new is None:
            undeploy += () if old is None else (node,)
        elif old is None or replace(new, version=old.version) != old:
            fragments[node] = new
    return Difference(fragments, frozenset(fragments.keys() & before.keys()), tuple(undeploy))
