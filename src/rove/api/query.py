"""A query that runs, as its user holds it: a handle with the names of PySpark's `StreamingQuery`.

Law: it keeps a name and nothing else. Every answer is the coordinator's, at the moment of asking.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from rove.api.accounts import excess, total
from rove.control.asks.requests import AccountLine, Named, Progress, QueryLine
from rove.model.errors import PlanError, nearest

if TYPE_CHECKING:
    from rove.api.session import Session

POLL_S = 0.25  # between two looks at whether a query has ended


class Query:
    """A handle. Get one from `stream.writeStream`, or from `Session.query(name)` for one that runs already."""

    def __init__(self, session: Session, name: str) -> None:
        self._session, self.name = session, name

    def __repr__(self) -> str:
        return f"Query[{self.name} at {self._session.url}]"

    def status(self) -> QueryLine:
        """Waiting, deploying, running or stopped; which nodes do not run their part yet, and what is in the way."""
        lines = self._session.ask("queries", None, list[QueryLine])
        found = next((line for line in lines if line.query == self.name), None)
        if found is None:
            raise PlanError(f"no query `{self.name}`; {nearest(self.name, [line.query for line in lines])}")
        return found

    @property
    def isActive(self) -> bool:
        """Whether it has not been stopped."""
        return self.status().state != "stopped"

    @property
    def accounts(self) -> list[AccountLine]:
        """What became of every row, by origin."""
        return self._session.ask("status", Named(name=self.name), list[AccountLine])

    @property
    def lastProgress(self) -> dict[str, Any]:
        """What became of every row, in sums and under `origins` one by one; `adds_up` says whether all are accounted
        for."""
        lines = self.accounts
        sums: dict[str, Any] = msgspec.to_builtins(total(lines, self.name))
        del sums["origin"]
        return {
            **sums,
            "adds_up": not any(map(excess, lines)),
            "spark": msgspec.to_builtins(self.spark),
            "origins": msgspec.to_builtins(lines),
        }

    @property
    def spark(self) -> Progress | None:
        """How Spark gets on with its part, as it last said; None if it has said nothing yet."""
        return self.status().spark

    @property
    def recentProgress(self) -> list[Progress]:
        """What Spark has said of its last micro-batches, the newest last."""
        return self._session.ask("recent", Named(name=self.name), list[Progress])

    def exception(self) -> str | None:
        """Why it cannot go on, if it cannot."""
        line = self.status()
        return line.trouble or (line.spark.trouble if line.spark is not None else "") or None

    def processAllAvailable(self, timeout: float = 600) -> None:
        """In a local session: let all data flow, and wait until every row of it is where it ends, Spark included."""
        self._session.world.finish(self.name, timeout)

    def explain(self) -> None:
        """Print where everything runs, why, and what each link is expected to carry."""
        print(self._session.ask("explain", Named(name=self.name), Named).name)

    def stop(self) -> None:
        """Stop it on all nodes. What has arrived stays where it is."""
        self._session.ask("stop", Named(name=self.name), Named)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until somebody stops it, or for `timeout` seconds; whether it was stopped."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(POLL_S if end is None else max(0.0, min(POLL_S, end - time.monotonic())))
        return True
