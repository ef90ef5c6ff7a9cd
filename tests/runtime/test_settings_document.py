"""`docs/settings.md` lists every setting with its type, its default and its meaning, as the sources say it."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rove.runtime import settings
from rove.runtime.settings import PREFIX, SECTIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"
HEAD = f"""# Settings

This file is written by `pytest tests/runtime/test_settings_document.py --rewrite-docs`; do not edit it by hand.

Every command that starts a process takes `--settings FILE`, a TOML file with the sections below. An environment
variable overrides the file, a flag overrides both: `slots` of `[worker]` is `{PREFIX}WORKER__SLOTS`. An unknown setting
is an error that names the nearest one.
"""


def meanings() -> dict[tuple[str, str], str]:
    """The comment of every setting, by section and name: at the end of its line, or in the line above."""
    source = inspect.getsource(settings)
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for section in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for field in (node for node in section.body if isinstance(node, ast.AnnAssign)):
            lines = (*range(field.lineno, (field.end_lineno or field.lineno) + 1), field.lineno - 1)
            said = next((comments[line] for line in lines if line in comments), "")
            if isinstance(field.target, ast.Name):
                found[section.name, field.target.id] = said
    return found


def shown(field: Any, kind: str) -> str:
    if field.required:
        return f"none; {kind} needs it"
    made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(made).decode()}`"


def document() -> str:
    said, parts = meanings(), [HEAD]
    for name, section in SECTIONS.items():
        parts.append(f"\n## [{name}]\n\n{inspect.getdoc(section)}\n\n| setting | default | meaning |\n|---|---|---|\n")
        parts += [
            f"| `{field.name}` | {shown(field, name)} | {said[section.__name__, field.name]} |\n"
            for field in msgspec.structs.fields(section)
        ]
    return "".join(parts)


def test_every_setting_says_what_it_means() -> None:
    names = {section.__name__ for section in SECTIONS.values()}
    assert [key for key, meaning in meanings().items() if key[0] in names and not meaning] == []


def test_the_document_lists_the_settings_as_they_are(pytestconfig: pytest.Config) -> None:
    text = document()
    if pytestconfig.getoption("--rewrite-docs"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.exists(), "run with --rewrite-docs first"
    assert DOCUMENT.read_text() == text, "the settings differ from the document; run with --rewrite-docs"
