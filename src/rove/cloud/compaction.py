"""Puts the many small files of a table together into few, while its query may go on writing.

Law: at every moment the table has each of its rows once, for every reader that follows Spark's list of files
(`_spark_metadata`). One step swaps old files for new ones: the last compact file of that list is replaced, by a rename.
Numbers of micro-batches stay as they are, so the sink's own protocol goes on. Old files stay for readers that are open,
and are deleted only when the list can never name them again.

    plan ─► rewrite into _compaction ─► record ─► move the new files in ─► swap the list ─► later: delete old files

The record tells later what to delete: the new files if the list still names the old ones, else the old ones. A sink
that writes its next compact file from the list as it was before the swap brings the old files back. Then the new ones
go, and nothing was lost. So old files are kept until the sink has written a compact file after the swap. If the sink
wrote one while files were rewritten, it names the old files too, and the new files replace them there.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote, urlparse

import pyarrow.parquet as pq

from rove.cloud.tables import METADATA
from rove.model.errors import DiskError, SetupError
from rove.runtime.disk.shelf import keep_file

log = logging.getLogger(__name__)

WORK = "_compaction"  # Spark ignores names that begin so
COMPACT = ".compact"
VERSION = "v1"
SMALL_BYTES = 32 * 1024 * 1024  # files that are larger stay as they are
FILE_BYTES = 128 * 1024 * 1024  # of a new file, about
FILES_MIN = 8  # with fewer files a compaction saves too little
GRACE_S = 600.0  # how long readers that are open may still need old files
SWAPS_MAX = 5  # attempts to replace the list, if the sink writes its next one each time

Rewrite = Callable[[Sequence[Path], Path, int], None]  # these files, into a new folder, as so many files
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction has done: how many files became how many, and how many old ones were deleted. If it could do
    nothing, `hindered` says whether another one is at work, or the sink wrote its list again and again."""

    before: int = 0
    after: int = 0
    deleted: int = 0
    hindered: Literal["", "at work", "overtaken"] = ""


def spark_rewrite(spark: Any) -> Rewrite:
    """Rewrites with Spark, so that every type stays as Spark writes it."""

    def rewrite(files: Sequence[Path], folder: Path, count: int) -> None:
        frame = spark.read.parquet(*map(str, files))
        frame.coalesce(count).write.mode("overwrite").parquet(str(folder))

    return rewrite


def compact(
    folder: Path,
    rewrite: Rewrite,
    *,
    files_min: int = FILES_MIN,
    grace_s: float = GRACE_S,
    ended: bool = False,
    step: Step = lambda name: None,
) -> Compacted:
    """Compact one folder of a table, if it has at least `files_min` small files. Another compaction at work is left
    alone. With `ended` no query writes the table any more, so old files need not wait for its next compact file."""
    if not (folder / METADATA).is_dir():
        raise SetupError(f"{folder} is not a table that a query in Spark writes: it has no {METADATA}")
    with _alone(folder) as alone:
        if not alone:
            return Compacted(hindered="at work")
        deleted = _clean(folder, grace_s, ended)
        last = _last_compact(folder)
        if last is None:
            return Compacted(deleted=deleted)
        small = [line for line in _lines(last.read_text()) if line["size"] < SMALL_BYTES and line["action"] == "add"]
        if len(small) < max(2, files_min):
            return Compacted(deleted=deleted)
        names = _rewritten(folder, small, rewrite)
        step("rewritten")
        new = [_moved_name(last, n) for n in range(len(names))]
        record = folder / WORK / f"{time.time_ns()}.json"
        _keep(record, last, small, new)
        step("recorded")
        for name, to in zip(names, new, strict=True):
            (folder / WORK / "new" / name).rename(folder / to)
            _sync(folder / to)
        _sync(folder)
        step("moved")
        shutil.rmtree(folder / WORK / "new", ignore_errors=True)
        for _ in range(SWAPS_MAX):
            last = _last_compact(folder) or last
            _keep(record, last, small, new)
            if _swapped(last, small, [_line(folder / to, small[0]) for to in new], step):
                step("swapped")
                return Compacted(len(small), len(new), deleted)
        _delete(folder, new)  # no list has ever named them
        record.unlink()
        return Compacted(deleted=deleted, hindered="overtaken")


def small_files(folder: Path) -> int:
    """How many files a compaction of a folder would put together."""
    last = _last_compact(folder)
    return 0 if last is None else sum(line["size"] < SMALL_BYTES for line in _lines(last.read_text()))


