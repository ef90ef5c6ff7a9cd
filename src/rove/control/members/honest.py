"""What a node may count of rows of others.

Law: a device counts its own rows only; another count is a lie, and the whole report is refused. An edge or a gateway
counts what it was sent, and the sender may have lied: counts of rows that cannot have passed this node are dropped,
and the rest of its report is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from rove.control.members.membership import Member
from rove.model.errors import ProtocolError
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Report


def honest(report: Report, known: Member | None, may_carry: Callable[[QueryId, NodeId, NodeId], bool]) -> Report:
    """The report without counts of rows that never came to this node. O(counts that are new)."""
    strange = [tally for tally in report.tallies if tally.origin.node not in ("", report.node)]
    if not strange:
        return report
    kind = report.facts.kind if report.facts is not None else known.record.kind if known is not None else ""
    if kind == "device":
        raise ProtocolError("identity", f"`{report.node}` is a device and may not count rows of `{strange[0].origin}`")
    before = {} if known is None else known.tallies
    forged = {
        (tally.query, tally.origin)
        for tally in strange
        if (tally.query, tally.origin) not in before
        and not may_carry(tally.query, report.node, NodeId(tally.origin.node))
    }
    if not forged:
        return report
    return replace(report, tallies=tuple(t for t in report.tallies if (t.query, t.origin) not in forged))
