"""Results that several queries of a node share, because their plans begin alike.

Law: two runs of stateless operators compute the same if they and all operators below them are equal. Over the same rows
they give the same rows, so one query computes them, and the others take its result. Encoded rows are shared likewise.
Results are kept until the next event, and never more than `RESULTS_MAX` of them. Nobody needs to know who shares what:
a query that comes or goes changes nothing for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rove.data.operators.logic import Stateless
from rove.data.operators.stateless_run import rows_through
from rove.data.rows import encode_rows
from rove.model.events import Payload
from rove.plan import codec
from rove.plan.operators import Map, Operator, Received, Source
from rove.plan.stages import Stages, stateless

RESULTS_MAX = 64


def key_of(run: Sequence[Operator]) -> bytes:
    """A key that equal runs have in common. It is empty if a run cannot be shared: it calls a user's function, which
    may be another one under the same name, or its rows were made by an operator with state. O(plan below the run)."""
    plan = Stages.of({"": run[-1]})
    if any(isinstance(op, Map) or not (stateless(op) or isinstance(op, Source | Received)) for op in plan.operators):
        return b""
    return codec.encode(plan)


class SharedResults:
    """The results of one event, for all queries of a node."""

    __slots__ = ("_computed", "_encoded")

    def __init__(self) -> None:
        # The rows that a result was made of are kept with it, so that their id names no other rows.
        self._computed: dict[tuple[int, bytes], tuple[pa.RecordBatch, pa.RecordBatch]] = {}
        self._encoded: dict[int, tuple[pa.RecordBatch, Payload]] = {}

    def begin(self) -> None:
        """Forget the results of the last event; a new event begins."""
        self._computed.clear()
        self._encoded.clear()

    def through(self, key: bytes, steps: list[Stateless], data: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that a run makes of these rows. A run that fails is tried again by each query. O(1) if another query
        has computed them."""
        if not key:
            return rows_through(steps, data)
        found = self._computed.get((id(data), key))
        if found is None:
            if len(self._computed) >= RESULTS_MAX:
                self._computed.clear()
            found = self._computed[id(data), key] = (data, rows_through(steps, data))
        return found[1]

    def encoded(self, data: pa.RecordBatch | None) -> Payload | None:
        """Rows as bytes."""
        if data is None:
            return None
        found = self._encoded.get(id(data))
        if found is None:
            if len(self._encoded) >= RESULTS_MAX:
                self._encoded.clear()
            payload = encode_rows(data)
            if payload is None:
                return None
            found = self._encoded[id(data)] = (data, payload)
        return found[1]
