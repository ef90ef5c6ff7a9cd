"""What the coordinator knows of Spark: which parts of which queries it should run, and how it gets on.

Law: Spark is told nothing; it asks. Whoever runs it brings it to what is wanted, and reports.
"""

from __future__ import annotations

from collections import deque

from rove.control.asks.requests import CloudQuery, CloudSink, Progress
from rove.control.deployment.query import Query
from rove.control.deployment.split import OUTPUT
from rove.model.errors import PlanError
from rove.model.ids import QueryId
from rove.plan.codec import encode
from rove.plan.operators import Operator, Received
from rove.plan.rules.prune_columns import prune_columns
from rove.plan.stages import Stages

RECENT_MAX = 100


class SparkSide:
    """Progress by query, as it was last told."""

    def __init__(self) -> None:
        self._recent: dict[QueryId, deque[Progress]] = {}
        self._parts: dict[QueryId, CloudQuery] = {}
        self.trusts: bool | None = None  # whether it runs functions that come by value; None: it has not been heard

    def heard(self, said: Progress) -> None:
        """How a query gets on; kept if a micro-batch was done since, or something else has changed."""
        recent = self._recent.setdefault(QueryId(said.query), deque(maxlen=RECENT_MAX))
        if recent and (recent[-1].batch, recent[-1].state) == (said.batch, said.state):
            recent.pop()
        recent.append(said)

    def recent(self, query: QueryId) -> list[Progress]:
        """What was said of a query, the newest last."""
        return list(self._recent.get(query, ()))

    def last(self, query: QueryId) -> Progress | None:
        recent = self._recent.get(query)
        return recent[-1] if recent else None

    def part_of(self, query: Query, lower: Stages, upper: Operator | None) -> CloudQuery:
        """What Spark runs of a query: what is left of its plan, or nothing but the reading of its rows. It receives the
        columns that it reads and no others. Worked out once: where a query is cut does not change."""
        if (known := self._parts.get(query.id)) is not None:
            return known
        if upper is None:
            (stage,) = (stage for _, stage in lower.outputs)
            last = lower.operators[stage]
            upper = Received(OUTPUT, last.schema, last.traits)
        sink: CloudSink | None = query.record.cloud
        if sink is None:
            raise PlanError(f"query `{query.id}` does not end in Spark")
        patience = query.patience_us() if sink.mode == "update" else 0
        plan = encode(Stages.of({OUTPUT: prune_columns(upper)}))
        found = self._parts[query.id] = CloudQuery(query=query.id, plan=plan, sink=sink, patience_us=patience)
        return found
