"""Recovers a partition from its files, after any kind of end.

Law: acknowledged entries are kept or named as damaged; only entries that cannot have been acknowledged are cut. A group
is written after the one before it is safe. So all entries before the last group found are safe, and so is everything
below the commit mark, if there is one. Bytes after that may be torn, missing, zero or garbage. What an index should say
and does not is made again from its segment first (`mending`); only what neither says is damage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from zlib import crc32

import pyarrow as pa

from rove.data.log.segments import checkpoint
from rove.data.log.segments import format as f
from rove.data.log.segments.carrier import Carrier, Read
from rove.data.log.segments.commands import START, Command, Delete, Position, Replace, Sync, SyncFolder, Truncate
from rove.data.log.segments.damage import UNCOUNTED, Damaged
from rove.data.log.segments.expiry import Sealed
from rove.data.log.segments.ledger import Ledger, untaken
from rove.data.log.segments.mending import Index, mended, told
from rove.data.log.segments.segment import Segment
from rove.model.errors import DiskError, SchemaMismatch

HEAD_BYTES = 64 * 1024  # most heads are smaller


@dataclass(slots=True)
class Recovered:
    """The content of the files, and what to do before anything is appended."""

    ledger: Ledger = field(default_factory=Ledger)
    sealed: list[Sealed] = field(default_factory=list)
    open: Segment | None = None
    number: int = 0  # of the segment to begin, if none is open
    position: Position = START
    committed: Position = START
    consumers: dict[str, Position] = field(default_factory=dict)
    checkpoints: checkpoint.Checkpoints = field(default_factory=checkpoint.Checkpoints)
    damage: list[Damaged] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)  # indexes that were damaged and are whole again
    closes: bool = False  # the open segment takes no more: it lacks new columns, or is of an earlier version


def recover(schema: pa.Schema, files: Mapping[str, int], read: Read) -> Recovered:
    """Read the index of every segment, and in the last segment also the rows that the commit mark does not cover."""
    found = Recovered()
    mark = f.read_mark(read(f.MARK_FILE, 0, f.MARK_BYTES)) if f.MARK_FILE in files else None
    numbers = _segments(found, mark, _read_consumers(found, files, read), files, read)
    repairs = []  # of indexes, without their bytes
    for number, following in pairwise(numbers):
        after = _head(following, files, read)
        end = None if after is None or following != number + 1 else after.position
        index = mended(number, end, files, read)
        repairs.append(index.repair)
        _check_sealed(found, index, after, following, files, read)
    safe = START
    if numbers:
        index = mended(numbers[-1], None, files, read)
        repairs.append(index.repair)
        segment = _open_last(found, index, schema, files, read)
        safe = _walk_last(found, segment, mark, index.data, files, read)
        _mend_last(found, segment, index, files)
    for origin in found.ledger.refused:
        found.damage.append(Damaged(f"rows of `{origin}` {UNCOUNTED}", file=f.index_file(numbers[-1]), origin=origin))
    published = -1 if mark is None else mark.segment
    found.mended += [text for repair in repairs if repair and (text := repair.notice(safe, published))]
    if mark is not None:
        _expect_marked(found, mark)
    found.committed = min(mark.position, found.position) if mark is not None else Position(0)
    _find_checkpoint(found, files, read)
    if found.commands:
        found.commands.append(SyncFolder())
    return found


def _find_checkpoint(found: Recovered, files: Mapping[str, int], read: Read) -> None:
    """The newest checkpoint. If a disk has lost entries that it had confirmed, the checkpoint may be ahead of those
    that are left. Then it is written again with their end: later entries get the positions of those that are gone."""
    oldest = found.sealed[0].first if found.sealed else found.position if found.open is None else found.open.first
    kept = checkpoint.CONSUMER in found.consumers or any(file in files for file in checkpoint.FILES)
    found.checkpoints, notices, damage = checkpoint.find(files, read, trimmed=kept and oldest > START)
    if damage:
        raise DiskError(f"{damage}, and earlier entries are deleted; restore the files, or stop the query")
    found.mended += notices
    if found.checkpoints.safe and any(each.file == f.CONSUMERS_FILE for each in found.damage):
        # Checkpoints are the only reader of such a log, and say again how far they are.
        found.damage = [each for each in found.damage if each.file != f.CONSUMERS_FILE]
        found.mended.append("the table of consumers was damaged, and is made again from the checkpoints")
    if found.checkpoints.newest > found.position:
        found.checkpoints = found.checkpoints.moved_to(found.position)


def _segments(
    found: Recovered, mark: f.Mark | None, first: int | None, files: Mapping[str, int], read: Read
) -> list[int]:
    """The segments that are there: those with an index, and those that say what belongs into it. Other rows are half
    deleted or half created, and go. `first` is the first segment that was not deleted, if that is known."""
    indexed = {n for file in files if (n := f.segment_of(file, ".index")) is not None}
    alone = [n for file in sorted(files) if (n := f.segment_of(file, ".arrows")) is not None and n not in indexed]
    made = [n for n in alone if n >= (first or 0) and told(n, files, read) is not None]
    numbers = sorted([*indexed, *made])
    if numbers and _never_made(numbers[-1], mark, files, read):
        found.commands += [Delete(f.index_file(numbers[-1])), Delete(f.data_file(numbers[-1]))]
        alone = [n for n in alone if n != numbers[-1]]
        numbers.pop()
    for number in (n for n in alone if n not in made and (numbers or mark is None)):
        published = mark is not None and numbers and numbers[-1] < number <= mark.segment
        if not numbers or (not numbers[0] <= number <= numbers[-1] and not published):
            _drop(found, number, numbers, first)
    return numbers


def _drop(found: Recovered, number: int, numbers: list[int], first: int | None) -> None:
    """Delete rows without an index, unless they should have one."""
    if numbers and first is not None and first <= number < numbers[0]:
        what = "the index is gone, and so is what the segment says of itself"
        found.damage.append(Damaged(what, file=f.index_file(number)))
    else:
        found.commands.append(Delete(f.data_file(number)))


def _head(number: int, files: Mapping[str, int], read: Read) -> f.Head | None:
    """The head of a segment, from its index or from itself."""
    file = f.index_file(number)
    if file in files:
        for length in (HEAD_BYTES, files[file]):
            if (found := f.head_of(read(file, 0, length), number)) is not None:
                return found[0]
    start = told(number, files, read)
    return None if start is None else start.head


def _never_made(number: int, mark: f.Mark | None, files: Mapping[str, int], read: Read) -> bool:
    """Whether a power cut came while the last segment was being created, before anything in it was acknowledged."""
    if (mark is not None and mark.segment >= number) or told(number, files, read) is not None:
        return False
    index = read(f.index_file(number), 0, files[f.index_file(number)])
    head = f.head_of(index, number)
    if head is not None and _schema_of(head[0], files, read) is not None:
        return False
    bodies = (s.body for s in f.scan(index, f.PREAMBLE_BYTES, len(index)) if s.body is not None)
    return len({e.group for b in bodies if (e := f.entry_of(b, number)) is not None}) < 2


def _schema_of(head: f.Head, files: Mapping[str, int], read: Read) -> bytes | None:
    file = f.data_file(head.segment)
    data = read(file, 0, head.data_start) if file in files else b""
    return data if len(data) == head.data_start and crc32(data) == head.schema_crc else None


def _read_consumers(found: Recovered, files: Mapping[str, int], read: Read) -> int | None:
    """The consumers. Returns the first segment that was not deleted; None if it is not known."""
    if f.CONSUMERS_FILE not in files:
        return 0  # it is written before anything is deleted
    table = f.consumers_of(read(f.CONSUMERS_FILE, 0, files[f.CONSUMERS_FILE]))
    if table is None:
        found.damage.append(Damaged("the table of consumers is unreadable; attach them again", file=f.CONSUMERS_FILE))
        return None
    found.consumers = {name: Position(position) for name, position in table.positions.items()}
    return table.first_segment


def _check_sealed(
    found: Recovered, mended: Index, after: f.Head | None, following: int, files: Mapping[str, int], read: Read
) -> None:
    """Name the damage in a segment that was complete once. The head of the next segment says what was in it, unless it
    was damaged before that was written. Then bytes that are no record, or a gap in the positions, say it at every
    start."""
    number, index = mended.number, mended.data
    file, rows_bytes = f.index_file(number), files.get(f.data_file(number), 0)
    if index != mended.stored:
        found.commands.append(Replace(file, index))
    head = f.head_of(index, number)
    found.position = _begins(index, found.position)
    if head is not None:
        found.ledger, found.position = Ledger(head[0].ledger), head[0].position
    stretches = list(f.scan(index, f.PREAMBLE_BYTES if head is None else head[1], len(index)))
    start, bad = found.position, [s for s in stretches if s.body is None]
    newest = next((e for s in reversed(stretches) if s.body and (e := f.entry_of(s.body, number))), None)
    reached = Position(start if newest is None else newest.position + 1)
    gap = head is not None and after is not None and reached < after.position
    short = _beyond(newest, rows_bytes)  # then the batches that are gone are named, each for itself
    if head is not None and not short and f.data_file(number) in files and _schema_of(head[0], files, read) is None:
        found.damage.append(Damaged("the head of the segment is unreadable", file=file))
    if bad or head is None or after is None or following != number + 1 or gap or short:
        for stretch in stretches:
            entry = f.entry_of(stretch.body, number) if stretch.body else None
            if entry is not None:
                found.ledger.take(entry.header)
                found.ledger.count(entry.header, entry.low)
                if _beyond(entry, rows_bytes):
                    found.damage.append(_damaged(entry, "the rows are missing"))
        where = file if bad or head is None or following == number + 1 else f.index_file(number + 1)
        at = bad[0].start if bad else 0
        missing = [] if after is None else untaken(after.ledger, found.ledger)
        found.damage += [
            Damaged("records are unreadable or gone", file=where, offset=at, origin=origin, seq=first, through=last)
            for origin, first, last in missing
        ]
        if head is None and not missing:
            found.damage.append(Damaged("the head of the index is unreadable", file=file))
        if not missing:
            found.damage += [Damaged("a record is unreadable", file=file, offset=s.start) for s in bad]
        if gap and not missing and not bad and after is not None:
            what = f"entries {reached} to {after.position - 1} were published and are gone"
            found.damage.append(Damaged(what, file=where))
    end = after.position if after is not None else reached
    newest_us = newest.at_us if newest is not None else 0
    size = rows_bytes + len(index)
    found.sealed.append(Sealed(number=number, first=start, end=end, bytes=size, newest_us=newest_us))
    found.position = end
    if after is not None:
        found.ledger = Ledger(after.ledger)


def _open_last(found: Recovered, index: Index, schema: pa.Schema, files: Mapping[str, int], read: Read) -> Segment:
    """The last segment without its entries, and the ledger at its head."""
    number, head, start = index.number, f.head_of(index.data, index.number), told(index.number, files, read)
    stored = None if head is None else _schema_of(head[0], files, read)
    found.position = _begins(index.data, found.position)
    if head is not None:
        found.ledger, found.position = Ledger(head[0].ledger), head[0].position
    segment = Segment(number, found.position, Carrier(schema))
    begin = start.end if start is not None else 0 if head is None else head[0].data_start
    segment.resume_at(found.position, begin, f.PREAMBLE_BYTES if head is None else head[1])
    if stored is None:
        segment.damaged = True
        found.damage.append(Damaged("the head of the segment is unreadable", file=f.index_file(number)))
    else:
        grown = _grown(schema, pa.ipc.read_schema(pa.py_buffer(stored)), f.data_file(number))
        found.closes = grown or start is None
    return segment


def _begins(index: bytes, reached: Position) -> Position:
    """The first position of a segment, as the first bytes of its index say it, also if its head is damaged. Readers go
    by it. So the positions of entries that are gone at the end of the segment before are not used again."""
    named = f.read_preamble(index[: f.PREAMBLE_BYTES])
    return reached if named is None else max(reached, named[1])


def _walk_last(
    found: Recovered, segment: Segment, mark: f.Mark | None, index: bytes, files: Mapping[str, int], read: Read
) -> Position:
    """Follow the last index to its end or to where it is torn. Returns the position before which all was safe."""
    rows_file = f.data_file(segment.number)
    stretches = list(f.scan(index, segment.index_end, len(index)))
    entries = [f.entry_of(s.body, segment.number) if s.body else None for s in stretches]
    safe = max((e.group for e in entries if e is not None), default=segment.position)
    marked, covered = START, 0  # the entries that the mark covers, and the bytes of the index
    if mark is not None and mark.segment == segment.number:
        safe, marked, covered = max(safe, mark.position), mark.position, mark.index_end

    def intact(entry: f.Entry) -> bool:
        if _beyond(entry, files.get(rows_file, 0)):
            return False
        if entry.position < marked or not entry.length:
            return True
        return crc32(read(rows_file, entry.offset, entry.length)) == entry.crc

    # A group stays or goes as a whole: its manifest, which is before its rows, names them all.
    whole = all(intact(entry) for entry in entries if entry is not None and entry.position >= safe)
    before = len(found.damage)
    for at, (stretch, entry) in enumerate(zip(stretches, entries, strict=True)):
        if entry is None or entry.position < segment.position or entry.offset < segment.data_end:
            if segment.position >= safe:
                break
            found.damage.append(_guess(index, stretch, segment.number))
            following = next((e.position for e in entries[at + 1 :] if e is not None), safe + 1)
            if following > safe or (following == safe and not whole):
                index_end = min(max(covered, stretch.start), stretch.end)
                segment.resume_at(Position(safe), segment.data_end, index_end)
                break
            continue
        if entry.position >= safe and not whole:
            break
        if entry.position < safe and not intact(entry):
            found.damage.append(_damaged(entry, "the rows are not what was written"))
        found.ledger.take(entry.header)
        found.ledger.count(entry.header, entry.low)
        segment.resume(entry, stretch.end)
    segment.damaged |= len(found.damage) > before
    return Position(safe)


def _mend_last(found: Recovered, segment: Segment, mended: Index, files: Mapping[str, int]) -> None:
    """Cut torn tails, and sync bytes that were written and perhaps not synced. Damaged rows are left for the user."""
    index, rows = f.index_file(segment.number), f.data_file(segment.number)
    whole = mended.data[: segment.index_end]
    kept = mended.stored.startswith(whole)
    if kept and len(mended.stored) > len(whole):
        found.commands.append(Truncate(index, segment.index_end))
    if files.get(rows, 0) > segment.data_end and not segment.damaged:
        found.commands.append(Truncate(rows, segment.data_end))
    found.commands += [Sync(file) for file in (rows, index) if file in files]
    if not kept:
        found.commands.append(Replace(index, whole))
    found.open, found.position, found.number = segment, segment.position, segment.number + 1


def _expect_marked(found: Recovered, mark: f.Mark) -> None:
    """Published entries that are in no file are gone. Their positions are not used again."""
    found.number = max(found.number, mark.segment + 1)
    if mark.position > found.position:
        what = f"entries {found.position} to {mark.position - 1} were published and are gone"
        found.damage.append(Damaged(what, file=f.index_file(mark.segment)))
        found.position = mark.position
        if found.open is not None:
            found.open.position, found.open.damaged = mark.position, True


def _grown(schema: pa.Schema, stored: pa.Schema, file: str) -> bool:
    """Whether columns were added since; anything else that changed is refused."""
    if stored.equals(schema):
        return False
    if all(schema.get_field_index(f.name) >= 0 and schema.field(f.name).type == f.type for f in stored):
        return True
    raise SchemaMismatch(
        f"{file} holds the columns {stored.to_string(show_field_metadata=False)!r}, not "
        f"{schema.to_string(show_field_metadata=False)!r}; columns may be added, but not changed or removed: use a "
        "new partition for the new ones"
    )


def _beyond(entry: f.Entry | None, rows_bytes: int) -> bool:
    return entry is not None and entry.length > 0 and entry.offset + entry.length > rows_bytes


def _damaged(entry: f.Entry, what: str) -> Damaged:
    header, file = entry.header, f.data_file(entry.segment)
    return Damaged(what, file=file, offset=entry.offset, origin=header.origin, seq=header.seq, through=header.through)


def _guess(index: bytes, stretch: f.Stretch, number: int) -> Damaged:
    """A record with a wrong CRC may still name its origin."""
    length = int.from_bytes(index[stretch.start : stretch.start + 4], "little")
    body = index[stretch.start + 8 : min(stretch.start + 8 + length, stretch.end)]
    entry = f.entry_of(body, number)
    file, what = f.index_file(number), "a record is unreadable"
    if entry is None:
        return Damaged(what, file=file, offset=stretch.start)
    header = entry.header
    return Damaged(what, file=file, offset=stretch.start, origin=header.origin, seq=header.seq, through=header.through)
