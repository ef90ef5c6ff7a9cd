"""The bounds of a partition, each with its default."""

from __future__ import annotations

import msgspec

SECOND_US = 1_000_000


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How large segments grow, how much may wait for the disk, and how long entries are kept."""

    segment_bytes: int = 64 * 1024 * 1024
    segment_entries: int = 4_096  # a restart reads the whole index of the last segment, and takes as much memory
    segment_us: int = 3_600 * SECOND_US
    pending_bytes: int = 64 * 1024 * 1024  # rows and headers that wait for the disk; past it, append refuses
    keep_us: int | None = None  # delete older entries, read or not
    keep_bytes: int | None = None  # delete the oldest entries beyond this size, read or not
    keep_consumed: bool = False  # if False, delete entries that every attached consumer has read
    retry_us_min: int = 100_000
    retry_us_max: int = 10 * SECOND_US
    quarantine: int = 1_000  # damaged places that are listed one by one; more are counted
