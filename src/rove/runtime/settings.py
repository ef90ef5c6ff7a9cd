"""The settings of a process: a TOML file, overridden by the environment, overridden by flags.

Law: every setting has one name, one type and one default, here. An unknown setting is an error that names the nearest.

    [worker]                                     ROVE__WORKER__SLOTS=16 rove worker --node edge1
    node = "edge1"
    kind = "edge"
    listen = "tcp://127.0.0.1:0"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rove.model.errors import SetupError, nearest
from rove.model.ids import checked_name
from rove.model.messages import Kind

PREFIX = "ROVE__"


class WorkerSection(msgspec.Struct, frozen=True, kw_only=True):
    """A device, edge or gateway. Without `folder` it keeps nothing through a restart. Without `keys` it can only be
    reached from this computer."""

    node: str  # its name, which no other node has
    kind: Kind  # device, edge or gateway
    coordinator: str = ""  # its url; empty: the one that came with the keys
    listen: str = ""  # where nodes below reach it, such as tcp://127.0.0.1:4701; a device needs none
    advertise: str = ""  # the address at which others reach `listen`, if it differs
    parents: tuple[str, ...] = ()  # the nodes that it may send rows to
    slots: int = 8  # how many operators it may run
    memory_bytes: int = 50_000_000  # memory for waiting batches
    disk_bytes: int = 0  # disk space in `folder` for waiting batches; they survive a restart
    hooks: str = ""  # a module or file with on_disconnect, on_reconnect, on_evict
    # After a cut, kept batches are sent beside, before or after new ones.
    backlog: Literal["beside", "first", "last"] = "beside"
    silent_ms: Annotated[int, msgspec.Meta(ge=100)] = 3_000  # a parent that is silent for this long is away
    compress: Literal["zstd", "lz4", "off"] = "zstd"  # how waiting batches are packed
    evict: str = "block"  # what a full store does: block (sources wait), fifo, query_aware or priority
    weights: dict[str, float] = {}  # the weights of queries, for priority
    report_ms: int = 1_000  # how often it reports to the coordinator
    folder: str = ""  # for everything that must survive a restart
    keep_hours: float | None = None  # delete older entries from its log, read or not
    keep_bytes: int | None = None  # delete the oldest entries of a partition beyond this size, read or not
    keys: str = ""  # a key file
    sources: tuple[str, ...] = ()  # such as trains=generate:rows=50,rate=20 or trains=file:/data/x.parquet
    # Where files of sources begin: at the place that is kept in `folder`, or at the start, their first row.
    begin: Literal["kept", "start"] = "kept"
    columns: dict[str, str] = {}  # the columns of the streams that sources here produce
    leave: bool = False  # say goodbye when stopped, for good
    trust_functions: bool = False  # run users' functions that come by value, so users who submit queries run code here
    functions: Literal["process", "inline"] = "process"  # where users' functions run: apart, or inside the node
    function_ms: Annotated[int, msgspec.Meta(ge=1)] = 10_000  # for one batch, in a process apart; the node waits for it
    function_memory_bytes: Annotated[int, msgspec.Meta(ge=0)] = 1_073_741_824  # of such a process; 0: no bound


class CoordinatorSection(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator."""

    listen: str = "tcp://127.0.0.1:4700"  # where nodes and users reach it
    advertise: str = ""  # the address at which others reach `listen`, if it differs
    folder: str = "rove-coordinator"  # of its catalog
    keys: str = ""  # the folder of its keys; without keys it is reached from this computer only
    metrics: str = ""  # the address of its metrics, such as 127.0.0.1:9470; empty for none
    # What is redeployed when a route changes: what it touched; or, for comparison, whole queries, serial or concurrent.
    # With state_transfer, also for comparison, an operator that moves takes rows when its whole state has arrived.
    redeploy: Literal["incremental", "state_transfer", "holistic_serial", "holistic_concurrent"] = "incremental"
    # How long an edge without a disk may be silent before its operators start on another node; -1: for ever.
    replace_s: Annotated[float, msgspec.Meta(ge=-1)] = 30
    # The same for an edge with a disk, whose state comes back with it.
    replace_durable_s: Annotated[float, msgspec.Meta(ge=-1)] = 600


