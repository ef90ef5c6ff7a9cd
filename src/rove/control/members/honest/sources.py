"""Compares the sources of nodes with the columns of their streams.

Law: a source that contradicts its stream is trouble of its node, and of the queries that read the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.members.membership import Membership


def compare(
    membership: Membership, read: Callable[[str], bool], now: int, node: NodeId | None = None
) -> dict[str, str | None]:
    """Decide the columns of streams whose sources have changed. Compare with them the sources of a node, and those of
    other nodes whose stream has other columns now. Returns these streams. O(sources of these nodes)."""
    look: dict[NodeId, None] = {} if node is None else {node: None}
    news = membership.streams.settle(read)
    for stream in news:
        look |= dict.fromkeys(membership.streams.nodes(stream))
    for each in look:
        member = membership.members[each]
        misfits = membership.streams.misfits(member.record.sources)
        membership.troubled.brings(each, misfits, now)
        member.trouble = "; ".join(misfits.values())
    return news
