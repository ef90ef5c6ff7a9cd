"""Placement: which operator runs on which node. Each strategy has its own file.

Law: a strategy depends on the request, the topology and the load, and on nothing else. The same input gives the same
placement.
"""

from __future__ import annotations

from collections.abc import Callable

from rove.control.placement.bottom_up import bottom_up
from rove.control.placement.cloud_only import cloud_only
from rove.control.placement.ilp import ilp
from rove.control.placement.placement import Load, Placement
from rove.control.placement.request import Request, SourceAt
from rove.control.placement.shortest_path import shortest_path
from rove.control.topology.topology import Topology
from rove.model.errors import PlanError, nearest

__all__ = [
    "STRATEGIES",
    "Load",
    "Placement",
    "Request",
    "SourceAt",
    "Strategy",
    "bottom_up",
    "cloud_only",
    "ilp",
    "shortest_path",
    "strategy",
]

Strategy = Callable[[Request, Topology, Load], Placement]

STRATEGIES: dict[str, Strategy] = {
    "bottom_up": bottom_up,
    "shortest_path": shortest_path,
    "cloud_only": cloud_only,
    "ilp": ilp,
}


def strategy(name: str) -> Strategy:
    """A strategy by its name."""
    if name not in STRATEGIES:
        raise PlanError(f"no placement strategy `{name}`; {nearest(name, list(STRATEGIES))}")
    return STRATEGIES[name]
