"""Reads how many transactions SQLite's write-ahead log holds, to notice if SQLite drops some of them.

Law: SQLite reads the log up to the first damaged frame and drops the rest silently. A power cut can tear the last
transaction, which was not confirmed to anyone. If more than one is dropped, the log is damaged.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

# As in SQLite's documentation of the format: a header, then frames with one page each.
_HEADER = Struct(">8I")  # magic, version, page size, number of the checkpoint, two salts, two checksums
_FRAME = Struct(">6I")  # page, pages after a commit or 0, two salts, two checksums


def transactions_after(log: bytes, frames: int) -> int:
    """How many transactions end after the first `frames` frames. Frames of an earlier round have other salts. The salts
    may be damaged themselves, so those of the header and of the first frame are tried."""
    if len(log) < _HEADER.size + _FRAME.size:
        return 0
    header = _HEADER.unpack_from(log)
    size = _FRAME.size + _page_bytes(header[2], len(log))
    heads = [_FRAME.unpack_from(log, at) for at in range(_HEADER.size, len(log) - _FRAME.size + 1, size)]
    salts = {header[4:6], heads[0][2:4]}
    return max(sum(bool(head[1]) and head[2:4] == each for head in heads[frames:]) for each in salts)


def read_log(catalog: Path) -> bytes:
    """The write-ahead log of a catalog; nothing if there is none."""
    log = catalog.with_name(f"{catalog.name}-wal")
    return log.read_bytes() if log.exists() else b""


def _page_bytes(stored: int, most: int) -> int:
    """The size of a page. A damaged size is taken to be SQLite's default."""
    fits = 512 <= stored <= 65_536 and stored & (stored - 1) == 0
    return stored if fits and stored <= most else 4_096
