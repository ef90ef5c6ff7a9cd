"""Finds Java 17 or newer for Spark, or installs it if that works unattended, or says in one line how to install it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

from rove.model.errors import SetupError

VERSION_MIN = 17
_PLACES = (
    "/usr/lib/jvm/*/bin/java",
    "/opt/homebrew/opt/openjdk*/bin/java",
    "/usr/local/opt/openjdk*/bin/java",
)
_INSTALLERS = (
    ("apt-get", ("apt-get", "install", "-y", "--no-install-recommends", "openjdk-17-jre-headless"), True),
    ("dnf", ("dnf", "install", "-y", "java-17-openjdk-headless"), True),
    ("apk", ("apk", "add", "openjdk17-jre-headless"), True),
    ("brew", ("brew", "install", "openjdk@17"), False),
)


def ensure_java() -> Path:
    """The home of a Java that Spark can use. Sets `JAVA_HOME`. Installs Java if it is missing and that is allowed."""
    found = find_java() or _install()
    os.environ["JAVA_HOME"] = str(found)
    return found


def find_java() -> Path | None:
    """A Java home on this machine that is new enough, `JAVA_HOME` first, or None."""
    candidates: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    for pattern in _PLACES:
        candidates += map(Path, sorted(glob(pattern)))
    return next((_home(java) for java in candidates if _version(java) >= VERSION_MIN), None)


def _home(java: Path) -> Path:
    return java.resolve().parent.parent


def _version(java: Path) -> int:
    """The major version of a java; 0 if it prints none."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', said)
    return int(match[1]) if match else 0


def _install() -> Path:
    for tool, command, as_root in _INSTALLERS:
        if not shutil.which(tool):
            continue
        if as_root and os.geteuid() != 0:
            raise SetupError(f"Spark needs Java {VERSION_MIN} or newer. Type: sudo {' '.join(command)}")
        print(f"Java {VERSION_MIN} is missing; installing it: {' '.join(command)}", file=sys.stderr, flush=True)
        if tool == "apt-get":
            subprocess.run(["apt-get", "update", "-qq"], check=False, stdout=sys.stderr)
        done = subprocess.run(command, check=False, stdout=sys.stderr)
        found = find_java()
        if done.returncode == 0 and found:
            return found
        raise SetupError(
            f"Spark needs Java {VERSION_MIN} or newer, and installing it failed. Type: {' '.join(command)}"
        )
    raise SetupError(f"Spark needs Java {VERSION_MIN} or newer. Install it and set JAVA_HOME to it")
