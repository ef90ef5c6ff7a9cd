"""A report as far as it can be believed.

Law: a node speaks of itself, of its sources, and of queries in which it has a part. What else it says is left out and
counted as `identity`, and a device is named with it for a while. It cannot lie in another's name, so that nobody else
is suspected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.control.members.honest.bounds import cut
from rove.control.members.honest.counts import CountsHere
from rove.control.members.honest.parts import of_parts
from rove.model.ids import NodeId
from rove.model.messages import Report

if TYPE_CHECKING:
    from rove.control.deployment.deployments import Deployments
    from rove.control.members.below import Below
    from rove.control.members.membership import Member

NAMED_US = 60_000_000  # how long a node is named after its last lie


def honest(report: Report, known: Member | None, deployments: Deployments, below: Below) -> tuple[Report, str]:
    """The report without what the node may not say, and a sentence on that; empty if there is nothing. Counts of a
    device of another node's rows raise a ProtocolError. O(report)."""
    found, lie = of_parts(cut(report), deployments)
    if report.tallies:
        kind = kind_of(report, known)
        tallies, forged = CountsHere(report, known, kind, deployments, below).honest()
        if len(tallies) < len(report.tallies):
            found, lie = replace(found, tallies=tallies), forged or lie
    return found, f"reports {lie}; that is left out" if lie else ""


def kind_of(report: Report, known: Member | None) -> str:
    """What a node says it is, in this report or the one before."""
    return report.facts.kind if report.facts is not None else known.record.kind if known is not None else ""


class Liars:
    """The devices that reported what they may not, with the last time and what it was. Other nodes are not named,
    because they may have been lied to. O(devices)."""

    def __init__(self) -> None:
        self._last: dict[NodeId, tuple[int, str]] = {}

    def heard(self, node: NodeId, kind: str, lie: str, now: int) -> None:
        if kind == "device":
            self._last[node] = (now, lie)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._last)

    def of(self, node: NodeId, now: int) -> str:
        """What a node said a moment ago that it may not; empty if nothing."""
        when, lie = self._last.get(node, (0, ""))
        return lie if now - when <= NAMED_US else ""

    def forget(self, node: NodeId) -> None:
        self._last.pop(node, None)
