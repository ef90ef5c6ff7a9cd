"""Batches as they arrive at a log, and what a log says it holds."""

from __future__ import annotations

import random

import pyarrow as pa

from rove.data.log.segments.carrier import search
from rove.data.log.segments.commands import Disk, Write
from rove.data.log.segments.disk_work.commit import commit
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import Entry, data_file
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.ids import Origin
from rove.sim.disk import SimDisk

A, B = Origin("s", "a"), Origin("s", "b")
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows(origin: Origin, seq: int, count: int = 3) -> bytes:
    """Rows that say whose they are."""
    batch = pa.record_batch([pa.array(range(seq, seq + count)), pa.array([str(origin)] * count)], schema=SCHEMA)
    return bytes(batch.serialize())


def header(origin: Origin, seq: int, count: int = 3, through: int | None = None, *, late: bool = False) -> Header:
    last = seq if through is None else through
    return Header(origin=origin, seq=seq, through=last, rows=count, born=10 * (last - seq + 1), late=late)


def read_all(disk: Disk, position: int = 0) -> list[tuple[Entry, pa.RecordBatch | None]]:
    """Every committed entry, checked."""
    reader = Reader(disk, position)
    found = []
    while some := reader.entries(3):
        found += [(entry, reader.read(entry)) for entry in some]
    assert not reader.damage
    return found


def disk() -> SimDisk:
    return SimDisk(random.Random(7))


def filled(folder: SimDisk, seqs: int, settings: LogSettings | None = None) -> Partition:
    """A partition with so many batches of one origin, each a group of its own."""
    partition = Partition("p", SCHEMA, settings)
    for seq in range(seqs):
        partition.append(header(A, seq), rows(A, seq))
        commit(partition, folder, 1_000 + seq)
    return partition


def garble(folder: SimDisk, file: str, at: int) -> None:
    """Flip all bits of a byte."""
    folder.execute(Write(file, at, (bytes([folder.read(file, at, 1)[0] ^ 0xFF]),)))


def silence(folder: SimDisk, number: int) -> None:
    """Garble all that a segment says of itself, so that only its index knows what is in it."""
    for found in list(search(folder.read, data_file(number), 0)):
        garble(folder, data_file(number), found.end - 9)


def reopened(folder: SimDisk) -> Partition:
    return Partition.recover("p", SCHEMA, folder.sizes(), folder.read)
