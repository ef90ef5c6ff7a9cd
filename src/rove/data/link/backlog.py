"""Batches for one peer that are not sent yet, and which of them goes next.

Law: batches of one origin are sent in the order of their arrival. Batches that were kept while the route was cut, and
new ones that may overtake them, take turns, or one of them goes first (`BacklogOrder`). Rows on the disk are read
before their turn; batches of other origins go on meanwhile.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from rove.data.link.loading import Loading
from rove.data.link.queue import Queue
from rove.data.settings import BacklogOrder
from rove.data.store.kept_batch import KeptBatch
from rove.model.errors import must
from rove.model.ids import Origin

READING_MAX = 256  # batches that are next in turn and wait for rows from the disk


class Backlog:
    """For one link. `loading` reads its rows from the disk."""

    def __init__(self, order: BacklogOrder, loading: Loading) -> None:
        self._order, self._loading = order, loading
        self._kept = Queue()
        self._new = Queue()  # arrived since the route is up, may overtake the kept ones
        self._new_next = False
        self._reading: deque[KeptBatch] = deque()  # next, behind rows that are read from the disk
        self._origins: Counter[tuple[str, Origin]] = Counter()  # query and origin of those

    def __iter__(self) -> Iterator[KeptBatch]:
        """All batches, the oldest first; some may be gone."""
        yield from self._reading
        yield from self._kept
        yield from self._new

    def __bool__(self) -> bool:
        return bool(self._kept or self._new or self._reading)

    def add(self, entry: KeptBatch, overtakes: bool) -> None:
        """Add a batch. One that `overtakes` need not wait for kept ones."""
        new = overtakes and bool(self) and self._order != "first"
        (self._new if new else self._kept).append(entry)

    def add_first(self, entries: Iterable[KeptBatch]) -> None:
        """Add batches that were taken back, to be sent before all others."""
        self.put_back()
        self._kept.extendleft(reversed([*entries]))

    def next(self, now: int) -> KeptBatch | None:
        """Take out the next batch that can be sent. Amortized O(1)."""
        if not (self._new and (self._new_next or self._order == "last")):
            kept = self._next_kept(now)
            if kept is not None:
                self._new_next = True
                return kept
        while self._new:
            self._new_next = False
            if self._loading.ready(self._new[0]):
                return self._new.popleft()
            if not self._reads(self._new[0], now):
                break
            self._new.popleft()
        return self._next_kept(now)

    def read_ahead(self, now: int) -> None:
        """Request rows on the disk whose turn comes soon."""
        while self._kept and not self._loading.ready(self._kept[0]) and self._reads(self._kept[0], now):
            self._kept.popleft()

    def read_again(self, now: int) -> None:
        """Request rows that could not be read or were not requested yet."""
        for entry in self._reading:
            self._loading.ask(entry, now)

    @property
    def stands_still(self) -> bool:
        """Whether the rows that are next were not requested yet. A batch may be spilled while it waits for earlier
        rows of its origin."""
        return bool(self._reading) and self._loading.unasked(self._reading[0])

    def put_back(self) -> None:
        """Put the batches that were next back into the queue. Their rows stay on the disk."""
        for entry in self._reading:
            self._loading.let_go(entry)
        self._kept.extendleft(reversed(self._reading))
        self._reading.clear()
        self._origins.clear()

    def cut(self) -> None:
        """Note that the route is cut: all batches count as kept, none as new."""
        self.put_back()
        self._kept += self._new
        self._new.clear()

    def leave_out(self, query: str) -> None:
        """Remove the batches of a query. Others that were next are asked for again. O(batches)."""
        self.put_back()
        for queue in (self._kept, self._new):
            queue.keep(lambda entry: entry.header.query != query)

    def sweep(self) -> None:
        """Note that one more batch may be gone. Amortized O(1)."""
        self._kept.sweep()
        self._new.sweep()

    def validate(self, up: bool, credit: int) -> None:
        """Raise if a batch waits without need. O(batches that wait for rows)."""
        must(up or not self._new, "nothing is new while the link is not up")
        idle = up and bool(self._kept or self._new) and not self._reading
        must(not idle or credit <= 0, "nothing waits while there is credit", credit)
        read = Counter(map(_origin, self._reading))
        must(self._origins == read, "origins whose rows are read are counted", self._origins, read)

    def _next_kept(self, now: int) -> KeptBatch | None:
        """The oldest kept batch whose rows are in memory and that is first of its origin."""
        if self._reading and self._loading.ready(self._reading[0]):
            entry = self._reading.popleft()
            self._origins[_origin(entry)] -= 1
            if not self._origins[_origin(entry)]:
                del self._origins[_origin(entry)]
            return entry
        while self._kept:
            entry = self._kept[0]
            if self._loading.ready(entry) and not self._origins[_origin(entry)]:
                return self._kept.popleft()
            if not self._reads(entry, now):
                return None
            self._kept.popleft()
        return None

    def _reads(self, entry: KeptBatch, now: int) -> bool:
        """Let a batch wait until its rows, or earlier rows of its origin, are read. Returns whether there is room for
        it."""
        if self._loading.full or len(self._reading) >= READING_MAX:
            return False
        self._reading.append(entry)
        self._origins[_origin(entry)] += 1
        self._loading.ask(entry, now)
        return True


def _origin(entry: KeptBatch) -> tuple[str, Origin]:
    return entry.header.query, entry.header.origin
