"""The rules for batches that cannot be sent: kept once, packed, written to the disk, degraded, and at last evicted.

Law: rows are evicted only by the policy's choice, never if they may have arrived, and hooks are told which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from rove.data.events import (
    DiskDone,
    Evicted,
    Listed,
    ListFolders,
    LogRead,
    Note,
    OnDisk,
    Pack,
    Packed,
    ReadLog,
)
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.folders import Folders
from rove.data.settings import WorkerSettings
from rove.data.store.degrading import Degrading
from rove.data.store.eviction import Guarded, Policy, policy
from rove.data.store.folding import Folding
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.pack_queue import PackQueue
from rove.data.store.spill import Spill
from rove.data.store.store import Store
from rove.data.store.thinning import Thinning
from rove.model.batch import Header
from rove.model.disk_folders import WaitingFolder, read_folder
from rove.model.ids import NOBODY, Origin, QueryId


class Retention:
    """The rules for a store of bounded size, with a disk if the node has one and gives some of it."""

    def __init__(
        self,
        store: Store,
        settings: WorkerSettings,
        folders: Folders | None = None,
        start: int = 0,
        own_policy: Policy | None = None,
    ) -> None:
        self._store, self._settings = store, settings
        self._on_disk = None
        if folders is not None and settings.disk_bytes:
            self._on_disk = Spill(store, folders, settings.disk_bytes, start)
        self.disk_bytes = 0 if self._on_disk is None else settings.disk_bytes
        self._degrading: dict[QueryId, Degrading] = {}
        self._batch = (NOBODY, -1)  # the last batch of a source that was kept
        self._recent: list[KeptBatch] = []  # its kept batches, of all queries
        self._notes: list[Note] = []
        self._policy: Policy = Guarded(own_policy, self._notes.append) if own_policy is not None else _named(settings)
        self._pack_queue = PackQueue(store) if settings.compress != "off" else None
        self._refused = False  # whether the policy named nothing the last time

    def waits(self, entry: KeptBatch, running: RunningFragment, now: int) -> list[Pack]:
        """A batch could not be sent at once. If another query has just kept the same rows, they are kept once. A batch
        that only passes by is not packed: its sender keeps it too, and would only send more. O(queries that kept rows
        of the same batch)."""
        query, schema = running.fragment.query, running.schema_of(entry.header)
        if entry.may_go and (running.fragment.thins or running.fragment.folds):
            if query not in self._degrading:
                kind = Thinning if running.fragment.thins else Folding
                self._degrading[query] = kind(self._store, self._settings.compress)
            self._degrading[query].waits(entry)
        elif entry.may_go and self._shared(entry):
            return []
        made_here = entry.receipt is None or entry.header.origin.unsided in running.fragment.makes.values()
        return self._pack_queue.waits(entry, schema, now) if self._pack_queue is not None and made_here else []

    def _shared(self, entry: KeptBatch) -> bool:
        batch = (entry.header.origin.unsided, entry.header.seq)
        if batch != self._batch:
            self._batch, self._recent = batch, []
        for other in self._recent:
            if other.whole and _same(other, entry):
                self._store.share(other, entry)
                return True
        self._recent.append(entry)
        return False

    def packed(self, event: Packed, now: int) -> list[Pack]:
        return [] if self._pack_queue is None else self._pack_queue.packed(event, now)

    def tick(self, now: int) -> list[Pack | OnDisk | Note]:
        """Pack, then write, batches that have waited long enough. Delete files that are no longer needed."""
        commands: list[Pack | OnDisk | Note] = [*self._notes]
        self._notes.clear()
        if self._pack_queue is not None:
            commands += self._pack_queue.due(now)
        return commands if self._on_disk is None else [*commands, *self._on_disk.tick(now)]

    def forget(self, query: QueryId) -> None:
        """A query has ended."""
        self._degrading.pop(query, None)
        self._store.damage.pop(query, None)
        if self._on_disk is not None:
            self._on_disk.left_behind.forget(query)

    def make_room(self, query: QueryId, queries: Mapping[QueryId, RunningFragment]) -> Iterator[Evicted]:
        """After a batch of `query` came, make room: hand batches to the disk, degrade them, or evict what the policy
        chooses, until the rest fits."""
        self._spill()
        while self._store.room < 0:
            victim = self._victim(query)
            self._refused = victim is None and any((*self._store.in_memory.queries(), *self._store.on_disk.queries()))
            if victim is None:
                return
            owner = QueryId(victim.header.query)
            if owner in self._degrading and owner in queries:
                less = self._degrading[owner].degrade(queries[owner])
                if less is not None:
                    smaller, rows = less[0].header, less[1]
                    if rows:
                        yield Evicted(owner, smaller.origin.unsided, smaller.seq, smaller.through, rows)
                    continue
            for each in list(victim.sharers or (victim,)):  # shared rows are evicted for all queries that share them
                if each.may_go:
                    gone, owner = each.header, QueryId(each.header.query)
                    self._store.evict(each)
                    if gone.late and owner in queries:
                        queries[owner].pipeline.late_went(gone)
                    yield Evicted(owner, gone.origin.unsided, gone.seq, gone.through, gone.born, gone.late)
            self._spill()

    @property
    def blocks(self) -> bool:
        """Whether sources must wait when there is no room, because the policy evicts nothing."""
        return self._settings.evict == "block" or self._refused

    # The disk

    def write_all(self, now: int) -> list[OnDisk]:
        """Write waiting batches, while there is time."""
        return [] if self._on_disk is None else self._on_disk.write_all(now)

    def done(self, event: DiskDone) -> bool:
        """A group of disk work is done. Returns whether it was ours."""
        return self._on_disk is not None and self._on_disk.done(event)

    def opened(self, folder: str) -> None:
        """A folder is open. It may be ours."""
        if self._on_disk is not None:
            self._on_disk.opened(folder)

    def listed(self, event: Listed, now: int) -> None:
        """The folders of earlier starts are known."""
        if self._on_disk is not None:
            self._on_disk.listed(event, now)

    def read(self, event: LogRead, now: int) -> bool:
        """A part of a folder was read. Returns whether it was ours."""
        return self._on_disk is not None and self._on_disk.read(event, now)

    def look(self, now: int) -> list[ListFolders | ReadLog | Note]:
        """The requests for batches that earlier starts left, and notes about them."""
        return [] if self._on_disk is None else self._on_disk.left_behind.ask(now)

    @property
    def knows(self) -> bool:
        """Whether the batches that earlier starts left on the disk are known."""
        return self._on_disk is None or self._on_disk.left_behind.known

    def owns(self, folder: str) -> bool:
        """Whether batches that wait are in a folder. Damage in it is counted here (`damaged`)."""
        return isinstance(read_folder(folder), WaitingFolder)

    @property
    def damaged(self) -> int:
        """How many batches of earlier starts could not be read."""
        return 0 if self._on_disk is None else self._on_disk.left_behind.damaged

    def damage(self) -> dict[QueryId, str]:
        """What is damaged among the waiting batches of which query. O(queries with damage)."""
        return self._store.damage | ({} if self._on_disk is None else self._on_disk.left_behind.damage)

    def pick_up(
        self, running: RunningFragment, now: int, replays: Callable[[Origin], bool] = lambda _: False
    ) -> list[KeptBatch]:
        """Put the batches of sources that an earlier start kept into the store. Output of operators is not among them,
        because it is computed again. Neither is what leaves more than once of a source that `replays`: not all of it
        may be on the disk, so all of it is made again."""
        if self._on_disk is None or (running.route is None and not running.fragment.leads):
            return []
        found = [
            (each, self._store.put(each.header, each.rows, None, now, alone=True))  # it may have arrived
            for each in self._on_disk.left_behind.take(running.fragment.query)
            if (origin := each.header.origin.unsided) not in running.fragment.makes.values()
            and not (running.forks(origin) and replays(origin))
        ]
        self._on_disk.adopt(found)
        return [entry for _, entry in found]

    def left_behind(self) -> list[Header]:
        """The batches of earlier starts whose queries do not run here yet."""
        return [] if self._on_disk is None else list(self._on_disk.left_behind.headers())

    def earlier(self) -> set[Origin]:
        """The origins of earlier starts whose batches are still here."""
        return set() if self._on_disk is None else self._on_disk.origins()

    @property
    def trouble(self) -> str:
        """What is wrong with the disk; empty if nothing is."""
        return "" if self._on_disk is None else self._on_disk.trouble

    def _victim(self, query: QueryId) -> KeptBatch | None:
        """The batch to evict: on the disk if the disk is full, else in memory; in memory too if nothing on the disk may
        be evicted. Evicting from a disk with room frees nothing."""
        found = None
        if self._on_disk is not None and self._on_disk.evicts:
            found = self._policy.victim(self._store.on_disk, query)
            if found is not None and found.alone and not self._on_disk.has_no_room:
                found = None
        return self._policy.victim(self._store.in_memory, query) if found is None else found

    def _spill(self) -> None:
        if self._on_disk is not None:
            self._on_disk.press()


def _named(settings: WorkerSettings) -> Policy:
    return policy(settings.evict, settings.weights)


def _same(one: KeptBatch, other: KeptBatch) -> bool:
    """Whether the batches of two queries hold the same rows, both packed or both not."""
    if one.header.query == other.header.query or one.header.packed != other.header.packed:
        return False
    mine, theirs = one.in_memory, other.in_memory
    return (
        mine is not None
        and theirs is not None
        and len(mine) == len(theirs)
        and bool(pa.py_buffer(mine).equals(pa.py_buffer(theirs)))
    )
