"""The catalog stores records, all of a group or none, through restarts and damage."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from rove.model.errors import DiskError
from rove.runtime.disk.catalog import FORMAT, Catalog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "catalog.sqlite"


def test_what_was_kept_is_there_after_a_restart(path: Path) -> None:
    catalog = Catalog(path)
    catalog.keep([("node", "edge1", b"one"), ("query", "q", b"plan"), ("node", "edge2", b"two")])
    catalog.keep([("node", "edge1", b"newer"), ("node", "edge2", None), ("node", "never", None)])
    catalog.close()
    assert Catalog(path).records() == [("node", "edge1", b"newer"), ("query", "q", b"plan")]


def test_nobody_else_can_read_the_catalog(path: Path) -> None:
    catalog = Catalog(path)
    catalog.keep([("node", "edge1", b"one")])
    assert {file.name: file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == dict.fromkeys(
        (file.name for file in path.parent.iterdir()), 0
    )
    assert path.parent.stat().st_mode & 0o077 == 0


def test_records_of_one_event_are_kept_all_or_none(path: Path) -> None:
    catalog = Catalog(path)
    with pytest.raises(DiskError, match="cannot be written"):
        catalog.keep([("node", "edge1", b"one"), ("node", None, b"two")])  # type: ignore[list-item]
    assert catalog.records() == []
    catalog.keep([("node", "edge1", b"one")])
    assert catalog.records() == [("node", "edge1", b"one")]


def test_a_full_disk_is_named_and_the_records_are_kept_when_there_is_room(path: Path) -> None:
    catalog = Catalog(path)
    catalog.keep([("node", "edge1", b"one")])
    large = [("node", "edge2", bytes(100_000))]
    (pages,) = catalog._base.execute("PRAGMA page_count").fetchone()
    catalog._base.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskError, match=r"cannot be written: database or disk is full; make room on the disk"):
        catalog.keep(large)
    assert catalog.records() == [("node", "edge1", b"one")]
    catalog._base.execute("PRAGMA max_page_count = 1000000")
    catalog.keep(large)
    assert len(catalog.records()) == 2


def test_a_second_coordinator_is_told_of_the_first(path: Path) -> None:
    first = Catalog(path)
    with pytest.raises(DiskError, match="used by another coordinator"):
        Catalog(path)
    first.close()
    Catalog(path).close()


@pytest.mark.parametrize(("format", "whose"), [(FORMAT + 1, "a newer"), (FORMAT - 1, "an earlier")])
def test_another_format_says_whose_it_is(path: Path, format: int, whose: str) -> None:
    Catalog(path).close()
    base = sqlite3.connect(path)
    base.execute(f"PRAGMA user_version = {format}")
    base.close()
    with pytest.raises(DiskError, match=rf"{path} is of {whose} version of rove \(format {format}"):
        Catalog(path)


def test_a_file_that_is_no_catalog_is_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(DiskError, match=f"catalog {path} cannot be opened"):
        Catalog(path)


def test_a_damaged_page_is_found(path: Path) -> None:
    catalog = Catalog(path)
    catalog.keep([("node", f"edge{n}", b"x" * 500) for n in range(200)])
    catalog.close()
    data = bytearray(path.read_bytes())
    data[8_192:12_288] = b"\xff" * 4_096
    path.write_bytes(data)
    with pytest.raises(DiskError, match=f"catalog {path}"):
        Catalog(path)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_byte_is_named_or_changes_nothing(path: Path, seed: int) -> None:
    random = Random(seed)
    catalog = Catalog(path)
    catalog.keep([("node", f"edge{n}", random.randbytes(300)) for n in range(100)])
    kept = catalog.records()
    catalog.close()
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    try:
        found = Catalog(path).records()
    except DiskError:
        return
    assert found == kept


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_byte_in_what_a_killed_coordinator_left_is_named_or_changes_nothing(path: Path, seed: int) -> None:
    random = Random(seed)
    catalog = Catalog(path)
    for n in range(20):
        catalog.keep([("node", f"edge{n}", random.randbytes(300))])
    left = path.parent.parent / "left"
    shutil.copytree(path.parent, left)  # as `kill -9` leaves it
    log = left / f"{path.name}-wal"
    data = bytearray(log.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    log.write_bytes(data)
    try:
        found = Catalog(left / path.name).records()
    except DiskError:
        return
    assert len(found) >= 19, "a power cut may tear the last transaction, and no other one"
    assert set(found) <= set(catalog.records())


def test_a_torn_last_transaction_is_no_damage(path: Path) -> None:
    catalog = Catalog(path)
    for n in range(5):
        catalog.keep([("node", f"edge{n}", bytes(300))])
    left = path.parent.parent / "left"
    shutil.copytree(path.parent, left)
    log = left / f"{path.name}-wal"
    log.write_bytes(log.read_bytes()[:-100])
    assert len(Catalog(left / path.name).records()) == 4


def test_a_catalog_that_others_could_read_is_private_from_now_on(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.touch(mode=0o644)
    path.chmod(0o644)
    Catalog(path).close()
    assert path.stat().st_mode & 0o077 == 0
