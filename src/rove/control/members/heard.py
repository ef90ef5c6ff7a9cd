"""What a report of a node changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rove.model.ids import NodeId, QueryId, Version

if TYPE_CHECKING:
    from rove.control.members.membership import NodeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a report changed. `record` is the node's record if it changed, `before` the earlier one. `relinked` are
    nodes with a link that works now and did not before, or the other way round. `ran` maps queries that the node runs
    in another version than before to that version; None if it no longer runs the query. `lacking` are queries with
    functions that it cannot load."""

    record: NodeRecord | None
    before: NodeRecord | None
    restarted: bool
    relinked: tuple[NodeId, ...]
    ran: dict[QueryId, Version | None]
    lacking: list[QueryId]
