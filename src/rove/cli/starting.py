"""The flags of all commands that start a node, and how flags and settings are combined.

Law: a flag overrides the environment, and the environment overrides the settings file. Without keys a node can only be
reached from this computer, so the default addresses are on the loopback interface.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rove.cli.flags import Flag
from rove.model.errors import SetupError
from rove.model.ids import checked_name

if TYPE_CHECKING:
    from rove.model.messages import Kind
    from rove.runtime.settings import Settings, WorkerSection

DEFAULT_URL = "tcp://127.0.0.1:4700"
LISTEN = "tcp://127.0.0.1:0"  # any free port; the coordinator tells other nodes which

Name = Annotated[str | None, Flag("The node's name. Default: the name in its keys.")]
Listen = Annotated[
    str | None, Flag("Where it listens, such as tcp://127.0.0.1:4701. Default: any free port.", metavar="URL")
]
Coordinator = Annotated[
    str | None, Flag(f"The coordinator's address. Default: the one in the keys, or {DEFAULT_URL}.", metavar="URL")
]
Parents = Annotated[
    list[str] | None, Flag("A node that it may send rows to. Can be repeated.", "--parent", metavar="NODE")
]
Data = Annotated[Path | None, Flag("A folder for data that must survive a restart.", metavar="DIR")]
Slots = Annotated[int | None, Flag("How many operators it may run.", least=0)]
Memory = Annotated[str | None, Flag("Memory for batches, such as 64MiB.", metavar="SIZE")]
Keys = Annotated[Path | None, Flag("The folder where `rove join` put its keys.", metavar="DIR")]
TrustFunctions = Annotated[
    bool | None,
    Flag(
        "Run users' functions that queries send by value. Then everyone who may submit queries can run code here.",
        "--trust-functions",
    ),
]
Functions = Annotated[
    str | None,
    Flag(
        "Where users' functions run: process (in processes of their own, with bounds) or inline (inside the node, "
        "which is faster, and ends with a function that crashes). Default: process.",
        metavar="WHERE",
    ),
]
SettingsFile = Annotated[Path | None, Flag("A TOML file of settings. Flags override it.", "--settings", metavar="FILE")]

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
    begin: str | None = None,
    columns: list[str] | None = None,
    trust_functions: bool | None = None,
    functions: str | None = None,
) -> None:
    """Run a node until a signal stops it."""
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
        "keys": None if keys is None else str(key_file(keys)),
        "sources": sources or None,
        "begin": begin,
        "trust_functions": trust_functions,
        "functions": functions,
        "columns": dict(map(stream_columns, columns)) if columns else None,
    }
    section = loaded(settings, "worker", flags).worker
    if section is None:
        raise SetupError("the settings describe no worker; give the flag --name")
    run_worker(_settled(section))


def loaded(file: Path | None, section: str, flags: Mapping[str, object]) -> Settings:
    """The settings of file, environment and flags combined. Sets up logging as they say."""
    from rove.runtime.settings import load

    found = load(file, os.environ, {section: flags})
    logging.basicConfig(
        level=found.log.level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    return found


def _settled(section: WorkerSection) -> WorkerSection:
    from msgspec.structs import replace

    if section.kind == "gateway" and not section.folder:
        raise SetupError(f"gateway `{section.node}` needs a folder for its log; give one: --data DIR")
    if section.disk_bytes and not section.folder:
        raise SetupError(
            f"`{section.node}` needs a folder for {section.disk_bytes} bytes on disk; give one: --data DIR"
        )
    if section.kind != "device" and not section.listen:
        section = replace(section, listen=LISTEN)
    if not section.coordinator and not section.keys:
        section = replace(section, coordinator=DEFAULT_URL)
    return section


def size_bytes(text: str) -> int:
    """A size such as `64MiB`, `1.5 GB` or `4096`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if found is None or found[2].lower() not in _UNITS:
        raise SetupError(f"`{text}` is not a size; write it like 64MiB, 2GiB or 500kB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def stream_columns(text: str) -> tuple[str, str]:
    """A stream with its columns, from `stream: a int, ts timestamp`."""
    stream, colon, columns = text.partition(":")
    if not colon or not stream.strip() or not columns.strip():
        raise SetupError(f"`{text}` is not a stream with its columns; write 'stream: a int, ts timestamp'")
    return checked_name(stream.strip(), "a stream"), columns.strip()


def key_file(keys: Path) -> Path:
    """The key file in a folder where `rove join` put it, or the file itself."""
    from rove.runtime.network.keys import KEY_FILE

    return keys / KEY_FILE if keys.is_dir() else keys


def _named(keys: Path | None, settings: Path | None, kind: Kind) -> str | None:
    """The node's name from its keys. None if the settings file has to name it."""
    from rove.runtime.network.keys import load_keys

    if keys is not None:
        return load_keys(key_file(keys)).node or None
    if settings is None and "ROVE__WORKER__NODE" not in os.environ:
        raise SetupError(f"a node needs a name that no other node has; give it one: rove {_word(kind)} --name NAME")
    return None


def _word(kind: Kind) -> str:
    return "worker" if kind == "edge" else kind
