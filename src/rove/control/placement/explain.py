"""Describes a placed plan for people: where each step runs and why, and how much each link will carry."""

from __future__ import annotations

from collections.abc import Iterable

from rove.control.placement.estimate import ROWS_PER_S, Measured, flows
from rove.control.placement.placement import Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Stage
from rove.plan.explain import describe

NODES_SHOWN = 3
LINKS_SHOWN = 20
WIDTH = 24


def explain(request: Request, placement: Placement, topology: Topology, measured: Measured | None = None) -> str:
    """The plan, last step first, with the place of each step and the reason; then the links, the busiest first. Rates
    are estimates, from the `measured` rates of sources where there are any."""
    lines: list[str] = []
    shown: set[Stage] = set()
    for name, stage in request.stages.outputs:
        lines.append(f"{name} ─► {'the cloud' if request.sink is None else request.sink}")
        lines += _steps(request, placement, topology, stage, "", "", shown)
    return "\n".join([*lines, "", *_links(request, placement, measured)])


def _steps(
    request: Request, placement: Placement, topology: Topology, stage: Stage, first: str, rest: str, shown: set[Stage]
) -> list[str]:
    op, inputs = request.stages.operators[stage], request.stages.inputs[stage]
    where = "Spark" if stage in placement.spark else _where(placement.hosts[stage], topology)
    again = stage in shown
    lines = [f"{where:<{WIDTH}}{first}{describe(op)}{' (as above)' if again else ''}"]
    if again:
        return lines
    shown.add(stage)
    lines.append(f"{'':<{WIDTH}}{rest}{'│  ' if inputs else '   '}{placement.why[stage]}")
    for i, below in enumerate(inputs):
        last = i == len(inputs) - 1
        branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        lines += _steps(request, placement, topology, below, rest + branch, rest + trunk, shown)
    return lines


def _where(hosts: Iterable[NodeId], topology: Topology) -> str:
    """The hosts by name, or by kind if there are many."""
    names = sorted(hosts)
    if len(names) <= NODES_SHOWN:
        return ", ".join(names) or "nowhere yet"
    kinds = [topology.node(n).kind for n in names]
    return ", ".join(f"{kinds.count(k)} {k}{'s' if kinds.count(k) > 1 else ''}" for k in dict.fromkeys(sorted(kinds)))


def _links(request: Request, placement: Placement, measured: Measured | None) -> list[str]:
    end = "the log" if request.sink is None else "the sink"
    total: dict[tuple[NodeId, str], tuple[float, float]] = {}
    for flow in flows(request, placement, measured):
        key = (flow.node, flow.next or end)
        rows, size = total.get(key, (0.0, 0.0))
        total[key] = rows + flow.rows_per_s, size + flow.bytes_per_s
    busiest = sorted(total.items(), key=lambda each: (-each[1][1], each[0]))
    lines = [
        f"{f'{node} ─► {upper}':<{WIDTH}}{rows:,.0f} rows/s, {size:,.0f} bytes/s"
        for (node, upper), (rows, size) in busiest[:LINKS_SHOWN]
    ]
    if len(busiest) > LINKS_SHOWN:
        lines.append(f"… and {len(busiest) - LINKS_SHOWN} links that carry no more than these")
    return [f"links carry, by {_basis(request, measured)}:" if lines else "no link carries anything yet", *lines]


def _basis(request: Request, measured: Measured | None) -> str:
    """What the rates are made of: how many of the sources were measured."""
    sources = {(s.node, s.origin.name) for of_stage in request.sources.values() for s in of_stage}
    known = sum(measured is not None and measured(*each) is not None for each in sources)
    if not known:
        return f"estimate ({ROWS_PER_S:.0f} rows/s for each source: rates are measured while a query reads it)"
    return f"estimate from measured rates of {'all' if known == len(sources) else f'{known} of {len(sources)}'} sources"
