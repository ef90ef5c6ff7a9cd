"""The counts of one origin's rows, for one query."""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.batch import Header


@dataclass(slots=True)
class Count:
    """The counts of one origin's rows here. A row that goes to several operators counts once for each. Rows in `open`
    windows are not delivered yet.

    `made` is the number of batches whose rows are among those produced, `seen` that of batches up to the last one that
    was counted otherwise. They tell which of two counts, of different moments, is the older one.
    """

    produced: int = 0
    delivered: int = 0
    evicted: int = 0
    late: int = 0
    lost: int = 0
    made: int = 0
    seen: int = 0
    open: int = 0
    faulted: int = 0

    def take(self, header: Header) -> None:
        """Count a batch that has reached a stateful operator or a sink."""
        self.delivered += header.born
        self.evicted += header.evicted
        self.lost += header.lost
        self.faulted += header.faulted
        self.late += header.belated
        self.saw(header)

    def saw(self, header: Header) -> None:
        """A batch was counted."""
        self.saw_until(header.through + 1)

    def saw_until(self, number: int) -> None:
        """Batches before this one were counted."""
        self.seen = max(self.seen, number)

    def make(self, header: Header, rows: int) -> None:
        """Count the rows of a new batch."""
        self.produced += rows
        self.made = max(self.made, header.through + 1)

    def add(self, other: Count) -> None:
        """Add the counts of another time or place."""
        self.produced += other.produced
        self.delivered += other.delivered
        self.evicted += other.evicted
        self.late += other.late
        self.lost += other.lost
        self.open += other.open
        self.faulted += other.faulted
        self.made, self.seen = max(self.made, other.made), max(self.seen, other.seen)
