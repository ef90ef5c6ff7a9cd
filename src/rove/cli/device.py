"""`rove device`: starts a node that produces rows."""

from __future__ import annotations

from typing import Annotated

from rove.cli.flags import Flag
from rove.cli.starting import (
    Coordinator,
    Data,
    Functions,
    Keys,
    Memory,
    Name,
    Parents,
    SettingsFile,
    Slots,
    TrustFunctions,
    start_worker,
)


def device(
    name: Name = None,
    source: Annotated[
        list[str] | None,
        Flag("stream=generate:rows=50,rate=20 or stream=file:x.parquet. Can be repeated.", metavar="SPEC"),
    ] = None,
    begin: Annotated[
        str | None,
        Flag(
            "Where files of sources begin: kept (where the last start ended; needs --data) or start (at their first "
            "row, as new rows). Without --data they begin at their first row at each start. Default: kept.",
            "--from",
            metavar="WHERE",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        Flag("The columns of a stream: 'stream: a int, ts timestamp'. Can be repeated.", metavar="COLUMNS"),
    ] = None,
    coordinator: Coordinator = None,
    parents: Parents = None,
    data: Data = None,
    slots: Slots = None,
    memory: Memory = None,
    disk: Annotated[
        str | None,
        Flag(
            "Disk space in --data for rows that wait. It is used when memory is full, and survives a crash.",
            metavar="SIZE",
        ),
    ] = None,
    evict: Annotated[
        str | None,
        Flag(
            "What to drop when the store is full: block (nothing, sources wait), fifo, query_aware, priority, or "
            "your own policy: module:Name or file.py:Name.",
            metavar="POLICY",
        ),
    ] = None,
    compress: Annotated[
        str | None, Flag("How waiting batches are compressed: zstd, lz4 or off.", metavar="CODEC")
    ] = None,
    backlog: Annotated[
        str | None,
        Flag(
            "After a cut, send kept rows beside, before or after new rows, for queries to which the order does "
            "not matter.",
            metavar="ORDER",
        ),
    ] = None,
    hooks: Annotated[
        str | None,
        Flag("A module or file.py with your functions on_disconnect, on_reconnect and on_evict.", metavar="MODULE"),
    ] = None,
    trust_functions: TrustFunctions = None,
    functions: Functions = None,
    keys: Keys = None,
    settings: SettingsFile = None,
) -> None:
    """Start a device. It produces rows, runs its part of the queries, and keeps results while it is cut off.

    rove device --name tram-7 --parent mast-12 --source trains=generate:rows=50,rate=2 --columns 'trains: train string,
    ts timestamp, boarding int'
    """
    start_worker(
        "device",
        name=name,
        coordinator=coordinator,
        parents=parents,
        data=data,
        slots=slots,
        memory=memory,
        disk=disk,
        evict=evict,
        compress=compress,
        hooks=hooks,
        backlog=backlog,
        trust_functions=trust_functions,
        functions=functions,
        keys=keys,
        settings=settings,
        sources=source,
        begin=begin,
        columns=columns,
    )
