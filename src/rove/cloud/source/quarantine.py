"""Damage in a log, as a query meets it.

Law: nothing damaged reaches Spark, and nothing is passed over in silence: a query stops and says why, or leaves a note
beside the log of what it went without.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rove.data.log.segments.damage import Damaged, EntriesGone
from rove.model.errors import DiskError

FOLDER = "quarantine"


def put(place: Path, data: bytes) -> None:
    """Make a small file in one step. Not synced: after a power cut an older one does as well."""
    place.parent.mkdir(exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.new")  # hidden from whoever lists these files
    new.write_bytes(data)
    new.replace(place)


class Quarantine:
    """What to do about damage in one folder."""

    def __init__(self, folder: str | Path, skip: bool) -> None:
        self._folder, self._skip = Path(folder), skip

    def meet(self, damaged: Damaged, name: str, rows: int | None = None) -> None:
        """Stop, or leave a note under a name; the same one however often it is met."""
        if not self._skip:
            raise DiskError(
                f"{self._folder}: {damaged}. The query stops here; with option onDamage=skip it goes on without, and "
                f"notes what it lacks in {self._folder / FOLDER}"
            ) from damaged
        note = {
            "file": damaged.file,
            "offset": damaged.offset,
            "origin": damaged.origin,
            "seq": damaged.seq,
            "through": damaged.through,
            "rows": rows,
            "what": damaged.what,
        }
        place = self._folder / FOLDER / f"{name}.json"
        if not place.exists():
            put(place, msgspec.json.encode(note))


def gone(folder: str | Path, error: EntriesGone) -> DiskError:
    """What to say of entries that were deleted before this query had read them."""
    return DiskError(
        f"{folder}: entries {error.position} to {error.first - 1} were deleted before this query had read them. Start "
        "it with a new checkpoint to begin at the oldest that are left and count the others as lost; with option "
        "`consumer` the log waits for its reader, unless keep_us or keep_bytes tell it not to"
    )
