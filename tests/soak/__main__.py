"""`python -m tests.soak --minutes 60 --seed 7`: real processes for an hour, with every fault that we can make.

A coordinator, a gateway, 5 edges and 20 devices with keys and disks; one edge has no disk. Seven queries: two without
state, windows on devices and on edges, a join, a running count. Processes are killed and stopped, disks are full, bytes
of files are flipped, and a thief with a device's key sends forged frames and reports. The end of all queries is the
gateway's log; Spark has tests of its own.

The exit code is 0 if nothing is wrong. If something is, the folder with all logs is kept, and the command that draws
the same faults again is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tests.soak.run import Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Real processes under every fault.")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long faults happen")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults; default: from the clock")
    parser.add_argument("--folder", type=Path, default=None, help="for disks and logs; it is kept")
    given = parser.parse_args()
    if given.seed is None:
        given.seed = time.time_ns() // 1_000_000 % 1_000_000
    if "SOAK_MOUNTS" not in os.environ:
        return _with_mounts(given.seed)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="rove-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    again = f"uv run python -m tests.soak --minutes {given.minutes:g} --seed {given.seed}"
    disks = "small disks of their own" if os.environ["SOAK_MOUNTS"] == "1" else "limits on the size of files"
    console.print(f"seed {given.seed}, {given.minutes:g} minutes, in {folder}, with {disks}", highlight=False)
    with Progress(
        TextColumn("{task.description:24}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeRemainingColumn(),
        console=console,
    ) as progress:  # fmt: skip
        task = progress.add_task("starting", total=given.minutes * 60)

        def show(done: float, what: str) -> None:
            progress.update(task, completed=done, **({"description": what} if what else {}))

        soak = Soak(
            folder,
            given.seed,
            given.minutes * 60,
            lambda text: console.print(text, markup=False),
            show,
        )
        failures = soak.run()
    for text in failures:
        console.print(f"FAILED  {text}", markup=False, highlight=False)
    if failures:
        console.print(f"{len(failures)} failures. The logs are in {folder}. Again: {again}", markup=False)
        return 1
    console.print("nothing is wrong", markup=False)
    if given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _with_mounts(seed: int) -> int:
    """Run again where small disks can be mounted that nobody else sees, if that is allowed here."""
    apart = ["unshare", "--mount", "--propagation", "private"]
    with tempfile.TemporaryDirectory() as place:
        try:
            allowed = not subprocess.run([*apart, "mount", "-t", "tmpfs", "try", place], capture_output=True).returncode
        except OSError:
            allowed = False
    command = [sys.executable, "-m", "tests.soak", *sys.argv[1:], "--seed", str(seed)]
    os.environ["SOAK_MOUNTS"] = "1" if allowed else "0"
    os.execvp(*((apart[0], [*apart, *command]) if allowed else (command[0], command)))


if __name__ == "__main__":
    sys.exit(main())
