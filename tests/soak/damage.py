"""Flips bytes in the files of a node that is down.

Law: files whose loss can be named and accounted for are damaged on every node: what it remembers, its start, batches
that it kept for later, and the files of the queries that are there to be hurt.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.soak.queries import HURT

FILES_MAX = 3
OWN = ("remembered", "starts")


def damageable(disk: Path) -> list[Path]:
    """The files of a node that may be damaged."""
    found = [disk / name for name in OWN]
    found += [file for file in disk.glob("retention/*/*/*") if file.name != "lock"]
    for query in HURT:
        found += [file for file in disk.glob(f"memory/{query}/*") if file.name != "lock"]
        found += [file for file in disk.glob(f"log/{query}/*/*") if file.name != "lock"]
    return sorted(file for file in found if file.is_file() and file.stat().st_size)


def flip(random: Random, files: list[Path], most: int = FILES_MAX) -> list[str]:
    """Flip a few bytes in some of the files. Returns what was done."""
    told = []
    for file in random.sample(files, min(len(files), random.randint(1, most))):
        data = bytearray(file.read_bytes())
        places = [random.randrange(len(data)) for _ in range(random.choice((1, 1, 4)))]
        for place in places:
            data[place] ^= 1 << random.randrange(8)
        with open(file, "r+b") as out:
            out.write(data)
        told.append(f"{file.parent.parent.name}/{file.parent.name}/{file.name} at {places}")
    return told
