"""The coordinator's records, in one SQLite file.

Law: a record is on the disk before any message about it is sent. The records of one event are one transaction,
committed before the event's messages are sent. A record that is not what was written is named, and not used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from rove.model.errors import DiskError
from rove.runtime.disk.disk import PRIVATE, make_private
from rove.runtime.disk.write_ahead import read_log, transactions_after

FORMAT = 3
_TABLES = """
CREATE TABLE IF NOT EXISTS records (
    kind TEXT, name TEXT, record BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""


class Catalog:
    """Records by kind and name. Used by one process at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            make_private(self.path.parent)
            # Only this user may read it. SQLite gives its other files the same permissions.
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, mode=PRIVATE)
            os.fchmod(descriptor, PRIVATE)  # it may have been made by something else
            os.close(descriptor)
            log = read_log(self.path)
            self._base = sqlite3.connect(self.path, isolation_level=None, timeout=1)
            self._open(log)
        except (sqlite3.Error, OSError) as error:
            raise self._broken("opened", error) from error

    def keep(self, kept: Iterable[tuple[str, str, bytes | None]]) -> None:
        """Store records, all or none. None deletes one. Of several records of one name the last counts."""
        try:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                last = {(kind, name): record for kind, name, record in kept}
                gone = [each for each, record in last.items() if record is None]
                rows = ((*each, record, _crc(*each, record)) for each, record in last.items() if record is not None)
                self._base.executemany("DELETE FROM records WHERE kind = ? AND name = ?", gone)
                self._base.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", rows)
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:  # if the disk is full, SQLite has rolled it back already
                    self._base.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._broken("written", error) from error

    def records(self) -> list[tuple[str, str, bytes]]:
        """All records, in a fixed order. SQLite does not notice every byte that has changed, so each has a checksum."""
        try:
            found = self._base.execute("SELECT kind, name, record, crc FROM records ORDER BY kind, name").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._broken("read", error) from error
        for kind, name, record, crc in found:
            if not isinstance(record, bytes) or _crc(str(kind), str(name), record) != crc:
                raise self._damaged(f"the record of {str(kind)!r} {str(name)!r} is not what was written")
        return [(kind, name, record) for kind, name, record, _ in found]

    def close(self) -> None:
        self._base.close()

    def _open(self, log: bytes) -> None:
        """Open the tables. `log` is the write-ahead log that the last process left."""
        base = self._base
        # The lock is held while we run, so that two coordinators cannot use one catalog.
        base.execute("PRAGMA locking_mode = EXCLUSIVE")
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        (format,) = base.execute("PRAGMA user_version").fetchone()
        if format not in (0, FORMAT):  # 0: it is new
            other = "a newer" if format > FORMAT else "an earlier"
            raise DiskError(
                f"catalog {self.path} is of {other} version of rove (format {format}, this one reads {FORMAT}); use "
                "that version, or remove the catalog to begin anew"
            )
        (found,) = base.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(found)
        _, frames, _ = base.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if (dropped := transactions_after(log, max(0, frames))) > 1:
            raise self._damaged(f"{dropped} changes at the end of {self.path.name}-wal cannot be read")
        base.execute("BEGIN IMMEDIATE")
        base.execute(_TABLES)
        base.execute(f"PRAGMA user_version = {FORMAT}")
        base.execute("COMMIT")

    def _damaged(self, what: str) -> DiskError:
        return DiskError(f"catalog {self.path} is damaged ({what}); restore it from a copy, or remove it")

    def _broken(self, what: str, error: Exception) -> DiskError:
        if "locked" in str(error):
            return DiskError(f"catalog {self.path} is used by another coordinator; stop it, or use another folder")
        if "full" in str(error):
            return DiskError(f"catalog {self.path} cannot be {what}: {error}; make room on the disk")
        return DiskError(
            f"catalog {self.path} cannot be {what}: {error}; restore it from a copy, or remove it to start over"
        )


def _crc(kind: str, name: str, record: bytes) -> int:
    return crc32(record, crc32(f"{kind}/{name}".encode()))
