"""The verb `update`: gives a running query another text.

Law: operators keep their state and their place. A change that cannot keep them is refused by name, and nothing changes.
Every row is computed once, with the old text or with the new one: each node takes the new one between two batches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rove.control.asks.requests import Submitted, Update, from_body
from rove.control.deployment.query import Query
from rove.model.errors import PlanError
from rove.model.messages import plan_digest
from rove.plan.codec import decode
from rove.plan.explain import describe
from rove.plan.rules.amend import changed, misfit
from rove.plan.sites import site
from rove.plan.stages import Stages
from rove.plan.user_functions import unread

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def update(coordinator: Coordinator, body: bytes) -> Submitted:
    asked, deployments = from_body(body, Update), coordinator.deployments
    query = deployments.query(asked.name)
    if query.stopped:
        raise PlanError(f"query `{query.id}` was stopped; submit the new text under another name")
    stages, old = decode(asked.plan, unread), query.record.plan
    if plan_digest(asked.plan) != old:
        _check_amends(query, stages)
        _check_alone(coordinator, query)
        query.amend(asked.plan, stages)
        coordinator.keep_bytes("plan", query.record.plan, asked.plan)
        coordinator.keep("query", query.id, query.record)
        if all(each.record.plan != old for each in deployments.queries.values()):
            coordinator.keep_bytes("plan", old, None)
        if query.deployment is not None:
            change = deployments.rolled_out(query, query.deployment)
            coordinator.roll_out(query, replace(change, causes=("it was updated",)))
    return Submitted(query=query.id, version=query.version, text=deployments.explained(query))


def _check_amends(query: Query, stages: Stages) -> None:
    """Refuse a text with which the operators that run cannot go on."""
    way = "stop the query, and submit the new text under another name"
    if why := misfit(query.stages, stages):
        raise PlanError(f"query `{query.id}` cannot keep its state: {why}; {way}")
    for stage in changed(query.stages, stages) if query.deployment is not None else ():
        operator = stages.operators[stage]
        if stage in query.record.spark:
            raise PlanError(f"`{describe(operator)}` runs in Spark, where nothing can be updated; {way}")
        if not (at := site(operator)).edge:
            raise PlanError(f"`{describe(operator)}` can only run in Spark ({at.why}), and ran before Spark; {way}")


def _check_alone(coordinator: Coordinator, query: Query) -> None:
    """Refuse an update while nodes that can be reached have not taken the one before."""
    members, runs = coordinator.membership.members, query.rollout.runs
    behind = [node for node in query.rollout.pending if (runs(node) or query.amended) < query.amended]
    if waits := [node for node in behind if node in members and members[node].state(coordinator.now) == "up"]:
        raise PlanError(f"query `{query.id}` is being updated, and `{waits[0]}` has not taken it yet; try again")
