"""An archive of Spark's classes in one file that Java maps, so that Spark starts faster.

Law: the archive is optional. It is used only if it is complete (its name holds its size, because Java would crash on
half an archive) and was made by this Java from these jars. Without an archive Spark starts as usual. After a process
that ran Spark has ended, a separate process of the lowest priority makes the archive from the classes that were loaded.
`ROVE_CLASS_ARCHIVE=off` switches it off.

    ~/.cache/rove/spark-4.3.0-java-17.0.15+6-1f0c….208703488.jsa
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import blake2b
from pathlib import Path
from shutil import disk_usage
from typing import Any

SWITCH = "ROVE_CLASS_ARCHIVE"
KEPT = 3  # archives, of other versions and environments; older ones are deleted
LOCK_FILE = "lock"
FREE_BYTES_MIN = 2 * 1024**3  # free disk space needed before anything is written
PATIENCE_S = 120.0  # how long to wait until Java has ended and its list of classes is complete
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")  # no message if an archive does not fit


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one Java and one Spark. It may not exist yet."""

    folder: Path
    key: str
    java: Path  # its home

    def options(self, record: bool) -> list[str]:
        """Java's options: to map the archive, or (with `record`) to list the classes it loads."""
        try:
            if (found := self.whole()) is not None:
                return [f"-XX:SharedArchiveFile={found}", "-Xshare:auto", *QUIET]
            if record and os.access(self.folder, os.W_OK) and disk_usage(self.folder).free > FREE_BYTES_MIN:
                return [f"-XX:DumpLoadedClassList={self._classes(os.getpid())}"]
        except OSError:
            pass
        return []

    def whole(self) -> Path | None:
        """The archive, if it exists and is complete."""
        return next((f for f in sorted(self.folder.glob(f"{self.key}.*.jsa")) if f.name == self._named(f).name), None)

    def build_at_exit(self, spark: Any) -> None:
        """When this process ends, start another process that makes the archive."""
        jvm, pid = spark._jvm, os.getpid()
        if not self._classes(pid).exists():  # this Java was started by another process
            return
        java_pid, class_path = jvm.ProcessHandle.current().pid(), jvm.System.getProperty("java.class.path")
        command = [sys.executable, "-m", __name__, str(self.folder), self.key, str(self.java), str(pid)]
        atexit.register(_leave_behind, [*command, str(java_pid), class_path])

    def build(self, pid: int, class_path: str) -> Path | None:
        """Make the archive from the classes that a process has loaded. None if Java fails."""
        classes, new = self._classes(os.getpid()), self.folder / f"{self.key}.{os.getpid()}.new"
        try:
            self._classes(pid).rename(classes)
            java, files = self.java / "bin" / "java", (f"-XX:SharedArchiveFile={new}", "-cp", class_path)
            made = _ran(java, "-Xshare:dump", "-Xmx512m", f"-XX:SharedClassListFile={classes}", *files)
            if not made or not _ran(java, "-Xshare:on", *files, "-version"):
                return None
            return new.rename(self._named(new))
        finally:
            classes.unlink(missing_ok=True)
            new.unlink(missing_ok=True)

    def _classes(self, pid: int) -> Path:
        """The file with the list of classes that a process's Java has loaded."""
        return self.folder / f"{self.key}.{pid}.classes"

    def _named(self, file: Path) -> Path:
        return self.folder / f"{self.key}.{file.stat().st_size}.jsa"


def class_archive(java: Path, environ: Mapping[str, str] = os.environ) -> ClassArchive | None:
    """The archive for a Java home and the installed Spark. None if there is no place for one, or it is switched off."""
    if environ.get(SWITCH) == "off":
        return None
    import pyspark

    jars = Path(pyspark.__file__).with_name("jars")
    try:
        version = _said(java / "release", "JAVA_RUNTIME_VERSION")
        digest = blake2b(f"{java} {jars} {jars.stat().st_mtime_ns}".encode(), digest_size=6).hexdigest()
        folder = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rove"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, no place to write, no description of this Java
        return None
    return ClassArchive(folder, f"spark-{pyspark.__version__}-java-{version}-{digest}", java) if version else None


def tidy(folder: Path, kept: int = KEPT) -> None:
    """Delete the oldest archives, and files that killed processes have left."""
    archives = sorted(folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
    begun = [*folder.glob("*.classes"), *folder.glob("*.new")]
    left = [f for f in begun if not _runs(int(f.name.split(".")[-2]))]
    for file in (*archives[kept:], *left):
        file.unlink(missing_ok=True)


def main(folder: str, key: str, java: str, pid: str, java_pid: str, class_path: str) -> None:
    """Wait for a process and its Java to end, then make the archive, unless another process makes it or has made it."""
    deadline = time.monotonic() + PATIENCE_S
    while (_runs(int(pid)) or _runs(int(java_pid))) and time.monotonic() < deadline:
        time.sleep(0.5)
    archive = ClassArchive(Path(folder), key, Path(java))
    with open(archive.folder / LOCK_FILE, "w") as lock, suppress(BlockingIOError):
        flock(lock, LOCK_EX | LOCK_NB)  # only one process makes an archive; the lists of others are deleted
        if not _runs(int(java_pid)) and archive.whole() is None:
            archive.build(int(pid), class_path)
        tidy(archive.folder)


def _leave_behind(command: list[str]) -> None:
    nowhere = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _ran(java: Path, *options: str) -> bool:
    """Run Java. Returns whether it succeeded."""
    nowhere = subprocess.DEVNULL
    return subprocess.run([java, *options], check=False, stdin=nowhere, stdout=nowhere, stderr=nowhere).returncode == 0


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _said(file: Path, name: str) -> str:
    """A value from Java's `release` file, without quotes; empty if it is missing."""
    lines = file.read_text().splitlines()
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith(f"{name}=")), "")


if __name__ == "__main__":
    os.nice(19)
    main(*sys.argv[1:])
