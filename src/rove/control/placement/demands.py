"""What the plan and the user demand of a placement, before any node is chosen.

Law: a hint is obeyed, or refused here with the reason. Every strategy obeys the demands.
"""

from __future__ import annotations

from dataclasses import dataclass

from rove.control.placement.request import Request
from rove.model.errors import PlanError
from rove.model.ids import Stage
from rove.plan.explain import describe
from rove.plan.operators import Operator, Received, Source, Watermark
from rove.plan.sites import Site, site
from rove.plan.stages import Stages

TIERS = ("device", "edge", "cloud")


@dataclass(frozen=True, slots=True)
class Demand:
    """`spark`: the stage must run in Spark. `worker`: it must not, for its own sake or for an operator that reads it.
    If neither is set, both are possible. `why` is the reason for the one that is set.
    """

    spark: bool
    worker: bool
    why: str
    hint: str | None


def demands(request: Request) -> tuple[Demand, ...]:
    """The demand of each stage. If demands contradict each other, the error says which. O(stages²)."""
    operators = request.stages.operators
    sites = request.sites or sites_of(request.stages)
    for n, op in enumerate(operators):
        _check(request, Stage(n), op, sites[n])
    timed = _timed(request, sites)
    workers = _worker_reasons(request, sites, timed)
    found: list[Demand] = []
    for n, op in enumerate(operators):
        hint = request.hints.get(Stage(n))
        if timed[n] and hint == "cloud":
            hint = request.gateway
        spark = _spark_reason(request, Stage(n), sites[n], found, hint)
        worker = workers[n]
        if spark and worker:
            raise PlanError(f"`{short(op)}` runs in Spark, {spark}, and has to run on a worker, {worker}")
        found.append(Demand(bool(spark), bool(worker), spark or worker, hint))
    return tuple(found)


def sites_of(stages: Stages) -> tuple[Site, ...]:
    """Where each operator can run; the same for every placement of a query. O(stages)."""
    return tuple(site(op) for op in stages.operators)


def short(operator: Operator) -> str:
    """An operator's name for a sentence."""
    text = describe(operator).partition(": ")[0]
    return text if len(text) <= 60 else text[:59] + "…"


def _check(request: Request, stage: Stage, op: Operator, at: Site) -> None:
    """Refuse hints that no placement can satisfy for this operator alone."""
    hint = request.hints.get(stage)
    if not at.edge and not at.spark:
        raise PlanError(f"`{short(op)}` can run nowhere: {at.why}")
    if request.sink is not None and not at.edge:
        raise PlanError(
            f"`{short(op)}` runs in Spark only, because {at.why}; the sink is on node `{request.sink}`, and rows do "
            "not come back from Spark. Send the query to the cloud, or leave the operator out"
        )
    if hint is None:
        return
    if isinstance(op, Source | Received) and hint != "device" and any(n != hint for n in request.nodes_of(stage)):
        raise PlanError(
            f"`{short(op)}` cannot run at `{hint}`: a source runs on its device; hint the step that reads it"
        )
    if hint == "cloud" and request.sink is not None:
        raise PlanError(
            f"`{short(op)}` is wanted in the cloud, but the sink is on node `{request.sink}`, and rows do not come "
            "back from Spark; drop the hint, or send the query to the cloud"
        )
    if hint == "cloud" and not at.spark:
        raise PlanError(f"`{short(op)}` is wanted in the cloud, but cannot run there: {at.why}")
    if hint != "cloud" and not at.edge:
        raise PlanError(
            f"`{short(op)}` is wanted at `{hint}`, but runs in Spark only: {at.why}. Call at(…) before this step"
        )


def _timed(request: Request, sites: tuple[Site, ...]) -> list[bool]:
    """Which stages are a watermark over rows that Spark has not processed, or are below one. They must not run in
    Spark, because lateness is decided while each origin still has its own clock. In the cloud they run on the
    gateway."""
    stages = request.stages
    edge: list[bool] = []
    for n, inputs in enumerate(stages.inputs):
        edge.append(sites[n].edge and all(edge[i] for i in inputs))
    found = [False] * len(sites)
    for n in reversed(range(len(sites))):
        watermark = isinstance(stages.operators[n], Watermark) and edge[n]
        found[n] = request.sink is None and (watermark or any(found[r] for r in stages.readers[n]))
    return found


def _worker_reasons(request: Request, sites: tuple[Site, ...], timed: list[bool]) -> list[str]:
    """Why each stage cannot run in Spark; empty if it can. Rows never go from Spark to a worker."""
    found = [""] * len(sites)
    for n in reversed(range(len(sites))):
        op, hint = request.stages.operators[n], request.hints.get(Stage(n))
        if isinstance(op, Source | Received):
            found[n] = "where its rows are made"
        elif request.sink is not None:
            found[n] = f"because the sink is on `{request.sink}`"
        elif hint is not None and hint != "cloud":
            found[n] = f"because it is wanted at `{hint}`"
        elif not sites[n].spark:
            found[n] = f"because {sites[n].why}"
        elif timed[n] and isinstance(op, Watermark):
            found[n] = "because lateness is decided before origins mix"
        else:
            above = next((r for r in request.stages.readers[n] if found[r]), None)
            if above is not None:
                found[n] = f"because `{short(request.stages.operators[above])}` reads it on a worker, {found[above]}"
    return found


def _spark_reason(request: Request, stage: Stage, at: Site, below: list[Demand], hint: str | None) -> str:
    """Why a stage must run in Spark; empty if it need not."""
    if hint == "cloud":
        return "because it is wanted in the cloud"
    if not at.edge:
        return f"because {at.why}"
    first = next((i for i in request.stages.inputs[stage] if below[i].spark), None)
    if first is not None:
        return f"because it reads `{short(request.stages.operators[first])}`, which runs in Spark"
    return ""
