"""The documents name files, tests and commands that exist, and have no code that nothing runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rove import cli

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "rove"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIRST = {p.name for p in [*ROOT.iterdir(), *SOURCES.iterdir()] if p.is_dir() and not p.name.startswith((".", "__"))}
MADE_BY_COMMANDS = {"bench/out"}
# Kinds of code blocks, and the documents that may have them: what runs them reads these documents.
RUN_BY = {
    "sh": ("", "tests/e2e/test_shell_lines.py"),
    "python": (r"README\.md|docs/guides/.*", "tests/test_examples.py"),
    "text": (r"docs/guides/.*", "tests/test_examples.py, as what a guide prints"),
    "mermaid": ("", "nothing: it is a drawing"),
}

IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?(::\w+)?")
BLOCK = re.compile(r"^```(.*)\n(?:.*\n)*?```$", re.MULTILINE)
COMMAND = re.compile(r"(?:uv run )?rove ([\w|-].*)")
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
def test_every_code_block_is_of_a_kind_that_a_test_runs(document: Path) -> None:
    name = str(document.relative_to(ROOT))
    kinds = [kind.strip() for kind in BLOCK.findall(document.read_text())]
    assert [k for k in kinds if k not in RUN_BY or not re.fullmatch(RUN_BY[k][0] or ".*", name)] == []


@pytest.fixture(scope="module")
def commands() -> dict[tuple[str, ...], set[str]]:
    """The flags of each command. The command of a group has the name of the group before its own."""
    made: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.Typer, "__call__", lambda app: made.append(typer.main.get_command(app)))
        cli._everything()
    return dict(_flags(made[0], ()))


def _flags(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    yield path, {"--help", *(name for p in command.params for name in (*p.opts, *p.secondary_opts))}
    for name, each in getattr(command, "commands", {}).items():
        yield from _flags(each, (*path, name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_command_that_a_document_names_exists(document: Path, commands: dict[tuple[str, ...], set[str]]) -> None:
    asked = [found[1] for text in IN_BACKTICKS.findall(prose(document)) if (found := COMMAND.fullmatch(text))]
    assert [text for text in asked if not _exists(text, commands)] == []


def _exists(command: str, commands: dict[tuple[str, ...], set[str]]) -> bool:
    """Whether there is a command with all flags. `a|b` and `a, b` stand for several commands."""
    first, *words = command.replace(", ", "|").split()
    for name in first.split("|"):
        path = (name,) if not name.startswith("-") else ()
        if path + tuple(words[:1]) in commands:
            path += tuple(words[:1])
        flags = [word for word in (first, *words) if word.startswith("-")]
        if path not in commands or not set(flags) <= commands[path]:
            return False
    return True


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
