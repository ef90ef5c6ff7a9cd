"""What a node may say of queries: of those in which it has a part.

Law: a trouble of a node counts only for a query that the node was told a part of, and has not let go. Its text is cut
and cleaned, and a function that it lacks is one of that query. Everything else of it is left out.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.control.members.honest.bounds import QUERIES_MAX, TROUBLES_MAX
from rove.control.members.honest.texts import cleaned
from rove.model.messages import Report, TroubleHere

if TYPE_CHECKING:
    from rove.control.deployment.deployments import Deployments


def of_parts(report: Report, deployments: Deployments) -> tuple[Report, str]:
    """The report with troubles, kept batches and moved states of queries that concern the node, and what else it
    reports. O(troubles + kept + moved)."""
    parts, queries = deployments.of_node.get(report.node, {}), deployments.queries
    found: dict[str, object] = {}
    lie = ""
    if report.troubles:
        troubles = {}
        for id, here in report.troubles.items():
            query = queries.get(id)
            if query is not None and id in parts:
                troubles[id] = _readable(here, query.functions.values())
            elif query is not None and not query.stopped:
                lie = f"troubles of query `{id}`, in which it has no part"
        found["troubles"] = troubles
    if report.held:
        kept = {held.query: held for held in report.held if held.query in queries and held.bytes >= 0 <= held.age_us}
        if len(kept) != len(report.held):
            found["held"] = tuple(kept.values())[:QUERIES_MAX]
    if report.moved:
        moved = tuple(each for each in report.moved if each[0] in parts)
        if len(moved) != len(report.moved):
            found["moved"] = moved
    return (replace(report, **found) if found else report), lie


def _readable(troubles: tuple[TroubleHere, ...], functions: Container[str]) -> tuple[TroubleHere, ...]:
    """As many troubles as are read, those first that decide something."""
    found = troubles
    if len(troubles) > TROUBLES_MAX:
        decisive = [t for t in troubles if t.holds or t.final or t.lacks or t.fault]
        found = (*decisive, *(t for t in troubles if not (t.holds or t.final or t.lacks or t.fault)))[:TROUBLES_MAX]
    return tuple(_clean(trouble, functions) for trouble in found)


def _clean(trouble: TroubleHere, functions: Container[str]) -> TroubleHere:
    text, lacks = cleaned(trouble.text), trouble.lacks if trouble.lacks in functions else ""
    same = (text, lacks) == (trouble.text, trouble.lacks)
    return trouble if same else replace(trouble, text=text, lacks=lacks)
