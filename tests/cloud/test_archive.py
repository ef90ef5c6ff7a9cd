"""Java starts from an archive of its classes if there is a complete one, and as usual if there is not."""

from __future__ import annotations

import os
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest

from rove.cloud.start.archive import LOCK_FILE, ClassArchive, class_archive, main, tidy
from rove.cloud.start.java import ensure_java

DEAD = 2**22 + 1  # no process has this number


@pytest.fixture
def archive(processes: None, tmp_path: Path) -> ClassArchive:
    """Where the archive of this Java and this Spark would be."""
    found = class_archive(ensure_java(), {"XDG_CACHE_HOME": str(tmp_path)})
    assert found is not None
    return found


def java(archive: ClassArchive, *options: str) -> str:
    """A small run of Java, and what it says."""
    command = [archive.java / "bin" / "java", *options, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def ended() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as done:
        return done.pid


def test_the_classes_of_one_run_are_the_archive_of_the_next(archive: ClassArchive) -> None:
    (recording,) = archive.options(record=True)
    assert archive.options(record=False) == []
    java(archive, recording)
    pid = ended()
    Path(recording.partition("=")[2]).rename(archive.folder / f"{archive.key}.{pid}.classes")
    main(str(archive.folder), archive.key, str(archive.java), str(pid), str(pid), "")
    (file,) = archive.folder.glob("*.jsa")
    assert file.name == f"{archive.key}.{file.stat().st_size}.jsa"
    options = archive.options(record=True)
    assert options[0] == f"-XX:SharedArchiveFile={file}"
    assert "source: shared objects file" in java(archive, *options, "-Xshare:on", "-Xlog:class+load")


def test_an_archive_that_is_not_whole_is_none(archive: ClassArchive) -> None:
    file = archive.folder / f"{archive.key}.1000.jsa"
    file.write_bytes(bytes(1_000))
    assert archive.whole() == file
    file.write_bytes(bytes(999))
    assert archive.whole() is None
    assert archive.options(record=True)[0].startswith("-XX:DumpLoadedClassList=")


def test_an_archive_that_does_not_fit_costs_neither_the_start_nor_a_word(archive: ClassArchive) -> None:
    file = archive.folder / f"{archive.key}.1000.jsa"
    file.write_bytes(b"no archive" * 100)
    assert java(archive, *archive.options(record=False)) == java(archive).replace(", sharing", "")


def test_a_list_that_java_cannot_use_leaves_nothing_behind(archive: ClassArchive) -> None:
    (archive.folder / f"{archive.key}.{DEAD}.classes").write_text("@half-a-line")
    main(str(archive.folder), archive.key, str(archive.java), str(DEAD), str(DEAD), "")
    assert [file.name for file in archive.folder.iterdir()] == [LOCK_FILE]


def test_only_one_is_made_at_a_time(archive: ClassArchive) -> None:
    classes = archive.folder / f"{archive.key}.{DEAD}.classes"
    classes.write_text("java/lang/Object id: 0")
    with open(archive.folder / LOCK_FILE, "w") as lock:
        flock(lock, LOCK_EX)
        main(str(archive.folder), archive.key, str(archive.java), str(DEAD), str(DEAD), "")
    assert classes.exists()
    assert archive.whole() is None


def test_old_archives_and_what_the_killed_have_left_go(tmp_path: Path) -> None:
    for age, name in enumerate(("a.1.jsa", "b.1.jsa", "c.1.jsa")):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (1_000 - age, 1_000 - age))
    for name in (f"a.{DEAD}.classes", f"a.{DEAD}.new", f"a.{os.getpid()}.classes"):
        (tmp_path / name).touch()
    tidy(tmp_path, kept=2)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.1.jsa", f"a.{os.getpid()}.classes", "b.1.jsa"]


@pytest.mark.usefixtures("processes")
def test_there_is_no_archive_where_there_is_no_place_for_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert class_archive(ensure_java(), {"XDG_CACHE_HOME": str(tmp_path / "file")}) is None
    assert class_archive(tmp_path, {"XDG_CACHE_HOME": str(tmp_path)}) is None


@pytest.mark.usefixtures("processes")
def test_there_is_no_archive_where_none_is_wanted(tmp_path: Path) -> None:
    assert class_archive(ensure_java(), {"XDG_CACHE_HOME": str(tmp_path), "ROVE_CLASS_ARCHIVE": "off"}) is None


def test_what_java_is_told_it_is_told_when_it_starts(spark: Any) -> None:
    management = spark._jvm.java.lang.management.ManagementFactory
    told = list(management.getRuntimeMXBean().getInputArguments())
    assert "-XX:TieredStopAtLevel=1" in told
    assert any(option.startswith("-Dlog4j2.configurationFile=") and "rove" in option for option in told)
