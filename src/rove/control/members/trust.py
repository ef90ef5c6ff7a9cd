"""Checks that users' functions are sent by value only to processes that allow it.

Law: reading such a function runs its sender's code. The coordinator passes it on unread. It refuses a query at once if
a process that must read the function does not allow it. A process that has not reported yet refuses it later by itself.
"""

from __future__ import annotations

from rove.control.deployment.query import Query
from rove.control.members.membership import Membership
from rove.control.members.spark_side import SparkSide
from rove.model.errors import PlanError
from rove.model.ids import NodeId, Stage
from rove.plan.operators import InSpark, Map
from rove.plan.stages import Stages
from rove.plan.user_functions import Unread, is_by_value

INSTALL = "or define it in a module that is installed there"


def check_trust(query: Query, membership: Membership, spark: SparkSide) -> None:
    """Refuse a placed query whose functions by value must run where they are not allowed. O(operators + nodes)."""
    functions = _by_value(query.stages)
    if spark.trusts is False and (name := _in_spark(query, functions)):
        raise PlanError(
            f"the function `{name}` would be sent to Spark by value, but Spark takes functions by name only: start it "
            f"with rove cloud --trust-functions, {INSTALL}"
        )
    refusing = _on_nodes(query, membership) if functions else {}
    if refusing:
        nodes, name = ", ".join(f"`{node}`" for node in refusing), next(iter(refusing.values()))
        raise PlanError(
            f"the function `{name}` would be sent to {nodes} by value, where functions are taken by name only: set "
            f"trust_functions there, run it elsewhere with .at(…), {INSTALL}"
        )


def _in_spark(query: Query, functions: dict[Stage, str]) -> str | None:
    """A function by value that Spark must read, if there is one."""
    sink = query.record.cloud
    if sink is None or query.deployment is None:
        return None
    if sink.function and is_by_value(sink.function):
        return sink.name
    return next((name for stage, name in functions.items() if stage in query.record.spark), None)


def _on_nodes(query: Query, membership: Membership) -> dict[NodeId, str]:
    """The nodes that must read a function by value and do not allow it, with the function."""
    found: dict[NodeId, str] = {}
    halves = query.split()
    functions = {} if halves is None else _by_value(halves.lower)
    for node, fragment in query.fragments.items():
        member = membership.members.get(node)
        name = next((functions[stage] for stage in fragment.loads if stage in functions), None)
        if name and member is not None and member.conn is not None and not member.record.trusts:
            found[node] = name
    return found


def _by_value(stages: Stages) -> dict[Stage, str]:
    """The names of functions by value, by the stage that calls them."""
    return {
        Stage(n): op.function.__name__
        for n, op in enumerate(stages.operators)
        if isinstance(op, Map | InSpark) and isinstance(op.function, Unread) and op.function.by_value
    }
