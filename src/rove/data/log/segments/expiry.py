"""Decides which segments are deleted.

Law: the oldest first, never the open one. Entries that an attached consumer needs are kept, unless they exceed the
user's limit on age or size; then the entries that the consumer misses are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rove.data.log.segments.commands import Position
from rove.data.log.settings import LogSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A segment that takes no more entries: positions `first` up to, not including, `end`."""

    number: int
    first: Position
    end: Position
    bytes: int
    newest_us: int


def expired(
    segments: Sequence[Sealed], consumers: Mapping[str, Position], open_bytes: int, settings: LogSettings, now_us: int
) -> list[Sealed]:
    """The segments to delete, oldest first."""
    needed = min(consumers.values(), default=None)
    total = open_bytes + sum(segment.bytes for segment in segments)
    gone: list[Sealed] = []
    for segment in segments:
        read = not settings.keep_consumed and needed is not None and segment.end <= needed
        too_old = settings.keep_us is not None and segment.newest_us < now_us - settings.keep_us
        too_much = settings.keep_bytes is not None and total > settings.keep_bytes
        if not (read or too_old or too_much):
            break
        gone.append(segment)
        total -= segment.bytes
    return gone


def missed(segment: Sealed, consumers: Mapping[str, Position]) -> dict[str, int]:
    """How many entries of a segment each consumer has not read."""
    return {
        name: segment.end - max(position, segment.first)
        for name, position in consumers.items()
        if position < segment.end
    }
