"""The entries of one folder that are below the offset's end and still have rows above its bound.

Law: finding the entries that a bound admits costs in proportion to what it admits. Entries above the bound are skipped
a page at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rove.cloud.source.entries import NONE, Entries

PAGE_ENTRIES = 16_384


@dataclass(frozen=True, slots=True)
class _Page:
    entries: Entries
    least: int  # the least event time of any entry
    fullest: int  # the least bound that wholly admits an entry of the page


class Held:
    """Pages of entries, in order of position."""

    def __init__(self) -> None:
        self._pages: list[_Page] = []

    def add(self, entries: Entries) -> None:
        """Hold more entries. Their positions are above those held already."""
        if not len(entries):
            return
        if self._pages and len(self._pages[-1].entries) + len(entries) <= PAGE_ENTRIES:
            entries = np.concatenate((self._pages.pop().entries, entries))
        self._pages += [_page(entries[at : at + PAGE_ENTRIES]) for at in range(0, len(entries), PAGE_ENTRIES)]

    def release(self, bound: int) -> None:
        """Forget entries whose rows are all admitted by a bound."""
        kept = []
        for page in self._pages:
            if page.fullest > bound:
                kept.append(page)
            elif len(left := page.entries[page.entries["most"] > bound]):
                kept.append(_page(left))
        self._pages = kept

    def within(self, bound: int) -> Entries:
        """The entries of which a bound admits rows, in order of position."""
        found = [page.entries[page.entries["least"] <= bound] for page in self._pages if page.least <= bound]
        return np.concatenate(found) if found else NONE

    def first_beyond(self, bound: int) -> int | None:
        """The lowest position that holds rows beyond a bound."""
        for page in self._pages:
            beyond = page.entries["most"] > bound
            if beyond.any():
                return int(page.entries["position"][beyond.argmax()])
        return None


def _page(entries: Entries) -> _Page:
    return _Page(entries, int(entries["least"].min()), int(entries["most"].min()))
