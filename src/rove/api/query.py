"""A user's handle of a running query, with the names of PySpark's `StreamingQuery`.

Law: the handle keeps a name and nothing else. Every answer comes from the coordinator at the moment of asking.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from rove.api.accounts import excess, total
from rove.api.arguments import checks_arguments
from rove.api.troubles import hopeless, sentence
from rove.control.asks.requests import AccountLine, Named, Progress, QueryLine
from rove.model.errors import NoSuchVerb, PlanError, RoveError, nearest

if TYPE_CHECKING:
    from rove.api.session import Session

POLL_S = 0.25  # how often `awaitTermination` asks whether the query has ended


@checks_arguments
class Query:
    """A handle. Get one from `stream.writeStream`, or from `Session.query(name)` for a query that runs already."""

    def __init__(self, session: Session, name: str) -> None:
        self._session, self.name = session, name

    def __repr__(self) -> str:
        return f"Query[{self.name} at {self._session.url}]"

    @property
    def status(self) -> dict[str, Any]:
        """PySpark's keys `message`, `isDataAvailable` (rows are in flight) and `isTriggerActive` (Spark has rows to
        read), with what `rove queries` says of the query. Both are false when the query was stopped."""
        line = self.listed()
        runs = line.state != "stopped"
        return {
            "message": sentence(line.troubles) or line.state,
            "isDataAvailable": runs and any(each.in_flight > each.open for each in self.accounts),
            "isTriggerActive": runs and line.spark is not None and line.spark.lag_entries > 0,
            **msgspec.to_builtins(line),
        }

    @property
    def id(self) -> str:
        """Its name, which no other query of the network has or ever had. It stays when nodes or Spark start again."""
        return self.name

    @property
    def runId(self) -> str:
        """It is refused: nodes and Spark start again each by itself, so a query has no runs."""
        raise NoSuchVerb("a query has no runs: nodes and Spark start again by themselves, and it goes on; use .id")

    def listed(self) -> QueryLine:
        """Its line in `rove queries`: waiting, deploying, running, held up or stopped; which nodes do not run their
        fragment yet; and what holds it up, since when."""
        found = self._session.ask("queries", Named(name=self.name), list[QueryLine])
        if not found:
            known = self._session.ask("queries", None, list[QueryLine])
            raise PlanError(f"no query `{self.name}`; {nearest(self.name, [line.query for line in known])}")
        return found[0]

    @property
    def isActive(self) -> bool:
        """Whether the query has not been stopped."""
        return self.listed().state != "stopped"

    @property
    def accounts(self) -> list[AccountLine]:
        """The accounts of every row, by origin."""
        return self._session.ask("status", Named(name=self.name), list[AccountLine])

    @property
    def lastProgress(self) -> dict[str, Any]:
        """The accounts of every row, as sums and under `origins` one by one. `adds_up` says whether all rows are
        accounted for."""
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
        """The last progress report of Spark; None if there is none yet."""
        return self.listed().spark

    @property
    def recentProgress(self) -> list[Progress]:
        """Spark's reports of its last micro-batches, the newest last."""
        return self._session.ask("recent", Named(name=self.name), list[Progress])

    def exception(self) -> str | None:
        """Why the query cannot go on; None if it can."""
        return sentence(t for t in self.listed().troubles if t.holds) or None

    def processAllAvailable(self, timeout: float = 600) -> None:
        """Wait until every row that has been made by now has arrived at its sink, Spark included, or is in a window
        that is still open. A local session lets all its data flow first. It raises if rows cannot arrive: the query was
        stopped, cannot go on (`status`), or has lost rows."""
        if self._session.is_local:
            self._session.world.finish(self.name, timeout)
            return
        deadline = time.monotonic() + timeout
        made = {line.origin: line.produced for line in self.accounts}
        self._await(lambda: self._has_counted(made), deadline, "to get its rows")
        if (line := self.listed()).in_spark:
            number = 0 if line.spark is None else line.spark.number
            # The next report may have been made before the rows came; the one after it was not.
            self._await(lambda: self._caught_up(number + 2), deadline, "to be finished in Spark")
        if lost := sum(line.lost for line in self.accounts):
            raise RoveError(f"{lost:,} rows of query `{self.name}` were lost; look at query.accounts")

    def _has_counted(self, made: dict[str, int]) -> bool:
        """Whether all rows of `made` have reached an end, or wait in an open window."""
        counted = {line.origin: line.produced - line.in_flight + line.open for line in self.accounts}
        return all(counted.get(origin, 0) >= rows for origin, rows in made.items())

    def _caught_up(self, number: int) -> bool:
        """Whether Spark says in its report of this number, or a later one, that it has read all of the log."""
        spark = self.listed().spark
        return spark is not None and spark.number >= number and spark.state == "running" and not spark.lag_entries

    def _await(self, condition: Callable[[], bool], deadline: float, what: str) -> None:
        while not condition():
            line = self.listed()
            if why := hopeless(line):
                raise RoveError(why)
            if time.monotonic() > deadline:
                held = sentence(line.troubles) or "look at query.status and query.accounts"
                raise RoveError(f"gave up waiting for query `{self.name}` {what}: {held}")
            time.sleep(POLL_S)

    def explain(self) -> None:
        """Print where each operator runs, why, and how much each link is expected to carry."""
        print(self._session.ask("explain", Named(name=self.name), Named).name)

    def stop(self) -> None:
        """Stop the query on all nodes. Rows that have arrived stay where they are."""
        self._session.ask("stop", Named(name=self.name), Named)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until the query is stopped, or for `timeout` seconds. Returns whether it was stopped. It raises if the
        query cannot go on without a repair (`status`)."""
        end = None if timeout is None else time.monotonic() + timeout
        while (line := self.listed()).state != "stopped":
            if why := hopeless(line):
                raise RoveError(why)
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(POLL_S if end is None else max(0.0, min(POLL_S, end - time.monotonic())))
        return True


@checks_arguments
class Queries:
    """The queries of a session's network, as PySpark's `spark.streams`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def active(self) -> list[Query]:
        """All queries that have not been stopped."""
        lines = self._session.ask("queries", None, list[QueryLine])
        return [Query(self._session, line.query) for line in lines if line.state != "stopped"]

    def get(self, id: str) -> Query:
        """A query by its name."""
        return self._session.query(id)
