"""The fragments of one node: those that run, queries that were stopped, and why others cannot run here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rove.data.fragment.gaps import Gaps
from rove.data.fragment.running_fragment import RunningFragment
from rove.model.errors import must
from rove.model.ids import QueryId
from rove.model.messages import TroubleHere


@dataclass(slots=True, eq=False)
class Fragments:
    """By query. A query runs or is stopped, never both. A query with trouble may still run in an older version."""

    running: dict[QueryId, RunningFragment] = field(default_factory=dict)
    plans: dict[str, bytes] = field(default_factory=dict)  # the plans of running fragments, by digest
    stopped: dict[QueryId, None] = field(default_factory=dict)
    troubles: dict[QueryId, TroubleHere] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps)

    def forget_plans(self, waiting: Iterable[str] = ()) -> None:
        """Keep only the plans of fragments that run or wait for their folders. O(fragments)."""
        needed = dict.fromkeys((*(r.fragment.plan for r in self.running.values()), *waiting))
        self.plans = {plan: self.plans[plan] for plan in needed}

    def validate(self) -> None:
        """Every fragment. O(what they hold)."""
        both = [query for query in self.running if query in self.stopped]
        must(not both, "a query that was stopped does not run", both)
        for query, running in self.running.items():
            must(running.fragment.query == query, "a fragment is listed under its query", query)
            running.validate()
