"""Follows a query's log and plans its micro-batches.

Law: a trigger costs in proportion to what is new. An idle trigger reads only each folder's commit mark. After a restart
the index is read from the lowest position with rows that are not admitted yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rove.cloud.source.admission import Admission, Limit, Rule
from rove.cloud.source.index import Index
from rove.cloud.source.offset import Offset, Reach
from rove.cloud.source.options import Options
from rove.cloud.source.quarantine import put
from rove.cloud.source.shares import Share, shares
from rove.model.disk_folders import READER
from rove.model.errors import DiskError

BEAT_S_MIN = 0.1  # between heartbeats without rows, because each is a micro-batch of its own
ENTRIES_PER_READ = 4_096
ENTRIES_UNSAID_MAX = 65_536  # after this many entries the checkpoint advances even if no row is admitted
ENTRIES_PER_BATCH_MAX = 1_000_000  # a bound for triggers without a limit, so that they fit into memory


class Scan:
    """The folders of a query's log, and the admission of their entries."""

    def __init__(self, options: Options, folders: Sequence[str]) -> None:
        self._options = options
        self._indexes = {name: Index(name, options.time, options.skip_damage) for name in folders}
        rule = Rule(delay_us=options.delay_us, span_us=options.span_us)
        self._admission = Admission(rule, lambda name, place: self._indexes[name].times(place))
        self._told: dict[str, int] = {}
        self._ends_here = False
        self._idle: Offset | None = None  # the offset at which there was nothing to do last time
        self._beat_at = -BEAT_S_MIN

    def oldest(self) -> Offset:
        """The start of a query that has no checkpoint."""
        start = self._over(Offset(), self._indexes)
        self._tell_first(start)
        return start

    def latest(self, start: Offset, limit: Limit | None = None) -> Offset:
        """The end of the next micro-batch; the start itself if there is nothing to do."""
        start = self._over(start, self._indexes)
        self._tell_first(start)
        self._seek(start)
        more = self._take_enough(limit)
        if not more and start == self._idle:
            return start
        plan = self._admission.plan(limit)
        grew = self._options.heartbeat and plan.end.bound > start.bound
        now = time.monotonic()
        in_time = plan.ended or self._ends_here or now - self._beat_at >= BEAT_S_MIN
        if plan.rows or self._admission.fresh >= ENTRIES_UNSAID_MAX or (grew and in_time):
            self._beat_at = self._beat_at if plan.rows else now
            return plan.end
        self._idle = None if grew else start
        return start

    def shares(self, start: Offset, end: Offset) -> list[Share]:
        """The shares of the entries between two offsets."""
        if start == end:
            return []
        start = self._over(start, end.folders)
        self._seek(start)
        for name, reach in end.folders.items():
            while self._admission.missing(name, reach.end) and self._take(name):
                pass
            if self._admission.missing(name, reach.end):
                raise DiskError(
                    f"{name} ends at {self._indexes[name].committed()}, but the checkpoint has read up to {reach.end}: "
                    "it is another log, or its end is lost; restore it, or start with a new checkpoint"
                )
        beat = end.bound if self._options.heartbeat and end.bound > start.bound else None
        return self._shares(start, end, beat)

    def everything(self) -> list[Share]:
        """The shares of all present entries, for a batch query."""
        self.end_here()
        start = self._over(Offset(), self._indexes)
        self._seek(start)
        while self._take_all():
            pass
        return self._shares(start, self._admission.plan().end, None)

    def end_here(self) -> None:
        """Ignore entries that are written from now on."""
        for index in self._indexes.values():
            index.end_here()
        self._ends_here = True
        self._admission.at = self._idle = None

    def tell(self, offset: Offset) -> None:
        """Tell the owner of the log, by a file, which entries are no longer needed."""
        if self._options.consumer is None:
            return
        for name, reach in offset.folders.items():
            if self._told.get(name) != reach.first:
                put(Path(name) / f"{READER}{self._options.consumer}", msgspec.json.encode({"position": reach.first}))
                self._told[name] = reach.first

    def _tell_first(self, start: Offset) -> None:
        """Register as a reader, so that the log keeps entries for us from the beginning."""
        if not self._told:
            self.tell(start)

    def _over(self, offset: Offset, folders: Mapping[str, object]) -> Offset:
        """An offset over these folders. A folder that was added since begins at its oldest entry."""
        if offset.folders.keys() == folders.keys() <= self._indexes.keys():
            return offset
        for name in (*offset.folders, *folders):
            if name not in self._indexes:
                raise DiskError(
                    f"the checkpoint is of a query that reads {name}, which the options do not name; name it too, or "
                    "start with a new checkpoint"
                )
        added = {name: Reach(at, at) for name in folders if (at := self._oldest_unless(name, offset)) is not None}
        return Offset({n: added.get(n) or offset.folders[n] for n in folders}, offset.bound, offset.newest)

    def _oldest_unless(self, name: str, offset: Offset) -> int | None:
        return None if name in offset.folders else self._indexes[name].oldest()

    def _shares(self, start: Offset, end: Offset, beat: int | None) -> list[Share]:
        origins = {name: self._indexes[name].names.list for name in end.folders}
        picks = self._admission.picks(end)
        return shares(picks, origins, self._options.parallelism, (start.bound, end.bound), beat)

    def _seek(self, start: Offset) -> None:
        if self._admission.seek(start):
            for name, reach in start.folders.items():
                self._indexes[name].open(reach.first)

    def _take_enough(self, limit: Limit | None) -> bool:
        """Take new entries, all of them or enough for a limit. Returns whether there were any."""
        taken = False
        while not self._enough(limit) and self._take_all():
            taken = True
        return taken

    def _enough(self, limit: Limit | None) -> bool:
        fresh = self._admission.fresh
        if limit is None:
            return fresh >= ENTRIES_PER_BATCH_MAX
        return fresh >= ENTRIES_UNSAID_MAX or self._admission.plan(limit).full

    def _take_all(self) -> int:
        """Take the next entries of every folder. Returns how many."""
        return sum(self._take(name) for name in self._indexes)

    def _take(self, name: str) -> int:
        index = self._indexes[name]
        entries = index.entries(ENTRIES_PER_READ)
        self._admission.take(name, entries, index.position)
        return len(entries)
