"""Simulated processes: a machine, its disks, its clock, and whether it runs.

Law: a process that dies keeps only its disks. Every start is a new incarnation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from msgspec.structs import replace

from rove.control.coordinator import Coordinator
from rove.data.events import DiskDone, OnDisk, Remember
from rove.data.log.segments.commands import Position, Publish
from rove.data.log.segments.commit import commit
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.reader import Reader
from rove.data.log.segments.settings import LogSettings
from rove.data.log.segments.stored import Stored, entries, lying
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Payload
from rove.model.ids import NodeId, Origin, name_of
from rove.sim.disk import SimDisk
from rove.sim.queries import COLUMNS

UNBOUNDED = 2**62  # data that waits for the disk is bounded by credit


class SimShelf:
    """A node's disks by folder."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.disks: dict[str, SimDisk] = {}
        self._marks: dict[str, Mark] = {}  # the commit mark of each folder when it was opened
        self._readers: dict[str, Reader] = {}
        self.slow_us = 0

    def open(self, folder: str, schema: pa.Schema, settings: LogSettings | None = None) -> Partition:
        disk = self.disk(folder)
        settings = replace(settings or LogSettings(), segment_bytes=8_192, pending_bytes=UNBOUNDED)
        partition = Partition.recover(folder, schema, disk.sizes(), disk.read, settings)
        self._marks[folder] = partition.mark()
        self._readers.pop(folder, None)
        commit(partition, disk, 0)
        return partition

    def folders(self, prefix: str) -> list[str]:
        return sorted(name for name, disk in self.disks.items() if name.startswith(f"{prefix}/") and disk.sizes())

    def lying(self, folder: str) -> Iterator[tuple[Position, Header, Stored]]:
        disk = self.disk(folder)
        return lying(disk, self._readers.setdefault(folder, Reader(disk)))

    def entries(self, folder: str) -> Iterator[tuple[Header, Payload | None]]:
        return entries(self.disk(folder), self._marks[folder])

    def readers(self, folder: str) -> dict[str, int]:
        return {}

    def disk(self, folder: str) -> SimDisk:
        if folder not in self.disks:
            self.disks[folder] = SimDisk(self._random)
        return self.disks[folder]

    def carry_out(self, order: OnDisk) -> DiskDone:
        """Execute the commands of a group."""
        disk, unpublished = self.disk(order.folder), ""
        for command in order.group.commands:
            try:
                disk.execute(command)
            except OSError as error:
                if not isinstance(command, Publish):
                    return DiskDone(order.folder, order.group.token, trouble=str(error))
                unpublished = str(error)
        return DiskDone(order.folder, order.group.token, unpublished=unpublished)

    def duration_us(self, order: OnDisk) -> int:
        disk = self.disk(order.folder)
        disk.slow_us = self.slow_us
        return sum(disk.duration_us(c) for c in order.group.commands)

    def crash(self, pending: list[OnDisk], power: bool) -> None:
        """The process dies. Some of its pending commands are still executed."""
        for order in pending:
            done = self._random.randint(0, len(order.group.commands))
            for command in order.group.commands[:done]:
                try:
                    self.disk(order.folder).execute(command)
                except OSError:
                    break
        if power:
            for folder in sorted(self.disks):
                self.disks[folder].crash()


@dataclass(slots=True)
class SimSource:
    """A source: how often it makes rows, how many it will make, and those it has made."""

    stream: str
    origin: Origin
    every_us: int
    rows: int
    left: int
    made: list[pa.RecordBatch] = field(default_factory=list)
    fed: dict[str, int] = field(default_factory=dict)  # by query, the first batch that was made for it
    waits: bool = False
    owed: bool = False  # a batch was due while the source had to wait
    ended: bool = False
    dead: bool = False  # it ended with its process; batches kept there are lost

    def successor(self, incarnation: int) -> SimSource:
        """The same source after a restart of its process: another origin, whose numbers begin at 0."""
        origin = Origin(f"{name_of(self.origin)}~{incarnation}")
        return SimSource(self.stream, origin, self.every_us, self.rows, self.left)


@dataclass(slots=True)
class SimNode:
    """A worker's process."""

    settings: WorkerSettings
    shelf: SimShelf | None
    sources: list[SimSource]
    skew_us: int  # how far its wall clock is off
    worker: Worker | None = None
    incarnation: int = 0
    kept: Remember | None = None
    pending: list[OnDisk] = field(default_factory=list)
    tick_us: int = -1

    @property
    def name(self) -> NodeId:
        return self.settings.node

    def start(self) -> Worker:
        self.incarnation += 1
        self.pending = []
        self.worker = Worker(self.settings, self.incarnation, self.shelf)
        self.sources += [s.successor(self.incarnation) for s in self.sources if s.dead and not s.ended]
        for source in self.sources:
            source.ended |= source.dead
            if not source.dead:
                self.worker.add_source(source.stream, source.origin, COLUMNS)
        return self.worker


@dataclass(slots=True)
class SimCoordinator:
    """The coordinator's process and its catalog, which stores records before anything else happens."""

    kept: dict[tuple[str, str], bytes] = field(default_factory=dict)
    machine: Coordinator | None = None

    def start(self) -> Coordinator:
        self.machine = Coordinator()
        self.machine.restore((kind, name, data) for (kind, name), data in self.kept.items())
        return self.machine
