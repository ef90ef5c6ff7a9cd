"""Entries of one folder that were looked at and still hold rows to be admitted.

Law: looking for what a bound lets in costs by what it lets in; what waits behind it is passed over a page at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rove.cloud.source.entries import NONE, Entries

PAGE_ENTRIES = 16_384


@dataclass(frozen=True, slots=True)
class _Page:
    entries: Entries
    least: int  # of any entry
    fullest: int  # the least bound that admits an entry of it wholly


class Held:
    """Pages of entries, in order of position."""

    def __init__(self) -> None:
        self._pages: list[_Page] = []

    def add(self, entries: Entries) -> None:
        """Hold more entries, of higher positions than those that are held."""
        if not len(entries):
            return
        if self._pages and len(self._pages[-1].entries) + len(entries) <= PAGE_ENTRIES:
            entries = np.concatenate((self._pages.pop().entries, entries))
        self._pages += [_page(entries[at : at + PAGE_ENTRIES]) for at in range(0, len(entries), PAGE_ENTRIES)]

    def release(self, bound: int) -> None:
        """Forget entries whose rows a bound has admitted, all of them."""
        kept = []
        for page in self._pages:
            if page.fullest > bound:
                kept.append(page)
            elif len(left := page.entries[page.entries["most"] > bound]):
                kept.append(_page(left))
        self._pages = kept

    def within(self, bound: int) -> Entries:
        """Entries of which a bound admits rows, in order of position."""
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
