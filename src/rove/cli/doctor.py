"""`rove doctor`: looks at this machine, and says what is missing for which command and what to type."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from rove.cli.flags import Flag
from rove.cli.starting import DEFAULT_URL, key_file
from rove.model.errors import RoveError, SetupError

SYNC_S_MAX = 0.05  # a disk that takes longer to sync slows a gateway down
ANSWER_S = 3.0

# The packages beyond those of a device, by what needs them.
EXTRAS = {
    "coordinator": ("rich", "typer", "rustworkx", "highspy", "h3", "prometheus_client"),
    "cloud": ("pyspark", "pandas", "numpy", "google.protobuf", "psycopg"),
    "functions": ("cloudpickle",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. What is `needed` and wrong makes the command fail."""

    what: str
    well: bool
    text: str
    needed: bool = True


def doctor(
    coordinator: Annotated[
        str | None, Flag("Ask this coordinator too. Default: the one in the keys, if there are keys.", metavar="URL")
    ] = None,
    keys: Annotated[Path | None, Flag("Look at the keys in this folder too.", metavar="DIR")] = None,
    data: Annotated[Path | None, Flag("Look at this folder's disk too.", metavar="DIR")] = None,
) -> None:
    """Look at this machine: packages, Java, and with flags the keys, the coordinator and the disk.

    It says what is missing, what needs it, and what to type. It ends with 1 if something that you asked for is wrong.
    """
    wrong = False
    for finding in _findings(coordinator, keys, data):
        mark = "ok" if finding.well else "WRONG" if finding.needed else "absent"
        print(f"{mark:7}{finding.what}: {finding.text}")
        wrong |= finding.needed and not finding.well
    if wrong:
        sys.exit(1)


def _findings(coordinator: str | None, keys: Path | None, data: Path | None) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", sys.version_info >= (3, 11), f"{version}; Rove needs 3.11 or newer")
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if not _importable(package)]
        text = f"not installed: {', '.join(missing)}. Type: pip install 'rove[{extra}]'" if missing else "installed"
        yield Finding(f"packages of rove[{extra}]", not missing, text, needed=False)
    yield _java()
    if keys is not None:
        yield _looked("keys", lambda: _keys(keys))
    if coordinator is not None or keys is not None:
        yield _looked("coordinator", lambda: _coordinator(coordinator, keys))
    if data is not None:
        yield _looked("disk", lambda: _disk(data))


def _looked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, look())
    except (RoveError, OSError) as error:
        return Finding(what, False, str(error))


def _importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _java() -> Finding:
    from rove.cloud.start.java import VERSION_MIN, find_java

    home = find_java()
    if home is None:
        return Finding("java", False, f"none of version {VERSION_MIN} or newer; only Spark needs it", needed=False)
    return Finding("java", True, str(home), needed=False)


def _keys(keys: Path) -> str:
    from rove.runtime.network.keys import load_keys

    found = load_keys(key_file(keys))
    return f"of `{found.node}`, for the coordinator at {found.url}"


def _coordinator(url: str | None, keys: Path | None) -> str:
    from rove.control.asks.requests import NodeLine
    from rove.runtime.network.client import Client
    from rove.runtime.network.keys import load_keys

    mine = None if keys is None else load_keys(key_file(keys))
    url = url or (mine.url if mine is not None else DEFAULT_URL)
    began = time.monotonic()
    with Client(url, mine, ANSWER_S) as client:
        try:
            known = f"it knows {len(client.ask('topology', None, list[NodeLine]))} nodes"
        except SetupError:
            raise
        except RoveError:  # it knows the key, which gives no commands
            known = "this key is a node's and gives no commands"
    return f"{url} answered in {1_000 * (time.monotonic() - began):.0f} ms; {known}"


def _disk(folder: Path) -> str:
    """Of a folder that is not there yet, the disk that it would be on. Nothing is left behind."""
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    with tempfile.TemporaryFile(dir=place) as file:
        file.write(bytes(4096))
        began = time.monotonic()
        file.flush()
        os.fsync(file.fileno())
        took = time.monotonic() - began
    free = os.statvfs(place)
    slow = ", which is slow: a gateway waits for it before it acknowledges rows" if took > SYNC_S_MAX else ""
    new = "" if place == folder.absolute() else f" ({folder} is not there yet; the node will make it)"
    return f"{free.f_bavail * free.f_frsize / 1e9:.1f} GB free in {place}{new}; a sync took {1_000 * took:.1f} ms{slow}"
