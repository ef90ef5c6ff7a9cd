"""Entries of a log as columns. While an origin is away many entries are held, and every trigger selects among them.

Law: an entry without event times counts as older than every row, so only its position decides when it is admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rove.data.log.segments.format import Entry
from rove.model.clock import MICROS_MIN
from rove.model.ids import Origin

Entries: TypeAlias = np.ndarray[Any, Any]  # of `ENTRY`
UNKNOWN = -(2**63)  # an event time that is not in the header, only in the rows


class Place(NamedTuple):
    """One entry: the place of its rows, their event times, and their origin."""

    position: int
    segment: int
    offset: int
    length: int
    crc: int
    rows: int
    least: int  # no row is older …
    most: int  # … and none is newer
    low: int
    origin: int  # its number among `Names`
    seq: int
    through: int
    watermark: int
    produced_at: int


ENTRY = np.dtype([(name, "i8") for name in Place._fields])
NONE = np.zeros(0, ENTRY)


class Names:
    """Numbers for origins. An origin keeps its number."""

    def __init__(self) -> None:
        self.list: list[Origin] = []
        self._numbers: dict[Origin, int] = {}

    def number(self, origin: Origin) -> int:
        number = self._numbers.get(origin)
        if number is None:
            number = self._numbers[origin] = len(self.list)
            self.list.append(origin)
        return number


def columns_of(entries: Iterable[Entry], names: Names, timed: bool) -> Entries:
    """Entries as columns. If `timed`, event times that are not in the header are `UNKNOWN`."""
    found = [_place(entry, names.number(entry.header.origin), timed) for entry in entries]
    return np.array(found, ENTRY) if found else NONE


def places(entries: Entries) -> Iterator[Place]:
    """Columns as entries."""
    return map(Place._make, entries.tolist())


def _place(entry: Entry, origin: int, timed: bool) -> Place:
    header = entry.header
    least = most = MICROS_MIN
    if timed and header.rows:
        least = most = UNKNOWN
        if header.event_min is not None and header.event_max is not None:
            least, most = header.event_min, header.event_max
    return Place(
        position=entry.position,
        segment=entry.segment,
        offset=entry.offset,
        length=entry.length,
        crc=entry.crc,
        rows=header.rows,
        least=least,
        most=most,
        low=entry.low if timed else MICROS_MIN,
        origin=origin,
        seq=header.seq,
        through=header.through,
        watermark=header.watermark,
        produced_at=header.produced_at,
    )
