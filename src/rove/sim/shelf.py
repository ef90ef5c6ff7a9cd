"""The disk of a simulated node: its folders, and the disk work that a worker asks for.

Law: work is done in the order in which it was asked, and takes time: a sync, an opening and a read as well as a write.
While the disk is bad, openings and reads fail by chance; what was safe stays safe. At a crash an index may be damaged:
its segment knows what was in it, so nothing is lost by that.
"""

from __future__ import annotations

import errno
from random import Random

from msgspec.structs import replace

from rove.data.events import (
    AskReaders,
    DiskAnswer,
    DiskWork,
    Listed,
    ListFolders,
    Load,
    Loaded,
    LogRead,
    OnDisk,
    Open,
    Opened,
    OpenFailed,
    Readers,
    ReadLog,
)
from rove.data.log.segments.disk_work.commit import carried_out, commit, recovered
from rove.data.log.segments.disk_work.read_back import LogCursor, loaded
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.disk_folders import read_folder
from rove.model.errors import BrokenInvariant, RoveError, must
from rove.model.ids import QueryId
from rove.sim.disk import HARMS, SimDisk

UNBOUNDED = 2**62  # what waits for the disk is bounded by the credit that let it in
OPEN_US = 20_000  # what an opening takes at most, on a disk that is not slow
READ_US = 2_000  # what a read takes at most, on a disk that is not slow
HARMED = 0.2  # how often an index of a folder is damaged at a crash


class SimShelf:
    """A node's disks by folder. `slow_us` is what work takes at most beyond the usual; `bad` is the chance that an
    opening or a read fails. While it `lies`, syncs are answered and not done."""

    def __init__(self, random: Random) -> None:
        self._random = random
        # A generator of its own, so that all else happens as without damage.
        self._harms = Random(random.getstate()[1][0])
        self.disks: dict[str, SimDisk] = {}
        self._unharmed: dict[str, dict[str, bytes]] = {}  # the files of damaged folders, as they were before
        self._cursors: dict[str, LogCursor] = {}
        self.slow_us = 0
        self.bad = 0.0
        self.lies = False
        self.spoilt = False  # it has lied or lost bytes: an index alone cannot be made again for certain
        self._full = False
        self._free_us = 0  # when all that was asked is done

    def disk(self, folder: str) -> SimDisk:
        if folder not in self.disks:
            self.disks[folder] = SimDisk(self._random, capacity_bytes=0 if self._full else None)
        return self.disks[folder]

    def fill(self, full: bool) -> None:
        """Fill the disk, or make room on it, for folders that are new as well."""
        self._full = full
        for disk in self.disks.values():
            disk.capacity_bytes = 0 if full else None

    def folders(self, prefix: str) -> list[str]:
        return sorted(name for name, disk in self.disks.items() if name.startswith(f"{prefix}/") and disk.sizes())

    def queries(self) -> set[QueryId]:
        """The queries with a folder here."""
        return {query_of(folder) for folder in self.disks}

    def done_at(self, order: DiskWork, now: int) -> int:
        """The time when an order that is given now will be done."""
        self._free_us = max(now, self._free_us) + self._duration_us(order)
        return self._free_us

    def _duration_us(self, order: DiskWork) -> int:
        match order:
            case OnDisk(folder=folder, group=group):
                disk = self.disk(folder)
                disk.slow_us = self.slow_us
                return sum(disk.duration_us(command) for command in group.commands)
            case Open():
                return 1_000 + self._random.randint(0, OPEN_US + self.slow_us)
            case _:
                return 100 + self._random.randint(0, READ_US + self.slow_us)

    def answer(self, order: DiskWork) -> DiskAnswer:
        """Execute an order. Returns its answer."""
        fails = self.bad > 0 and self._random.random() < self.bad
        trouble = str(OSError(errno.EIO, "the simulated disk cannot be read")) if fails else ""
        match order:
            case OnDisk(folder=folder):
                disk = self.disk(folder)
                disk.lies = self.lies
                return carried_out(disk, order)
            case Open(folder=folder, number=number):
                return OpenFailed(folder, number, trouble) if fails else self._opened(order)
            case Load(peer=peer, order=number, rows=rows):
                return Loaded(peer, number, None, trouble) if fails else loaded(self.disk(rows.folder), order)
            case ReadLog(folder=folder, position=position):
                return LogRead(folder, position, trouble=trouble) if fails else self._read(order)
            case ListFolders(prefix=prefix):
                return Listed(prefix, () if fails else tuple(self.folders(prefix)), trouble)
            case AskReaders(folder=folder):
                return Readers(folder, {})

    def _opened(self, order: Open) -> Opened | OpenFailed:
        disk = self.disk(order.folder)
        self._cursors.pop(order.folder, None)
        settings = replace(order.settings or LogSettings(), segment_bytes=8_192, pending_bytes=UNBOUNDED)
        try:
            partition, upto = recovered(order.folder, order.schema, disk, settings, 0)
        except RoveError as error:
            return OpenFailed(order.folder, order.number, str(error))
        self._check_mended(order, partition, settings)
        commit(partition, disk, 0)
        return Opened(order.folder, order.number, partition, upto)

    def _check_mended(self, order: Open, partition: Partition, settings: LogSettings) -> None:
        """A folder with a damaged index is the same as without the damage."""
        files = self._unharmed.pop(order.folder, None)
        if files is None:
            return
        sizes = {name: len(data) for name, data in files.items()}
        twin = Partition.recover(
            order.folder, order.schema, sizes, lambda file, at, length: files[file][at : at + length], settings
        )
        same = (twin.end, twin.damaged, twin.ledger.table()) == (
            partition.end,
            partition.damaged,
            partition.ledger.table(),
        )
        must(same, "a damaged index is made again", order.folder, twin.end, partition.end, partition.damage)

    def _read(self, order: ReadLog) -> LogRead:
        if order.folder not in self._cursors:
            self._cursors[order.folder] = LogCursor(self.disk(order.folder), order.upto)
        return self._cursors[order.folder].answer(order)

    def crash(self, pending: list[DiskWork], power: bool) -> None:
        """Let the process die. Some of its pending commands were executed."""
        self._free_us = 0
        self._cursors.clear()
        for order in pending:
            if not isinstance(order, OnDisk):
                continue
            done = self._random.randint(0, len(order.group.commands))
            for command in order.group.commands[:done]:
                try:
                    self.disk(order.folder).execute(command)
                except OSError:
                    break
        if power:
            for folder in sorted(self.disks):
                self.disks[folder].crash()
        self._unharmed.clear()  # another crash may leave less than the last
        for folder in sorted(self.disks):
            if self._harms.random() < HARMED and not self.spoilt:
                self._harm(folder)

    def _harm(self, folder: str) -> None:
        """Damage one index. The bytes of the segment that the crash left are enough to make it again."""
        disk = self.disks[folder]
        sizes = disk.sizes()
        indexes = sorted(file for file in sizes if file.endswith(".index"))
        if indexes:
            self._unharmed[folder] = {file: disk.read(file, 0, size) for file, size in sizes.items()}
            disk.harm(self._harms.choice(indexes), self._harms.choice(HARMS), self._harms.random())


def query_of(folder: str) -> QueryId:
    """The query whose batches a folder holds. Simulated queries end in logs, not in folders of files."""
    found = read_folder(folder)
    if found is None:
        raise BrokenInvariant(f"`{folder}` is no folder of a query")
    return found.query