def listed(folder: Path) -> list[str]:
    """The files of a table, as Spark reads its list: the last compact file, and the batches after it."""
    last = _last_compact(folder)
    first = -1 if last is None else int(last.stem)
    later = sorted(int(file.name) for file in (folder / METADATA).iterdir() if file.name.isdecimal())
    texts = [last] if last is not None else []
    texts += [folder / METADATA / str(number) for number in later if number > first]
    return [_file(line) for file in texts for line in _lines(file.read_text())]


def _rewritten(folder: Path, small: Sequence[dict[str, Any]], rewrite: Rewrite) -> list[str]:
    """Write the rows of files into new ones, and count them. Returns the names of the new files."""
    place, old = folder / WORK / "new", [folder / _file(line) for line in small]
    shutil.rmtree(place, ignore_errors=True)
    rewrite(old, place, max(1, sum(line["size"] for line in small) // FILE_BYTES))
    names = sorted(file.name for file in place.glob("[!._]*.parquet"))
    before, after = (
        sum(pq.read_metadata(file).num_rows for file in files) for files in (old, map(place.joinpath, names))
    )
    if before != after:
        raise DiskError(f"{folder}: {before} rows became {after}; the table stays as it is. Look at the disk")
    return names


def _clean(folder: Path, grace_s: float, ended: bool) -> int:
    """Delete what the list of files does not name and never will, of earlier compactions. Returns how many files."""
    deleted = 0
    for file in sorted((folder / WORK).glob("*.json")):
        record = json.loads(file.read_text())
        named = set(listed(folder))
        last = _last_compact(folder)
        over = ended or (last is not None and int(last.stem) > int(Path(record["compact"]).stem))
        swapped = named.isdisjoint(record["old"])  # if not, the swap was not made, or the sink has undone it
        if time.time() - record["at"] < grace_s or (swapped and not over):
            continue
        deleted += _delete(folder, [name for name in record["old" if swapped else "new"] if name not in named])
        file.unlink()
    return deleted


def _keep(record: Path, last: Path, small: Sequence[dict[str, Any]], new: Sequence[str]) -> None:
    """Write down which files may have to be deleted, and the list that is about to be replaced."""
    text = {"compact": last.name, "old": [_file(line) for line in small], "new": new, "at": time.time()}
    keep_file(record, json.dumps(text).encode())


def _delete(folder: Path, names: Sequence[str]) -> int:
    """Delete files with their checksums. Returns how many were there."""
    found = [name for name in names if (folder / name).exists()]
    for name in found:
        (folder / name).unlink()
        (folder / f".{name}.crc").unlink(missing_ok=True)
    _sync(folder)
    return len(found)


def _swapped(last: Path, old: Sequence[dict[str, Any]], added: Sequence[str], step: Step) -> bool:
    """Put new lines in the place of old ones in the list of files, by a rename; False if the sink has written its next
    list. Hadoop's checksum of the old list goes first: a file without one is read unchecked, and a wrong one would make
    the list unreadable."""
    gone, text = {line["path"] for line in old}, last.read_text()
    kept = [line for line in text.splitlines()[1:] if json.loads(line)["path"] not in gone]
    lines = [VERSION, *kept, *added]
    new = last.with_name(f".{last.name}.new")
    with open(new, "w") as opened:
        opened.write("\n".join(lines))
        opened.flush()
        os.fsync(opened.fileno())
    step("listed")
    if _last_compact(last.parent.parent) != last:
        new.unlink()
        return False
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    _sync(last.parent)
    step("unchecked")
    new.replace(last)
    _sync(last.parent)
    return True


def _last_compact(folder: Path) -> Path | None:
    found = [file for file in (folder / METADATA).glob(f"*{COMPACT}") if file.stem.isdecimal()]
    return max(found, key=lambda file: int(file.stem), default=None)


def _lines(text: str) -> Iterator[dict[str, Any]]:
    version, *lines = text.splitlines()
    if version != VERSION:
        raise DiskError(f"a list of files of Spark has version {version}, and this version of rove reads {VERSION}")
    return (json.loads(line) for line in lines if line)


def _file(line: dict[str, Any]) -> str:
    """The name of a file in its table's folder."""
    return unquote(urlparse(line["path"]).path).rpartition("/")[2]


def _moved_name(last: Path, number: int) -> str:
    return f"compacted-{last.stem}-{time.time_ns()}-{number}.parquet"


def _line(file: Path, like: dict[str, Any]) -> str:
    """The line of a new file, with the place of another one."""
    found = file.stat()
    place = like["path"].rpartition("/")[0]
    new = {
        "path": f"{place}/{quote(file.name)}",
        "size": found.st_size,
        "modificationTime": int(found.st_mtime * 1_000),
    }
    return json.dumps({**like, **new}, separators=(",", ":"))


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Hold the table against other compactions; False if one is at work."""
    (folder / WORK).mkdir(exist_ok=True)
    with open(folder / WORK / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
