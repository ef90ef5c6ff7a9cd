"""Fragments that wait until the folders they need are open.

Law: a fragment begins when all of its folders are open, and its older version runs on until then. For a query that is
new here, frames are parked meanwhile, and batches of this node's sources are kept in order and processed when it
begins. A folder that cannot be opened is reported as the query's trouble.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.folders import Folders
from rove.model.batch import Batch
from rove.model.errors import must
from rove.model.ids import Origin, QueryId
from rove.model.messages import Fragment


@dataclass(slots=True)
class OpeningFragment:
    """A fragment and the folders it waits for. `resumes` if it is of an earlier start. For a query that is new here,
    `running` is built already, and `early` collects the batches of sources."""

    fragment: Fragment
    plan: bytes
    resumes: bool = False
    running: RunningFragment | None = None
    early: list[tuple[str, Batch]] = field(default_factory=list)
    folders: tuple[str, ...] = ()


class Openings:
    """By query, the newest version of each. `bytes` is the size of rows that wait."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._waiting: dict[QueryId, OpeningFragment] = {}
        self.bytes = 0

    def get(self, query: QueryId) -> OpeningFragment | None:
        return self._waiting.get(query)

    def wait(self, opening: OpeningFragment) -> None:
        """Wait for the folders of a fragment. It replaces an older version that waits."""
        self.take(opening.fragment.query)
        self._waiting[opening.fragment.query] = opening
        self.bytes += sum(_size(batch) for _, batch in opening.early)

    def produced(self, stream: str, batch: Batch) -> None:
        """Keep rows of a source of this node for the queries that wait."""
        for opening in self._waiting.values():
            if opening.running is not None and batch.header.origin in opening.fragment.feeds:
                opening.early.append((stream, batch))
                self.bytes += _size(batch)

    def validate(self) -> None:
        """Raise unless `bytes` is the sum over the rows that wait. O(batches that wait)."""
        held = sum(_size(batch) for opening in self._waiting.values() for _, batch in opening.early)
        must(self.bytes == held, "bytes that wait for folders add up", self.bytes, held)

    def ready(self) -> list[OpeningFragment]:
        """Take out the fragments whose folders are all open. O(fragments that wait, and their folders)."""
        found = [o for o in self._waiting.values() if all(self._folders.get(name) is not None for name in o.folders)]
        for opening in found:
            self.take(opening.fragment.query)
        return found

    def take(self, query: QueryId) -> OpeningFragment | None:
        """Take out the fragment of a query, if one waits."""
        opening = self._waiting.pop(query, None)
        if opening is not None:
            self.bytes -= sum(_size(batch) for _, batch in opening.early)
        return opening

    def fragments(self) -> dict[QueryId, Fragment]:
        return {query: opening.fragment for query, opening in self._waiting.items()}

    def feeds(self, origin: Origin) -> list[QueryId]:
        """The queries that will get the rows of a source."""
        return [q for q, o in self._waiting.items() if o.running is not None and origin in o.fragment.feeds]

    def early(self) -> Iterator[tuple[QueryId, Batch]]:
        """The batches of sources that wait, by query."""
        return ((query, batch) for query, opening in self._waiting.items() for _, batch in opening.early)

    def troubles(self) -> dict[QueryId, str]:
        """Why fragments cannot begin, by query. O(fragments that wait, and their folders)."""
        found = {}
        for query, opening in self._waiting.items():
            if troubles := [f"{name}: {text}" for name in opening.folders if (text := self._folders.trouble(name))]:
                found[query] = f"its folder cannot be opened; it is tried again: {'; '.join(troubles)}"
        return found


def _size(batch: Batch) -> int:
    return 0 if batch.data is None else int(batch.data.nbytes)
