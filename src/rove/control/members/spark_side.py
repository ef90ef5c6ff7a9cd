"""The coordinator's knowledge of Spark: which parts of queries Spark should run, and its progress.

Law: the coordinator sends nothing to Spark by itself. `rove cloud` asks what should run, and reports.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from rove.control.asks.requests import (
    CloudQuery,
    CloudSink,
    PlanAsk,
    PlanSaid,
    Progress,
    TableAsk,
    TableRows,
)
from rove.control.deployment.query import Query
from rove.control.deployment.split import OUTPUT
from rove.control.members.spark_questions import PLANS_MAX, TABLES_MAX, SparkQuestions
from rove.model.errors import PlanError
from rove.model.ids import QueryId
from rove.model.schema import schema_text
from rove.plan.codec import encode
from rove.plan.operators import Operator, Received
from rove.plan.rules.prune_columns import prune_columns
from rove.plan.stages import Stages, ordered

RECENT_MAX = 100
# After this time without a request from Spark, no process runs queries there. It asks nothing while it starts a query,
# which takes ten seconds and more on a busy machine.
SILENT_US = 30_000_000


class SparkSide:
    """The last progress reports, by query. `asked_us` is when Spark last asked what it should run; None if never."""

    def __init__(self) -> None:
        self._recent: dict[QueryId, deque[Progress]] = {}
        self._parts: dict[QueryId, CloudQuery] = {}
        self._failing: dict[QueryId, int] = {}  # since when
        self.reads = SparkQuestions[TableAsk, TableRows](TABLES_MAX, f"{TABLES_MAX} tables are being read already")
        self.checks = SparkQuestions[PlanAsk, PlanSaid](PLANS_MAX, f"Spark reads {PLANS_MAX} plans already")
        self.asked_us: int | None = None
        self.trusts: bool | None = None  # whether it runs functions that come by value; None until it has asked

    def listens(self, now: int) -> bool:
        """Whether there is a Spark that answers."""
        return self.asked_us is not None and now - self.asked_us <= SILENT_US

    def heard(self, said: Progress, now: int) -> None:
        """Take a progress report. It replaces the last one unless a new micro-batch was done or the state has
        changed."""
        recent = self._recent.setdefault(QueryId(said.query), deque(maxlen=RECENT_MAX))
        if recent and (recent[-1].batch, recent[-1].state) == (said.batch, said.state):
            recent.pop()
        recent.append(said)
        if said.trouble:
            self._failing.setdefault(QueryId(said.query), now)
        else:
            self._failing.pop(QueryId(said.query), None)

    def failing_since(self, query: QueryId) -> int | None:
        """Since when Spark reports trouble of a query; None if it reports none."""
        return self._failing.get(query)

    def recent(self, query: QueryId) -> list[Progress]:
        """The last reports of a query, the newest last."""
        return list(self._recent.get(query, ()))

    def last(self, query: QueryId) -> Progress | None:
        recent = self._recent.get(query)
        return recent[-1] if recent else None

    def part_of(self, query: Query, lower: Stages, upper: Operator | None) -> CloudQuery:
        """Spark's part of a query: the upper part of its plan, or only a read of its rows if there is none. It receives
        only the columns that it reads. Computed once, because the cut of a query does not change."""
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
        late, faults = _aside(lower)
        found = self._parts[query.id] = CloudQuery(
            query=query.id, plan=plan, sink=sink, patience_us=patience, late=late, faults=faults
        )
        return found


def _aside(lower: Stages) -> tuple[str, str]:
    """The columns of late rows, and of rows that cannot be computed, at any operator of a plan: those that go into the
    operator. Rows that are late at the end have the columns of the output."""
    late, faults = dict[str, pa.Field](), dict[str, pa.Field]()
    for op, inputs in zip(lower.operators, lower.inputs, strict=True):
        for field in (field for each in inputs for field in lower.operators[each].schema):
            faults.setdefault(field.name, field)
            if ordered(op):
                late.setdefault(field.name, field)
    output = {field.name: field for _, stage in lower.outputs for field in lower.operators[stage].schema}
    return schema_text(pa.schema((late or output).values())), schema_text(pa.schema((faults or output).values()))
