"""The examples in docstrings and in the README run."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    ".".join(file.relative_to(folder).with_suffix("").parts)
    for folder, below in ((ROOT / "src", "rove"), (ROOT, "bench"))
    for file in sorted((folder / below).rglob("*.py"))
    if ">>> " in file.read_text()
]


def examples_in(file: Path) -> int:
    """How many lines begin an example in the docstrings of a file."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, documented)]
    return sum(len(doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")) for node in nodes)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert not result.failed
    assert result.attempted == examples_in(Path(str(module.__file__)))  # none is hidden, as under a decorator


@pytest.mark.slow
def test_the_python_of_the_readme_runs(programs: Path, tmp_path: Path) -> None:
    """All of it, in the order of the page, in a process of its own as a reader runs it, with the installed wheel."""
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(snippets) == 3
    file = tmp_path / "readme.py"
    file.write_text("\n".join([*snippets, "print(rove.__file__)"]))
    said = subprocess.run(
        [programs / "python", file], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert said.returncode == 0, said.stderr
    assert re.search(r"S41 +19 +3$", said.stdout, re.MULTILINE), said.stdout
    assert re.search(r"S41 +5 +9$", said.stdout, re.MULTILINE)
    assert str(programs.parent) in said.stdout.splitlines()[-1]  # not the source of this tree


ALL_EXAMPLES = """
import doctest, importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    assert "site-packages" in module.__file__, module.__file__
    assert not doctest.testmod(module).failed, name
"""


def test_the_examples_of_an_installed_wheel_run(programs: Path, tmp_path: Path) -> None:
    names = [name for name in MODULES if name.startswith("rove.")]
    command = [programs / "python", "-c", ALL_EXAMPLES, *names]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("guide", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda file: file.stem)
def test_the_python_of_a_guide_runs_and_prints_what_the_guide_says(guide: Path, programs: Path, tmp_path: Path) -> None:
    """In a process of its own, with the installed wheel."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", guide.read_text(), re.DOTALL)
    file = tmp_path / "guide.py"
    file.write_text("\n".join([*(text for kind, text in blocks if kind == "python"), "print(rove.__file__)"]))
    said = subprocess.run(
        [programs / "python", file], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert said.returncode == 0, said.stderr
    *printed, module = said.stdout.splitlines()
    assert "\n".join(printed) == "".join(text for kind, text in blocks if kind == "text").strip()
    assert str(programs.parent) in module  # not the source of this tree
