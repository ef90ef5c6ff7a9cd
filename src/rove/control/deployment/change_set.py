"""What one batch of changes does to one query: which nodes get a new fragment, and which lose theirs.

Law: a change set is one value. Fragments that stay as they are are not in it, so nodes that are not touched hear
nothing, and nothing is written for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rove.control.deployment.part import PartRecord
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """`deploy` are fragments that are new, or have a new version; `undeploy` are nodes whose part has gone. `records`
    is what to keep of it."""

    query: QueryId
    version: Version
    deploy: Mapping[NodeId, Fragment]
    undeploy: tuple[NodeId, ...]
    records: tuple[PartRecord, ...]

    def __bool__(self) -> bool:
        return bool(self.deploy or self.undeploy or self.records)
