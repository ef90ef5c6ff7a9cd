"""Makes an index again from its segment.

Law: a mended index is the index that was written, byte for byte, as far as the segment or the index still says what was
in it. Where both are unreadable, invalid bytes are written, so that readers notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from rove.data.log.segments import format as f
from rove.data.log.segments.carrier import Carried, Read, carried, schema_bytes, search
from rove.data.log.segments.commands import Position

UNREADABLE = b"\xff" * 8  # no record begins so


class Told(NamedTuple):
    """What a segment says of itself at its start: its head, as a body and read, and where its first group begins."""

    body: bytes
    head: f.Head
    end: int


@dataclass(frozen=True, slots=True)
class Repair:
    """What is made again of an index: the positions that only the segment knew, and the first one if the head was
    gone."""

    number: int
    restored: tuple[Position, ...]
    beheaded: Position | None

    def notice(self, safe: int, published: int) -> str:
        """What was mended; empty if a crash is enough to explain it: it came before entries were safe."""
        count = sum(position < safe for position in self.restored)
        headless = self.beheaded is not None and (self.beheaded < safe or self.number <= published)
        if not (count or headless):
            return ""
        file, segment = f.index_file(self.number), f.data_file(self.number)
        records = f"{count} record{'s' if count > 1 else ''} of it" if count else ""
        what = " and ".join(part for part in ("its head" if headless else "", records) if part)
        were = "were" if count + headless > 1 else "was"
        return f"{file} was damaged or gone; {what} {were} made again from {segment}"


@dataclass(frozen=True, slots=True)
class Index:
    """An index as it is on the disk, and as it should be."""

    number: int
    stored: bytes
    data: bytes
    repair: Repair | None = None


def told(number: int, files: Mapping[str, int], read: Read) -> Told | None:
    """What a segment says of itself; None if it is damaged, or of an earlier version."""
    file = f.data_file(number)
    schema = schema_bytes(read, file) if file in files else None
    found = None if schema is None else carried(read, file, len(schema))
    head = None if found is None else f.head_in(found.body)
    if found is None or schema is None or head is None or head.segment != number:
        return None
    same = (head.data_start, head.schema_crc) == (len(schema), crc32(schema))
    return Told(found.body, head, found.end) if same else None


def mended(number: int, end: Position | None, files: Mapping[str, int], read: Read) -> Index:
    """The index of a segment. `end` is the position at which the next segment begins, if that is known. Of the segment
    only the last group is read if the index is whole, and nothing if the end is known as well."""
    file = f.index_file(number)
    index = read(file, 0, files[file]) if file in files else b""
    headed = f.head_of(index, number)
    stretches = list(f.scan(index, f.PREAMBLE_BYTES if headed is None else headed[1], len(index)))
    if headed is not None and end == headed[0].position + len(stretches) and all(s.body for s in stretches):
        return Index(number, index, index)
    start = told(number, files, read)
    if headed is not None:
        first, opening = headed[0].position, index[: headed[1]]
    elif start is not None:
        first, opening = start.head.position, f.preamble(number, start.head.position) + f.record(start.body)
    else:
        return Index(number, index, _headless(number, index, stretches, end))
    if headed is None and stretches and stretches[0].start == f.PREAMBLE_BYTES:
        stretches = stretches[1:]  # the first stretch is the rest of a damaged head
    known, bad = _records(index, number, stretches, first)
    begin = start.end if start is not None else 0 if headed is None else headed[0].data_start
    at = begin if bad or headed is None else _last_group(known, begin)
    said = {entry.position: (entry, f.frame(entry)) for entry in _entries(number, at, files, read)}
    # A segment that was left damaged may say more than was kept: the next one begins before that.
    records = {p: r for p, (_, r) in (said | known).items() if p >= first and (end is None or p < end)}
    restored = tuple(p for p in records if p not in known)
    repair = Repair(number, restored, None if headed else first)
    return Index(number, index, _joined(opening, first, end, records, bad), repair)


def _records(
    index: bytes, number: int, stretches: list[f.Stretch], first: Position
) -> tuple[dict[Position, tuple[f.Entry, bytes]], dict[Position, bytes]]:
    """The records of an index by position, and bad bytes by the position that was expected there."""
    known: dict[Position, tuple[f.Entry, bytes]] = {}
    bad: dict[Position, bytes] = {}
    expected = first
    for stretch in stretches:
        entry = f.entry_of(stretch.body, number) if stretch.body else None
        record = index[stretch.start : stretch.end]
        if entry is None:
            bad[expected] = bad.get(expected, b"") + record
        else:
            if entry.position > expected:
                bad.setdefault(expected, UNREADABLE)  # records are missing between two good ones
            known[entry.position] = entry, record
            expected = Position(entry.position + 1)
    return known, bad


def _headless(number: int, index: bytes, stretches: list[f.Stretch], end: Position | None) -> bytes:
    """An index whose head is gone, also from its segment. Its first bytes name a position, so that readers find its
    records. Records at positions of the next segment were cut once, and are cut again."""
    found = [(s.start, entry) for s in stretches if s.body and (entry := f.entry_of(s.body, number)) is not None]
    cut = next((start for start, entry in found if end is not None and entry.position >= end), len(index))
    first = next((entry.position for start, entry in found if start < cut), None)
    if first is None or f.read_preamble(index[: f.PREAMBLE_BYTES]) is not None:
        return index[:cut]
    return f.preamble(number, first) + index[f.PREAMBLE_BYTES : cut]


def _last_group(known: Mapping[Position, tuple[f.Entry, bytes]], begin: int) -> int:
    """Where in the segment the manifest of the last known group begins."""
    entries = [entry for entry, _ in known.values()]
    group = entries[-1].group if entries else None
    before = next((entry for entry in reversed(entries) if entry.group != group), None)
    return begin if before is None else before.offset + before.length


def _entries(number: int, at: int, files: Mapping[str, int], read: Read) -> Iterator[f.Entry]:
    """The entries that a segment names, from the place of a manifest on. Where a manifest is damaged, the next one is
    searched for."""
    file = f.data_file(number)
    size = files.get(file, 0)
    while at < size:
        here = carried(read, file, at)
        found = None if here is None else _manifest(here, number)
        if found is None or here is None:
            later = ((c, m) for c in search(read, file, at) if (m := _manifest(c, number)) is not None)
            here, found = next(later, (None, None))
            if here is None or found is None:
                return
        at = here.end
        for entry in found.entries(here.end):
            at += entry.length
            yield entry


def _manifest(found: Carried, number: int) -> f.Manifest | None:
    """The manifest in a carrier, if it belongs where it is."""
    manifest = f.manifest_in(found.body)
    return manifest if manifest is not None and (manifest.segment, manifest.at) == (number, found.start) else None


def _joined(
    opening: bytes,
    first: Position,
    end: Position | None,
    records: Mapping[Position, bytes],
    bad: Mapping[Position, bytes],
) -> bytes:
    """An index of all known records. Bad bytes stay where the record after them is not known."""
    parts, expected = [opening], first
    for position in sorted(records):
        if position > expected:
            parts.append(bad.get(expected, UNREADABLE))
        parts.append(records[position])
        expected = Position(position + 1)
    if end is None:
        parts.append(bad.get(expected, b""))
    elif expected < end:
        parts.append(bad.get(expected, UNREADABLE))
    return b"".join(parts)
