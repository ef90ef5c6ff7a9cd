"""Rove as users have it: a wheel, installed in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def built_wheel(folder: Path) -> Path:
    """The wheel of this tree."""
    subprocess.run(["uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, wheel: Path, *flags: str) -> Path:
    """The folder of programs of an environment with the wheel."""
    where, python = folder / "venv", f"{sys.version_info[0]}.{sys.version_info[1]}"
    install = ["pip", "install", "--quiet", "--python", str(where / "bin/python"), *flags, str(wheel)]
    for command in (["venv", "--quiet", "--python", python, str(where)], install):
        subprocess.run(["uv", *command], check=True, timeout=300)
    return where / "bin"


def with_our_packages(folder: Path, wheel: Path) -> Path:
    """An environment with the wheel in which every package of this environment can be imported. Nothing is installed
    but the wheel, so it is made in a second. Our source is not found in it."""
    programs = environment(folder, wheel, "--no-deps")
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs
