"""Write the exact version of every package that this project runs with into `pyproject.toml`, as constraints.

Constraints name versions and no addresses, so a clone gets the same versions from whichever index it uses. A package
that is pinned keeps its version, a new one gets its newest, one that nothing needs any more goes. With `--upgrade`
every package gets its newest version.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
BEGIN, END = "constraint-dependencies = [\n", "]\n"
EXPORT = "uv export --all-extras --all-groups --no-emit-project --no-hashes --no-annotate --no-header --quiet".split()


def main() -> None:
    if "--upgrade" in sys.argv[1:]:
        _write([])
    subprocess.run(["uv", "lock", *sys.argv[1:]], cwd=PYPROJECT.parent, check=True)
    exported = subprocess.run(EXPORT, cwd=PYPROJECT.parent, check=True, stdout=subprocess.PIPE, text=True)
    pins = [line.split(" ; ") for line in exported.stdout.splitlines()]
    versions = Counter(pin[0].split("==")[0] for pin in pins)
    # A marker says where a version is needed. It only matters where a package has several.
    _write([" ; ".join(pin if versions[pin[0].split("==")[0]] > 1 else pin[:1]) for pin in pins])


def _write(pins: list[str]) -> None:
    before, rest = PYPROJECT.read_text().split(BEGIN)
    after = rest[rest.index(END) + len(END) :]
    PYPROJECT.write_text(before + BEGIN + "".join(f'    "{pin}",\n' for pin in pins) + END + after)


if __name__ == "__main__":
    main()
