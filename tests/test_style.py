"""Sizes of files and folders, and names of files (`CONTRIBUTING.md`, Style)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "bench", "tests")
LINES_MAX = 500
FILES_MAX = 14  # of one folder, with its __init__.py
# Folders that list things of one kind, one in each file.
CATALOGUES = {"src/rove/cli", "src/rove/data/operators", "src/rove/plan/expressions/functions"}
VAGUE = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", SOURCES)
def test_no_file_is_longer_than_can_be_read_at_once(folder: str) -> None:
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in modules(folder)}
    assert not {name: count for name, count in lines.items() if count > LINES_MAX}, "look for the second noun"


def test_no_folder_hides_another() -> None:
    files = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules("src"))
    full = {folder for folder, count in files.items() if count > FILES_MAX}
    assert full <= CATALOGUES, "look for the files that belong together"
    assert full >= CATALOGUES, "a catalogue that fits is a folder like others"


@pytest.mark.parametrize("folder", SOURCES)
def test_a_file_is_named_after_what_it_holds(folder: str) -> None:
    names = {path: {*path.relative_to(ROOT).with_suffix("").parts} for path in modules(folder)}
    assert not [path for path, parts in names.items() if any(VAGUE & {*part.split("_")} for part in parts)]
