"""One partition of the log: takes batches once, asks for disk work, and says what is safe.

Law: a batch is acknowledged when its rows, its index record and the names of their files are synced, not before. One
group of batches is in flight at a time. A group that fails is tried again later, byte for byte the same.

A duplicate is as safe as the batches before it: acknowledge it once `committed` has reached the `end` at its arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa
from msgspec.structs import replace

from rove.data.log.segments import checkpoint
from rove.data.log.segments.carrier import Carrier
from rove.data.log.segments.checkpoint import Checkpoint, Checkpoints
from rove.data.log.segments.commands import Command, Delete, Group, Position, Publish, Replace, SyncFolder
from rove.data.log.segments.damage import Damaged, TooMuchPending
from rove.data.log.segments.expiry import Sealed, expired, missed
from rove.data.log.segments.format import (
    CONSUMERS_FILE,
    MARK_FILE,
    Consumers,
    Entry,
    Head,
    Mark,
    data_file,
    frame,
    index_file,
    mark_bytes,
)
from rove.data.log.segments.ledger import Ledger
from rove.data.log.segments.recovery import recover
from rove.data.log.segments.segment import Segment
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.clock import MICROS_MIN
from rove.model.errors import DataError, DiskError, must
from rove.model.ids import Origin
from rove.model.spans import Spans, union

HEADER_BYTES = 256  # the bytes counted for a waiting header


@dataclass(slots=True, kw_only=True)
class _Flight:
    """A group in flight, or waiting to be tried again."""

    commands: list[Command]
    repair: list[Command]  # executed before another attempt
    sealed: list[Sealed]
    end: Position
    bytes: int
    entries: tuple[Entry, ...] = ()
    token: int = 0
    failed: bool = False
    published: bool = True
    mends: bool = False  # it makes an index whole again
    checkpoint: Position | None = None  # that of the checkpoint in it


class Partition:
    """The state machine: `append`, then `flush`, execute the group, then `synced` or `failed`."""

    def __init__(self, name: str, schema: pa.Schema, settings: LogSettings | None = None) -> None:
        _refuse_dictionaries(name, schema)
        self.name, self.schema, self.settings = name, schema, settings or LogSettings()
        self.ledger = Ledger()
        self.end = self.committed = Position(0)
        self.pending_bytes = 0  # bytes that wait for the disk
        self.duplicates = self.trimmed = self.failures = self.damaged = 0
        self.trouble: str | None = None
        self.quarantine: list[Damaged] = []
        self.mended: list[str] = []  # indexes that were damaged and were made again from their segments
        self.consumers: dict[str, Position] = {}
        self.missed: dict[str, int] = {}  # entries deleted before a consumer had read them
        self.segments: list[Sealed] = []
        self.landed: tuple[Entry, ...] = ()  # the entries of the last synced group
        self.checkpoints = Checkpoints()
        self._schema, self._carrier = schema.serialize().to_pybytes(), Carrier(schema)
        self._now_us = self._retry_us = self._retry_after_us = self._token = self._number = 0
        self._flight: _Flight | None = None
        self._published = self._consumers_stored = True
        self._closing: list[Segment] = []
        self._open = self._new_segment()

    @classmethod
    def recover(
        cls,
        name: str,
        schema: pa.Schema,
        files: Mapping[str, int],
        read: Callable[[str, int, int], bytes],
        settings: LogSettings | None = None,
    ) -> Partition:
        """Recover a partition from its files. Its first group cuts torn tails; batches may be appended before that."""
        partition = cls(name, schema, settings)
        found = recover(schema, files, read)
        partition.ledger, partition.segments, partition.consumers = found.ledger, found.sealed, found.consumers
        partition.quarantine = found.damage[: partition.settings.quarantine]
        partition.damaged, partition.mended = len(found.damage), found.mended
        partition.checkpoints = found.checkpoints
        partition.end, partition.committed = found.position, found.committed
        commands, partition._number = found.commands, found.number
        if found.open is None:
            partition._open = partition._new_segment()
        else:
            partition._open = found.open
            commands.append(partition._publish(found.open, found.position))
            if found.open.damaged or found.closes:
                partition._roll()
        if commands:
            mends = any(isinstance(command, Replace) for command in commands)
            partition._flight = _Flight(
                commands=commands, repair=[], sealed=[], end=found.position, bytes=0, failed=True, mends=mends
            )
        return partition

    @property
    def file_bytes(self) -> int:
        """The bytes of its files, without waiting entries. O(segments)."""
        return self._open.data_end + self._open.index_end + sum(segment.bytes for segment in self.segments)

    @property
    def recovers(self) -> bool:
        """Whether disk work of recovery, or of a later group, is not done yet."""
        return self._flight is not None

    @property
    def unmended(self) -> bool:
        """Whether an index is still damaged, so that readers would miss what it says."""
        return self._flight is not None and self._flight.mends

    @property
    def damage(self) -> str:
        """What recovery found damaged; empty if nothing was."""
        if not self.damaged:
            return ""
        more = f"; {self.damaged - 1} more places are damaged" if self.damaged > 1 else ""
        return f"{self.quarantine[0] if self.quarantine else 'some places are damaged'}{more}"

    def damaged_names(self) -> dict[Origin, Spans]:
        """The batches that were damaged, as far as their names are known. O(damage)."""
        found: dict[Origin, list[Spans]] = {}
        for each in self.quarantine:
            if each.origin is not None and each.seq is not None and each.through is not None:
                found.setdefault(each.origin, []).append((each.seq, each.through + 1))
        return {origin: union(sorted(spans)) for origin, spans in found.items()}

    def mark(self) -> Mark:
        """The end of the partition right after recovery, whether or not readers were told yet."""
        segment = self._closing[-1] if self._closing else self._open
        return Mark(segment.number, segment.index_end, segment.data_end, self.end)

    def append(
        self, header: Header, payload: bytes | memoryview | pa.Buffer | None = None, low: int = MICROS_MIN
    ) -> Position | None:
        """Take a batch, its rows encoded by `RecordBatch.serialize` or packed. Returns its position, or None if it was
        taken before.

        `low` is for readers: the low watermark of the output.
        """
        rows = None if payload is None else memoryview(payload).cast("B")
        size = check_rows(header, rows)
        if self.pending_bytes + size > self.settings.pending_bytes and self.pending_bytes:
            raise TooMuchPending(
                f"log {self.name}: {self.pending_bytes} bytes wait for the disk ({self.trouble or 'it is slow'}); "
                f"`{header.origin}` seq {header.seq} was not taken, send it again later"
            )
        segment = self._open
        if segment.count and (
            segment.bytes + size > self.settings.segment_bytes or segment.count >= self.settings.segment_entries
        ):
            segment = self._roll()
        parts = self.ledger.take(header)
        if not parts:
            self.duplicates += 1
            return None
        if parts[0] != (header.seq, header.through):
            return self._append_parts(header, parts, low)
        return self._add(header, rows, size, low)

    def flush(self, now_us: int) -> Group | None:
        """The disk work for all waiting entries; None while a group is in flight or its next attempt is not due."""
        self._now_us = max(self._now_us, now_us)
        if self._flight is None:
            self._flight = self._take_off(now_us)
            again: list[Command] = []
        else:
            if not self._flight.failed or now_us < self._retry_us:
                return None
            again = self._flight.repair
        if self._flight is None:
            return None
        self._token += 1
        self._flight.token, self._flight.failed, self._flight.published = self._token, False, True
        return Group(self._token, (*again, *self._flight.commands))

    def synced(self, token: int) -> range:
        """A group was executed. Returns the positions that are safe now."""
        flight = self._landed(token)
        self._flight = None
        self.pending_bytes -= flight.bytes
        self.segments += flight.sealed
        safe = range(self.committed, flight.end)
        self.landed = flight.entries
        self.committed, self._published = flight.end, flight.published
        if self._published:
            self.trouble, self._retry_after_us = None, 0
        if flight.checkpoint is not None and (before := self.checkpoints.landed(flight.checkpoint)) is not None:
            self.consumed(checkpoint.CONSUMER, before)
        return safe

    def failed(self, token: int, error: str) -> None:
        """A group failed. It is tried again later, and nothing of it is safe."""
        self._landed(token).failed = True
        self._back_off(error)

    def unpublished(self, token: int, error: str) -> None:
        """Readers could not be told of a group that is safe. They are told later."""
        self._landed(token).published = False
        self._back_off(error)

    def undeleted(self, error: str) -> None:
        """Deletes failed. The remaining files are found when the partition is opened again."""
        self.failures += 1
        self.trouble = error

    def consumed(self, consumer: str, position: Position) -> None:
        """A consumer no longer needs entries before a position. A new consumer is attached."""
        if consumer not in self.consumers:
            self._consumers_stored = False
        self.consumers[consumer] = max(self.consumers.get(consumer, position), position)

    @property
    def keeps(self) -> bool:
        """Whether a checkpoint is still to be written."""
        return self.checkpoints.waits is not None or (self._flight is not None and self._flight.checkpoint is not None)

    def keep(self, position: Position, body: bytes) -> bool:
        """Write a checkpoint of all entries before a position, with the next group. Returns whether it is small enough.
        Entries below the checkpoint before it are not needed once it is written."""
        if len(body) > checkpoint.CHECKPOINT_BYTES_MAX:
            return False
        self.checkpoints.waits = Checkpoint(position, body)
        return True

    def detach(self, consumer: str) -> None:
        """A consumer will not come back, so nothing is kept for it."""
        if self.consumers.pop(consumer, None) is not None:
            self._consumers_stored = False

    def retire(self, now_us: int) -> list[Command]:
        """The deletes of segments that are not needed. The table of consumers says so first, so that rows without an
        index are known to be half deleted."""
        if self._closing or (self._flight is not None and self._flight.sealed):
            return []  # the segment whose head sums up the others is not safe yet
        open_bytes = self._open.data_end + self._open.index_end
        gone = expired(self.segments, self.consumers, open_bytes, self.settings, now_us)
        if not gone:
            return []
        del self.segments[: len(gone)]
        commands: list[Command] = [self._remember_consumers()]
        for segment in gone:
            for consumer, entries in missed(segment, self.consumers).items():
                self.missed[consumer] = self.missed.get(consumer, 0) + entries
            commands += [Delete(index_file(segment.number)), SyncFolder(), Delete(data_file(segment.number))]
        return commands

    def validate(self) -> None:
        """What is committed was appended, and what waits is counted. O(ranges beyond gaps)."""
        flight = self._flight
        end = self.end if flight is None else flight.end
        must(self.committed <= end <= self.end, "what is committed was in flight and appended", self.name, end)
        sent = 0 if flight is None else flight.bytes
        must(0 <= sent <= self.pending_bytes, "what is in flight is waited for", self.name, sent, self.pending_bytes)
        waits = self.pending_bytes if self.committed == self.end else 0
        must(waits == 0, "nothing waits when all is committed", self.name, waits)
        self.ledger.frontier.validate()
        self.ledger.late.validate()

    def _add(self, header: Header, rows: memoryview | None, size: int, low: int) -> Position:
        self.ledger.count(header, low)
        self._open.add(header, rows, low)
        self.pending_bytes += size + HEADER_BYTES
        position = self.end
        self.end = Position(position + 1)
        return position

    def _append_parts(self, header: Header, parts: list[tuple[int, int]], low: int) -> Position:
        """Append the new parts of a merged header. Its counts cannot be split, so they stay with the first part."""
        self.trimmed += 1
        position = self.end
        for seq, through in parts:
            position = self._add(replace(header, seq=seq, through=through), None, 0, low)
            header = replace(header, born=0, evicted=0, lost=0, faulted=0, belated=0)
        return position

    def _take_off(self, now_us: int) -> _Flight | None:
        oldest_us = self._open.oldest_us
        if oldest_us and now_us - oldest_us >= self.settings.segment_us:
            self._roll()
        group = self.committed
        handed = [h for s in (*self._closing, self._open) if (h := s.hand_out(group, now_us)) is not None]
        commands: list[Command] = []
        if not self._consumers_stored:
            commands.append(self._remember_consumers())
            self._consumers_stored = True
        kept = self.checkpoints.waits
        commands += self.checkpoints.take_off()
        for part in handed:
            commands += part.write_rows()
        for part in handed:
            commands += part.write_index()
        if not commands and (self._published or now_us < self._retry_us):
            return None
        sealed = [segment.as_sealed() for segment in self._closing]
        repair = [command for part in reversed(handed) for command in part.repair()]
        commands.append(self._publish(self._open, self.end))
        entries = tuple(entry for part in handed for entry in part.entries)
        flight = _Flight(
            commands=commands,
            repair=repair,
            sealed=sealed,
            end=self.end,
            bytes=self.pending_bytes,
            entries=entries,
            checkpoint=None if kept is None else kept.position,
        )
        self._closing = []
        return flight

    def _publish(self, segment: Segment, end: Position) -> Publish:
        return Publish(MARK_FILE, mark_bytes(Mark(segment.number, segment.index_end, segment.data_end, end)))

    def _remember_consumers(self) -> Replace:
        """Segments before the first that is kept are deleted, or about to be."""
        first = self.segments[0] if self.segments else (*self._closing, self._open)[0]
        return Replace(CONSUMERS_FILE, frame(Consumers(dict(self.consumers), first.number)))

    def _roll(self) -> Segment:
        self._open.sealed = True
        self._closing.append(self._open)
        self._open = self._new_segment()
        return self._open

    def _new_segment(self) -> Segment:
        number, self._number = self._number, self._number + 1
        segment = Segment(number, self.end, self._carrier)
        head = Head(
            segment=number,
            position=self.end,
            data_start=len(self._schema),
            schema_crc=crc32(self._schema),
            at_us=self._now_us,
            ledger=self.ledger.table(),
        )
        segment.create(self._schema, head)
        return segment

    def _landed(self, token: int) -> _Flight:
        if self._flight is None or self._flight.failed or self._flight.token != token:
            raise DiskError(f"log {self.name}: group {token} is not in flight; answer the group that flush gave last")
        return self._flight

    def _back_off(self, error: str) -> None:
        self.failures += 1
        self.trouble = error
        least, most = self.settings.retry_us_min, self.settings.retry_us_max
        self._retry_after_us = min(max(2 * self._retry_after_us, least), most)
        self._retry_us = self._now_us + self._retry_after_us


def check_rows(header: Header, payload: bytes | memoryview | pa.Buffer | None) -> int:
    """Refuse rows that do not fit their header. Returns their bytes."""
    rows = None if payload is None else memoryview(payload).cast("B")
    size = 0 if rows is None else rows.nbytes
    if (header.rows > 0) != (size > 0) or (rows is not None and not _fits(header, rows)):
        raise DataError(
            f"`{header.origin}` seqs {header.seq} to {header.through} have {header.rows} rows in {size} bytes; "
            "rows come as one record batch message, a multiple of 8 bytes, under one seq"
        )
    return size


def _fits(header: Header, rows: memoryview) -> bool:
    message = header.packed or (rows.nbytes % 8 == 0 and bytes(rows[:4]) == b"\xff\xff\xff\xff")
    return header.seq == header.through and bool(message)


def _refuse_dictionaries(name: str, schema: pa.Schema) -> None:
    fields = list(schema)
    while fields:
        kind = fields.pop().type
        if pa.types.is_dictionary(kind):
            raise DataError(f"log {name}: a column is dictionary-encoded, which a log cannot hold; decode it first")
        fields += [kind.field(i) for i in range(kind.num_fields)]
