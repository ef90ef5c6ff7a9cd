"""The documents name files and tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "rove"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIRST = {p.name for p in [*ROOT.iterdir(), *SOURCES.iterdir()] if p.is_dir() and not p.name.startswith((".", "__"))}
MADE_BY_COMMANDS = {"bench/out"}

IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?(::\w+)?")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def prose(document: Path) -> str:
    """The text without code blocks."""
    return re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)


def paths_in(document: Path) -> Iterator[str]:
    """Names of files, folders and tests in backticks: those with a slash that begin with a folder of ours."""
    for found in IN_BACKTICKS.findall(prose(document)):
        if "/" in found and PATH.fullmatch(found) and found.split("/")[0] in FIRST and found not in MADE_BY_COMMANDS:
            yield found


def exists(name: str) -> bool:
    path, _, test = name.partition("::")
    for base in (ROOT, SOURCES):
        for place in (base / path, base / f"{path}.py"):
            if place.exists():
                return not test or f"def {test}(" in place.read_text()
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    assert [name for name in paths_in(document) if not exists(name)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    links = [target for target in LINK.findall(prose(document)) if "://" not in target]
    assert [target for target in links if not (document.parent / target).exists()] == []


def test_every_word_of_the_glossary_has_a_file_or_says_that_there_is_none() -> None:
    rows = [line.strip("|").split("|") for line in prose(ROOT / "docs" / "glossary.md").splitlines() if line[:1] == "|"]
    words = [(word.strip(), file.strip()) for word, _, file in rows if word.strip() != "word" and "---" not in word]
    assert len(words) > 50
    assert [w for w, file in words if file != "not built yet" and not IN_BACKTICKS.findall(file)] == []
    files = [(w, name) for w, file in words for name in IN_BACKTICKS.findall(file)]
    assert [(w, name) for w, name in files if not (SOURCES / name).is_file()] == []


def test_the_decisions_are_all_in_their_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    assert [d.name for d in sorted(folder.glob("0*.md")) if f"]({d.name})" not in index] == []
