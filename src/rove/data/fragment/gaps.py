"""Notices batches that operators wait for while later ones of the same origin are there.

Law: a gap is named when it has lasted for `LASTING_US`. Before that, batches may arrive over another route. A node
cannot know whether the batches of a gap will arrive: a node that is away may have them, or a disk has lost them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rove.data.fragment.running_fragment import RunningFragment
from rove.model.ids import Origin, QueryId

LASTING_US = 10_000_000

Gap: TypeAlias = tuple[QueryId, Origin, int, int]  # the first and the last batch that has not come


class Gaps:
    """The gaps that were there at the last look, and since when."""

    def __init__(self) -> None:
        self._since: dict[Gap, int] = {}

    def lasting(self, running: Mapping[QueryId, RunningFragment], now: int) -> list[Gap]:
        """Look for gaps. Returns those that have lasted. O(operators, and batches that are held)."""
        found: dict[Gap, int] = {}
        for query, each in running.items():
            last: dict[Origin, int] = {}
            for header in () if each.replays else (batch.header for batch in each.pipeline.held()):
                last[header.origin.unsided] = max(last.get(header.origin.unsided, 0), header.seq)
            for origin, upto in last.items():
                for gap in ((query, origin, *bounds) for bounds in each.pipeline.gaps(origin, upto)):
                    found[gap] = self._since.get(gap, now)
        self._since = found
        return [gap for gap, since in found.items() if now - since >= LASTING_US]
