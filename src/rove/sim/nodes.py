"""Simulated processes: a machine, its disks, its clock, and whether it runs.

Law: a process that dies keeps only its disks. Every start has a number of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from msgspec.structs import replace

from rove.control.coordinator import Coordinator
from rove.control.deployment.dead.decision import Patience
from rove.data.events import DiskWork, Remember
from rove.data.settings import WorkerSettings
from rove.data.sources.positions import SourceAt
from rove.data.worker import Worker
from rove.model.ids import NodeId, Origin
from rove.sim.queries import COLUMNS
from rove.sim.shelf import SimShelf

NOWHERE = NodeId("")


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
    died: bool = False  # its process has died; a source that replays goes on in the next one
    replays: bool = False  # it reads a file: its batches can be made again, and it outlives its process
    at: SourceAt | None = None  # its position, on the disk
    next: int = 0  # the number of the next batch that it gives to its node

    def successor(self, start: int) -> SimSource:
        """The same source after a restart of its process: another origin, whose numbers begin at 0."""
        origin = replace(self.origin, start=start)
        return SimSource(self.stream, origin, self.every_us, self.rows, self.left)


@dataclass(slots=True)
class SimNode:
    """A worker's process."""

    settings: WorkerSettings
    shelf: SimShelf | None
    sources: list[SimSource]
    skew_us: int  # how far its wall clock is off
    worker: Worker | None = None
    start_number: int = 0  # it differs from every earlier start under this name
    kept: Remember | None = None
    pending: list[DiskWork] = field(default_factory=list)
    tick_us: int = -1
    left: bool = False  # it has left for good, with its disks
    jumped_us: int = 0  # how far its wall clock has jumped
    begins_us: int = 0  # it is not started before this moment
    place: NodeId = NOWHERE  # of two processes under one name, the second has another place in the world

    def __post_init__(self) -> None:
        self.place = self.place or self.settings.node  # its name, if no other process has it

    @property
    def name(self) -> NodeId:
        return self.settings.node

    @property
    def second(self) -> bool:
        """Whether another process has this name."""
        return self.place != self.settings.node

    def start(self) -> Worker:
        self.start_number += 1
        self.pending = []
        self.worker = Worker(self.settings, self.start_number, self.shelf is not None)
        self.sources += [s.successor(self.start_number) for s in self.sources if s.dead and not s.ended]
        for source in self.sources:
            source.ended |= source.dead
            if not source.dead:
                self.worker.add_source(source.stream, source.origin, COLUMNS, source.replays, source.at)
            if source.at is not None:
                source.next, source.waits, source.ended = source.at.next, True, False
        return self.worker


@dataclass(slots=True)
class SimCoordinator:
    """The coordinator's process and its catalog, which stores records before anything else happens."""

    kept: dict[tuple[str, str], bytes] = field(default_factory=dict)
    machine: Coordinator | None = None
    skew_us: int = 0  # how far its wall clock is off
    patience: Patience = field(
        default_factory=Patience
    )  # how long edges may be silent before their operators start elsewhere

    def be_patient(self, patience: Patience) -> None:
        """Wait this long for silent edges, from now on and after a restart."""
        self.patience = patience
        if self.machine is not None:
            self.machine.absence.deaths.patience = patience

    def start(self) -> Coordinator:
        self.machine = Coordinator()
        self.machine.absence.deaths.patience = self.patience
        self.machine.restore((kind, name, data) for (kind, name), data in self.kept.items())
        return self.machine
