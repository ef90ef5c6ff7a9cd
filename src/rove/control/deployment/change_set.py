"""A change set: what one batch of changes does to one query. Some nodes get a new fragment, some lose theirs.

Law: a change set is one value. Unchanged fragments are not in it, so untouched nodes are told nothing and nothing is
stored for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rove.control.deployment.part import PartRecord
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """`deploy` holds fragments that are new or have a new version; `undeploy` the nodes that lose their part. `records`
    is what to store."""

    query: QueryId
    version: Version
    deploy: Mapping[NodeId, Fragment]
    undeploy: tuple[NodeId, ...]
    records: tuple[PartRecord, ...]

    def __bool__(self) -> bool:
        return bool(self.deploy or self.undeploy or self.records)
