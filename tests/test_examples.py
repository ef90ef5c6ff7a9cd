"""The examples in docstrings and in the README run."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    ".".join(file.relative_to(folder).with_suffix("").parts)
    for folder, below in ((ROOT / "src", "rove"), (ROOT, "bench"))
    for file in sorted((folder / below).rglob("*.py"))
    if ">>> " in file.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed


def test_the_python_of_the_readme_runs(processes: None, tmp_path: Path) -> None:
    """All of it, in the order of the page, in a process of its own as a reader runs it."""
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(snippets) == 3
    file = tmp_path / "readme.py"
    file.write_text("\n".join(snippets))
    said = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert said.returncode == 0, said.stderr
    assert re.search(r"S41 +19 +3$", said.stdout, re.MULTILINE), said.stdout
    assert re.search(r"S41 +5 +9$", said.stdout, re.MULTILINE)
