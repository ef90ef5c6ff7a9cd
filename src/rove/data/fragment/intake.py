"""Lets each origin's batches into a stateful operator once and in order.

Law: a batch is let in once, after all earlier batches of its origin. A batch that was let in before is a duplicate and
is counted. A batch that comes too early is held until the gap closes, or its origin is gone for good. So a watermark
counts only when every batch before it is in, and results do not depend on the route of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rove.model.batch import Batch
from rove.model.errors import UnknownOrigin, must
from rove.model.ids import Origin
from rove.model.spans import Spans


class Intake:
    """The next expected number of each origin. A batch in order costs O(1); an early one costs a sort of those held.

    On a node without a disk (`forgets`) an origin may be in the middle of its numbers when the intake begins. Then the
    first batch that comes is the beginning, because a route keeps the order.
    """

    def __init__(self, origins: Iterable[Origin], forgets: bool = False) -> None:
        self._next = dict.fromkeys(origins, 0)
        self._begin: dict[Origin, int] = {}  # where origins began, if not with 0
        self._forgets = forgets
        self._held: dict[Origin, dict[int, Batch]] = {}
        self._gone: set[Origin] = set()
        self.duplicates = 0

    def offer(self, origin: Origin, batch: Batch) -> list[Batch]:
        """The batches that may now go in, in order: this one and those that were held for it; none if it must wait."""
        header = batch.header
        expected = self._next.get(origin)
        if expected is None:
            raise UnknownOrigin(f"no operator here waits for origin `{origin}`; deploy its query with this origin")
        if expected == 0 and self._forgets and header.seq:
            self._begin[origin] = header.seq
        if (expected == 0 and self._forgets) or (origin in self._gone and header.seq > expected):
            expected = header.seq
        if header.seq == expected and origin not in self._held:
            self._next[origin] = header.through + 1
            return [batch]
        if header.through < expected:
            self.duplicates += 1
            return []
        return self._sorted_in(origin, batch, expected)

    def leave(self, origin: Origin) -> list[Batch]:
        """An origin is gone for good. Gaps in its numbers will not close, so batches held for them go in."""
        if origin not in self._next:
            return []
        self._gone.add(origin)
        held = self._held.pop(origin, {})
        return [held[seq] for seq in sorted(held)]

    @property
    def deserted(self) -> bool:
        """Whether there were origins, and all are gone for good."""
        return bool(self._gone) and self._next.keys() <= self._gone

    def expects(self, origin: Origin) -> bool:
        """Whether the origin is waited for, or has sent batches."""
        return origin in self._next

    def took(self, origin: Origin, seq: int) -> bool:
        return seq < self._next.get(origin, 0)

    def expect(self, origins: Iterable[Origin]) -> None:
        """Wait for these origins too, from their first batch on."""
        for origin in origins:
            self._next.setdefault(origin, 0)

    def held(self) -> Iterable[Batch]:
        """The batches that came too early and wait."""
        return (batch for early in self._held.values() for batch in early.values())

    def table(self) -> dict[Origin, int]:
        """The next number of each origin. Held batches count as not taken."""
        return dict(sorted(self._next.items()))

    def spans(self) -> Iterator[tuple[Origin, Spans]]:
        """The numbers that were taken of each origin."""
        for origin, following in self._next.items():
            if following:
                yield origin, (self._begin.get(origin, 0), following)

    def load(self, table: dict[Origin, int]) -> None:
        """Restore what `table` returned, for the origins that are waited for now."""
        self._next |= {origin: number for origin, number in table.items() if origin in self._next}
        self._held = {}

    def validate(self) -> None:
        """Raise if a held batch did not come too early. O(batches held)."""
        for origin, early in self._held.items():
            following = self._next.get(origin)
            must(following is not None and len(early) > 0, "batches are held for origins that are known", origin)
            late = [seq for seq in early if following is not None and seq <= following]
            must(not late, "what is held is beyond what is next", origin, late, following)
        must(self._gone <= self._next.keys(), "an origin that is gone was known", self._gone)

    def _sorted_in(self, origin: Origin, batch: Batch, expected: int) -> list[Batch]:
        early = self._held.setdefault(origin, {})
        known = early.get(batch.header.seq)
        if known is not None and known.header.through >= batch.header.through:
            self.duplicates += 1
        else:
            early[batch.header.seq] = batch
        ready: list[Batch] = []
        for seq in sorted(early):
            if seq > expected:
                break
            found = early.pop(seq)
            if found.header.through < expected:
                self.duplicates += 1
                continue
            # Only headers of empty batches overlap. The numbers before are known already.
            ready.append(found)
            expected = found.header.through + 1
        self._next[origin] = expected
        if not early:
            del self._held[origin]
        return ready
