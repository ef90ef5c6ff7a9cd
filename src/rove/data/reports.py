"""A node's reports to the coordinator: the first is whole, later ones say what has changed.

Law: reports of one start are numbered without gaps, so the coordinator notices a missing one at once and asks for a
whole one. No report is larger than a message may be: tallies that do not fit follow in the next reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rove.data.settings import WorkerSettings
from rove.model.ids import Origin, QueryId
from rove.model.messages import TALLIES_MAX, Facts, Orders, Report, SourceHere, Tally

_AS_BEFORE = ("facts", "unknown", "refused", "knows", "troubles", "reaches", "held", "learned", "moved", "released")


class Reports:
    """What was reported last."""

    def __init__(self) -> None:
        self._number = 0
        self._obeyed = 0  # the number of the last orders
        self._last: Report | None = None
        self._tallies: dict[tuple[QueryId, Origin], Tally] = {}

    def ordered(self, orders: Orders) -> bool:
        """Orders came, and the next report says so. Returns whether it has to be whole, because one was missing."""
        self._obeyed = orders.number or self._obeyed
        if orders.whole:
            self._last = None
        return orders.whole

    def next(self, picture: Report) -> list[Report]:
        """The reports that bring the coordinator up to date with `picture`, the whole report. O(tallies)."""
        picture = replace(picture, obeyed=self._obeyed)
        last, tallies = self._last, {(t.query, t.origin): t for t in picture.tallies}
        if last is None:
            first, news = picture, list(picture.tallies)
        else:
            first = replace(
                picture,
                whole=False,
                running={q: v for q, v in picture.running.items() if last.running.get(q) != v},
                ended=tuple(q for q in last.running if q not in picture.running),
                **{name: None for name in _AS_BEFORE if getattr(last, name) == getattr(picture, name)},
            )
            news = [t for key, t in tallies.items() if self._tallies.get(key) != t]
            news += [Tally(query=q, origin=o) for q, o in self._tallies if (q, o) not in tallies]
        self._last, self._tallies = replace(picture, tallies=()), tallies
        found: list[Report] = []
        for chunk in _chunks(news):
            again = first if not found else _only_tallies(first)
            self._number += 1
            found.append(replace(again, number=self._number, tallies=chunk))
        return found


def facts_of(settings: WorkerSettings, sources: tuple[SourceHere, ...], durable: bool, disk_bytes: int) -> Facts:
    """The part of a node's report that seldom changes."""
    return Facts(
        kind=settings.kind,
        address=settings.address,
        parents=settings.parents,
        slots=settings.slots,
        memory_bytes=settings.memory_bytes,
        sources=sources,
        durable=durable,
        trusts=settings.trusts,
        disk_bytes=disk_bytes,
    )


def _only_tallies(first: Report) -> Report:
    """A further report that carries only tallies."""
    return replace(first, whole=False, running={}, ended=(), **dict.fromkeys(_AS_BEFORE))


def _chunks(tallies: Iterable[Tally]) -> Iterator[tuple[Tally, ...]]:
    """Tallies in portions that fit a message; one empty portion if there are none."""
    found = tuple(tallies)
    yield found[:TALLIES_MAX]
    for n in range(TALLIES_MAX, len(found), TALLIES_MAX):
        yield found[n : n + TALLIES_MAX]
