"""The versions that run here are those that `pyproject.toml` pins, so every clone runs the same ones."""

from __future__ import annotations

import tomllib
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
REMEDY = "run `make pins`, then `uv sync`"


def needed() -> set[str]:
    """Every package that the project and its tools need here, directly or through others."""
    found: set[str] = set()
    seen: set[str] = set()
    left = [Requirement(each) for each in PYPROJECT["dependency-groups"]["dev"]]
    while left:
        wanted = left.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        found.add(canonicalize_name(wanted.name))
        extras = ({"extra": extra} for extra in ("", *wanted.extras))
        below = [Requirement(each) for each in requires(wanted.name) or ()]
        for extra in extras:
            left += [each for each in below if each.marker is None or each.marker.evaluate(extra)]
    return found - {"rove"}


def test_every_package_has_the_version_that_is_pinned() -> None:
    pins = [Requirement(each) for each in PYPROJECT["tool"]["uv"]["constraint-dependencies"]]
    pinned = {pin.name: str(pin.specifier) for pin in pins if pin.marker is None or pin.marker.evaluate()}
    assert {name: f"=={version(name)}" for name in needed()} == {name: pinned.get(name) for name in needed()}, REMEDY


def test_pins_name_no_address() -> None:
    assert "://" not in "".join(PYPROJECT["tool"]["uv"]["constraint-dependencies"])