class CloudSection(msgspec.Struct, frozen=True, kw_only=True):
    """Spark: the gateway's folder, the folders for tables and checkpoints, and Spark's own settings."""

    coordinator: str = ""  # its url; empty: the one that came with the keys
    logs: str  # the folder of the gateway, or a copy that is kept up to date
    tables: str = "rove-tables"  # the folder of tables
    state: str = "rove-cloud"  # checkpoints; without them queries start over
    master: str = "local[*]"  # of Spark
    memory: str = "1g"  # memory of Spark's driver
    keys: str = ""  # a key file
    poll_ms: int = 500  # how often to ask what should run
    # The time between two micro-batches of a table, each of which makes files; `.trigger(…)` of a query overrides it.
    table_ms: Annotated[int, msgspec.Meta(ge=0)] = 2_000
    # A table with this many small files is compacted while no rows come; 0: only by `rove compact`.
    compact_files: Annotated[int, msgspec.Meta(ge=0)] = 100
    spark: dict[str, str] = {}  # Spark's own settings, by their names
    # Run users' functions that come by value: every user who may submit a query can run code here.
    trust_functions: bool = False


class LogSection(msgspec.Struct, frozen=True, kw_only=True):
    """What a process logs."""

    level: Literal["debug", "info", "warning", "error"] = "info"  # what is logged at least


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    worker: WorkerSection | None = None
    coordinator: CoordinatorSection | None = None
    cloud: CloudSection | None = None
    log: LogSection = LogSection()


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "worker": WorkerSection,
    "coordinator": CoordinatorSection,
    "cloud": CloudSection,
    "log": LogSection,
}


def load(
    path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Mapping[str, object]] | None = None,
) -> Settings:
    """The settings of file, environment and flags combined. A flag that is None was not given."""
    tree: dict[str, dict[str, object]] = {}
    for section, values in _file(path).items():
        if not isinstance(values, dict):
            raise SetupError(f"{path}: `{section}` is outside of a section; put it below [worker] or [coordinator]")
        _merge(tree, section, values, str(path))
    for name, text in (environ or {}).items():
        if name.startswith(PREFIX):
            section, _, key = name.removeprefix(PREFIX).lower().partition("__")
            _merge(tree, section, {key: _value(text)}, f"environment variable {name}")
    for section, given in (flags or {}).items():
        _merge(tree, section, {k: v for k, v in given.items() if v is not None}, "flags")
    for values in tree.values():
        for key, value in values.items():
            if isinstance(value, str) and key in ("parents", "sources"):
                values[key] = [value]
    try:
        found = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SetupError(f"settings cannot be used: {error}") from error
    if found.worker is not None:
        _check_names(found.worker)
    return found


def _check_names(worker: WorkerSection) -> None:
    """Check names. The streams of sources are checked where their texts are read (adapters/sources)."""
    for node in (worker.node, *worker.parents):
        checked_name(node, "a node")
    for stream in worker.columns:
        checked_name(stream, "a stream")
    for query in worker.weights:
        checked_name(query, "a query")


def _file(path: str | Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise SetupError(f"settings {path} cannot be read: {error.strerror}; give the path of a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"settings {path} are not TOML: {error}") from error


_FLAGS = {"begin": "from"}  # settings whose flag has another name


def _merge(tree: dict[str, dict[str, object]], section: str, values: Mapping[str, object], where: str) -> None:
    kind = SECTIONS.get(section)
    if kind is None:
        raise SetupError(f"{where}: no section `{section}`; {nearest(section, list(SECTIONS))}")
    known = get_type_hints(kind)
    for key, value in values.items():
        if key not in known:
            raise SetupError(f"{where}: no setting `{key}` in [{section}]; {nearest(key, list(known))}")
        if get_origin(known[key]) is Literal and value not in get_args(known[key]):
            shown = f"{where}: {key}" if where != "flags" else f"--{_FLAGS.get(key, key)}"
            raise SetupError(f"{shown} cannot be `{value}`; {nearest(str(value), get_args(known[key]))}")
    tree.setdefault(section, {}).update(values)


def _value(text: str) -> object:
    """A value from the environment: a list or table is JSON, anything else is plain text."""
    if not text.startswith(("[", "{")):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise SetupError(f"`{text}` is not JSON: {error}") from error
