"""Logs a node's state and what holds queries up: each thing once, and again when it has changed.

Law: a wrong name, a wrong parent or a wrong url is logged within seconds as a warning that says what to do. What works
is logged as information. A trouble is logged by the process that has it, once when it begins and once when it is over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived
from rove.model.messages import Orders, Refused

log = logging.getLogger("rove")

LOOK_US = 1_000_000  # how often the state is checked
PATIENCE_US = 3_000_000  # before a node that was never reached is logged: its name or address may be wrong
AWAY_US = 30_000_000  # before a node that was reached earlier is logged: things that move are often out of reach
SAID_US = 5_000_000  # how long a problem that the coordinator reported counts; it repeats it with every report


class Once:
    """The troubles of queries that were logged and are not over."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], None] = {}

    def look(self, troubles: Iterable[tuple[str, str]]) -> None:
        """Log the troubles that are new, as query and sentence, and those that are over."""
        found = dict.fromkeys(troubles)
        for query, text in found:
            if (query, text) not in self._seen:
                log.warning("query %s: %s", query, text)
        for query, text in self._seen:
            if (query, text) not in found:
                log.info("query %s: over: %s", query, text)
        self._seen = found


class Absence:
    """Since when a node is out of reach, and whether that is long enough to be logged as a problem."""

    def __init__(self, now: int) -> None:
        self._since, self._patience = now, PATIENCE_US

    def lasts(self, here: bool, now: int) -> bool:
        """Whether the absence has lasted too long. `here` says whether the node can be reached now."""
        if here:
            self._since, self._patience = now, AWAY_US
        return now - self._since >= self._patience


REFUSED = (  # its words stay the same while more are refused, so that it is logged once
    "peers send what they may not send, or in the name of others; it is not taken. rove status counts it, and the "
    "troubles of queries and links say whose it is"
)


class Watch:
    """The log of one node. `reached` says whether the last message to the coordinator could be sent."""

    def __init__(self, now: int) -> None:
        self.reached = False
        self._began = now
        self._absences = {what: Absence(now) for what in ("coordinator", "parents")}
        self._due = 0
        self._said, self._said_us = "", 0  # the last problem that the coordinator reported
        self._seen: dict[str, str] = {}
        self._queries = Once()

    def heard(self, event: Arrived, now: int) -> None:
        """Handle a message of the coordinator, which may report a problem."""
        if event.conn != COORDINATOR:
            return
        match event.message:
            case Refused(text=text) | Orders(trouble=text) if text:
                self._said, self._said_us = text, now

    def due(self, now: int) -> bool:
        """Whether to check now. Sets the time of the next check."""
        if now < self._due:
            return False
        self._due = now + LOOK_US
        return True

    def look(self, worker: Worker, troubles: dict[str, str], now: int) -> None:
        """Log what has changed since the last check: what runs, and with `troubles` what is wrong."""
        queries = [(q, each.text) for q, here in worker.troubles_of_queries().items() for each in here]
        self._queries.look(queries)
        told = "\n".join(text for _, text in queries)  # what is said of a query is not said of its folder as well
        own = {what: text for what, text in self._troubles(worker, now).items() if text not in told}
        troubles = troubles | own
        found = troubles | _states(worker)
        for what, state in found.items():
            if self._seen.get(what) != state:
                log.log(logging.WARNING if what in troubles else logging.INFO, "%s: %s", what, state)
        for what in self._seen.keys() - found.keys():
            log.info("%s: over", what)
        self._seen = found

    def _troubles(self, worker: Worker, now: int) -> dict[str, str]:
        found = worker.troubles()
        if "identity" in worker.refused:
            found["refused `identity`"] = REFUSED
        if self._said and now - self._said_us < SAID_US:
            found["the coordinator says"] = self._said
        links = worker.links()
        known = [parent for parent in worker.settings.parents if parent in links]
        if self._absences["coordinator"].lasts(self.reached, now):
            found["the coordinator"] = "cannot be reached; trying again. Start it, or correct --coordinator"
        elif self.reached and now - self._began >= PATIENCE_US:
            for parent in worker.settings.parents:
                if parent not in links:
                    found[f"parent {parent}"] = (
                        "the coordinator does not know a node of that name that can be reached yet; start it, or "
                        "correct --parent"
                    )
        here = any(links[parent].up for parent in known)
        if self._absences["parents"].lasts(here, now) and known:
            found["parents"] = (
                f"cannot be reached: {', '.join(known)}. Rows are kept here; start one of them, or mend the way"
            )
        return found


def _states(worker: Worker) -> dict[str, str]:
    links = {f"link to {name}": "up" if link.up else "down" for name, link in worker.links().items()}
    return links | {f"query {query}": f"runs v{r.fragment.version}" for query, r in worker.running().items()}
