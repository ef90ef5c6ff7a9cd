"""What commands that start a node have in common: their flags, and how these meet the settings.

Law: a flag wins over the environment, the environment over the settings file. Without keys a node stays on this
computer, so addresses default to its loopback.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rove.cli.asking import DEFAULT_URL
from rove.model.errors import SetupError
from rove.model.ids import checked_name

if TYPE_CHECKING:
    from rove.model.messages import Kind
    from rove.runtime.settings import Settings, WorkerSection

LISTEN = "tcp://127.0.0.1:0"  # a free port; the coordinator tells others which

Name = Annotated[str | None, typer.Option(help="The node's name; the one in its keys if left out.")]
Listen = Annotated[
    str | None, typer.Option(metavar="URL", help="Where others reach it, such as tcp://127.0.0.1:4701; any free port.")
]
Coordinator = Annotated[
    str | None,
    typer.Option(metavar="URL", help=f"Where the coordinator listens; as the keys say, or {DEFAULT_URL}."),
]
Parents = Annotated[
    list[str] | None, typer.Option("--parent", metavar="NODE", help="A node it hands rows to. May be given again.")
]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A folder of its own, for what should outlive a restart.")
]
Slots = Annotated[int | None, typer.Option(help="How many operators it may run.", min=0)]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="For batches on their way, such as 64MiB.")]
Keys = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder that `rove join` put its key in.")]
TrustFunctions = Annotated[
    bool | None,
    typer.Option(
        "--trust-functions",
        help="Run functions that queries bring along by value: whoever may submit a query runs code here.",
    ),
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE", help="A TOML file of settings; flags win over it.")
]

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def start_worker(
    kind: Kind,
    *,
    name: str | None,
    coordinator: str | None,
    parents: list[str] | None,
    listen: str | None = None,
    data: Path | None = None,
    slots: int | None = None,
    memory: str | None = None,
    disk: str | None = None,
    evict: str | None = None,
    compress: str | None = None,
    hooks: str | None = None,
    backlog: str | None = None,
    keys: Path | None = None,
    settings: Path | None = None,
    sources: list[str] | None = None,
    columns: list[str] | None = None,
    trust_functions: bool | None = None,
) -> None:
    """Run a node until it is told to stop."""
    from rove.runtime.process import run_worker

    flags = {
        "node": name or _named(keys, settings, kind),
        "kind": kind,
        "coordinator": coordinator,
        "listen": listen,
        "parents": parents or None,
        "slots": slots,
        "memory_bytes": None if memory is None else size_bytes(memory),
        "disk_bytes": None if disk is None else size_bytes(disk),
        "evict": evict,
        "compress": compress,
        "hooks": hooks,
        "backlog": backlog,
        "folder": None if data is None else str(data),
        "keys": None if keys is None else str(_key_file(keys)),
        "sources": sources or None,
        "trust_functions": trust_functions,
        "columns": dict(map(stream_columns, columns)) if columns else None,
    }
    section = loaded(settings, "worker", flags).worker
    if section is None:
        raise SetupError("the settings describe no worker; give the flag --name")
    run_worker(_settled(section))


def loaded(file: Path | None, section: str, flags: Mapping[str, object]) -> Settings:
    """Settings of all three places, and the log as they want it."""
    from rove.runtime.settings import load

    found = load(file, os.environ, {section: flags})
    logging.basicConfig(
        level=found.log.level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    return found


def _settled(section: WorkerSection) -> WorkerSection:
    from msgspec.structs import replace

    if section.kind == "gateway" and not section.folder:
        raise SetupError(f"gateway `{section.node}` keeps what arrives, and has no folder for it; give one: --data DIR")
    if section.disk_bytes and not section.folder:
        raise SetupError(f"`{section.node}` has no folder to keep {section.disk_bytes} bytes in; give one: --data DIR")
    if section.kind != "device" and not section.listen:
        section = replace(section, listen=LISTEN)
    if not section.coordinator and not section.keys:
        section = replace(section, coordinator=DEFAULT_URL)
    return section


def size_bytes(text: str) -> int:
    """A size such as `64MiB`, `1.5 GB` or `4096`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if found is None or found[2].lower() not in _UNITS:
        raise SetupError(f"`{text}` is no size; write it like 64MiB, 2GiB or 500kB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def stream_columns(text: str) -> tuple[str, str]:
    """A stream with its columns, from `stream: a int, ts timestamp`."""
    stream, colon, columns = text.partition(":")
    if not colon or not stream.strip() or not columns.strip():
        raise SetupError(f"`{text}` names no stream and its columns; write 'stream: a int, ts timestamp'")
    return checked_name(stream.strip(), "a stream"), columns.strip()


def _key_file(keys: Path) -> Path:
    from rove.runtime.network.keys import KEY_FILE

    return keys / KEY_FILE if keys.is_dir() else keys


def _named(keys: Path | None, settings: Path | None, kind: Kind) -> str | None:
    """The name in the keys. None leaves it to the settings, if there are any."""
    from rove.runtime.network.keys import load_keys

    if keys is not None:
        return load_keys(_key_file(keys)).node or None
    if settings is None and "ROVE__WORKER__NODE" not in os.environ:
        raise SetupError(f"a node needs a name that no other has; give it one: rove {_word(kind)} --name NAME")
    return None


def _word(kind: Kind) -> str:
    return "worker" if kind == "edge" else kind
