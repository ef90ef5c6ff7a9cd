"""What a query does about damage in its log.

Law: damaged rows never reach Spark, and damage is never skipped silently. The query stops and says why, or it goes on
and leaves a note beside the log of what it skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rove.data.log.segments.damage import Damaged, EntriesGone
from rove.model.errors import DiskError

FOLDER = "quarantine"


def put(place: Path, data: bytes) -> None:
    """Write a small file atomically. It is not synced: after a power cut an older version is good enough."""
    place.parent.mkdir(exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.new")  # the dot hides it from readers that list the folder
    new.write_bytes(data)
    new.replace(place)


class Quarantine:
    """What to do about damage in one folder."""

    def __init__(self, folder: str | Path, skip: bool) -> None:
        self._folder, self._skip = Path(folder), skip

    def meet(self, damaged: Damaged, name: str, rows: int | None = None) -> None:
        """Stop, or leave a note under a name. The same damage always gives the same note."""
        if not self._skip:
            raise DiskError(
                f"{self._folder}: {damaged}. The query stops here; with option onDamage=skip it skips the "
                f"damage and notes it in {self._folder / FOLDER}"
            ) from damaged
        note = {
            "file": damaged.file,
            "offset": damaged.offset,
            "origin": None if damaged.origin is None else str(damaged.origin),
            "seq": damaged.seq,
            "through": damaged.through,
            "rows": rows,
            "what": damaged.what,
        }
        place = self._folder / FOLDER / f"{name}.json"
        if not place.exists():
            put(place, msgspec.json.encode(note))


def gone(folder: str | Path, error: EntriesGone) -> DiskError:
    """The error for entries that were deleted before this query had read them."""
    return DiskError(
        f"{folder}: entries {error.position} to {error.first - 1} were deleted before this query had read them. Start "
        "it with a new checkpoint to begin at the oldest entry that is left; the deleted ones count as lost. With "
        "option `consumer` the log keeps entries for its reader, unless keep_us or keep_bytes limit it"
    )
