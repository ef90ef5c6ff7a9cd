"""Damage of a log, as errors that can also be kept and listed.

Law: damage is named by file, and by origin and seqs as far as they are known. The rest of the log is not affected.
"""

from __future__ import annotations

from rove.model.errors import DiskError
from rove.model.ids import Origin

UNCOUNTED = "are counted as no origin counts them; these counts are left out"


class Damaged(DiskError):
    """Bytes that were safe once and have changed."""

    def __init__(
        self,
        what: str,
        *,
        file: str,
        offset: int = 0,
        origin: Origin | None = None,
        seq: int | None = None,
        through: int | None = None,
    ) -> None:
        self.what, self.file, self.offset = what, file, offset
        self.origin, self.seq, self.through = origin, seq, through
        whose = "an entry whose name cannot be read" if origin is None else f"`{origin}` seqs {seq} to {through}"
        super().__init__(
            f"{file} at byte {offset}: {what}; it held {whose}; restore it from a copy or count it as lost"
        )


class EntriesGone(DiskError):
    """A reader asks for entries that retention has deleted."""

    def __init__(self, position: int, first: int) -> None:
        self.position, self.first = position, first
        super().__init__(
            f"entries {position} to {first - 1} were deleted before they were read; go on at {first} and count them as "
            "lost, or keep more (keep_us, keep_bytes) and attach the consumer"
        )


class TooMuchPending(DiskError):
    """Too much waits for the disk. The batch was not taken."""


class AlreadyOpen(DiskError):
    """Another writer has the partition."""
