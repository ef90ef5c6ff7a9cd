"""What a node says in its log of how it gets on: each thing once, and again when it has changed.

Law: whoever starts a node with a wrong name, a wrong parent or a wrong url reads so within seconds. What is in order is
told, too, but as information.
"""

from __future__ import annotations

import logging

from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived
from rove.model.messages import Orders, Refused

log = logging.getLogger("rove")

LOOK_US = 1_000_000  # between two looks
PATIENCE_US = 3_000_000  # what is not there at the start may be about to come
SAID_US = 5_000_000  # what the coordinator finds wrong it says again with every report


class Watch:
    """The log of one node. `reached` says whether the last word to the coordinator could be sent."""

    def __init__(self, now: int) -> None:
        self.reached = True
        self._began = now
        self._due = 0
        self._said, self._said_us = "", 0  # by the coordinator, of what is wrong here
        self._seen: dict[str, str] = {}

    def heard(self, event: Arrived, now: int) -> None:
        """The coordinator may have found something wrong."""
        if event.conn != COORDINATOR:
            return
        match event.message:
            case Refused(text=text) | Orders(trouble=text) if text:
                self._said, self._said_us = text, now

    def due(self, now: int) -> bool:
        """Whether it is time for a look; the next is later then."""
        if now < self._due:
            return False
        self._due = now + LOOK_US
        return True

    def look(self, worker: Worker, troubles: dict[str, str], now: int) -> None:
        """Log what has changed since the last look: what runs, and with `troubles` what is wrong."""
        troubles = troubles | self._troubles(worker, now)
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
            found["refused `identity`"] = str(worker.refused["identity"])
        if self._said and now - self._said_us < SAID_US:
            found["the coordinator says"] = self._said
        if now - self._began < PATIENCE_US:
            return found
        if not self.reached:
            found["the coordinator"] = "cannot be reached; it is tried again"
        else:
            for parent in worker.settings.parents:
                if parent not in worker.links():
                    found[f"parent {parent}"] = "the coordinator knows no node of that name that others can reach, yet"
        return found


def _states(worker: Worker) -> dict[str, str]:
    links = {f"link to {name}": "up" if link.up else "down" for name, link in worker.links().items()}
    return links | {f"query {query}": f"runs v{r.fragment.version}" for query, r in worker.running().items()}
