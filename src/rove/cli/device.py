"""`rove device`: start a node where rows come from."""

from __future__ import annotations

from typing import Annotated

import typer

from rove.cli.starting import (
    Coordinator,
    Data,
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
        typer.Option(
            metavar="SPEC", help="stream=generate:rows=50,rate=20 or stream=file:x.parquet. May be given again."
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Of each stream: 'stream: a int, ts timestamp'. May be given again."),
    ] = None,
    coordinator: Coordinator = None,
    parent: Parents = None,
    data: Data = None,
    slots: Slots = None,
    memory: Memory = None,
    disk: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Of --data, for rows that wait: behind memory, and kept over a crash.",
        ),
    ] = None,
    evict: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="What goes when that is full: block (nothing: sources wait), fifo, query_aware, priority, or a policy "
            "of yours: module:Name or file.py:Name.",
        ),
    ] = None,
    compress: Annotated[
        str | None, typer.Option(metavar="CODEC", help="Batches that wait are packed: zstd, lz4 or off.")
    ] = None,
    backlog: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="After a cut, what was kept goes beside, first (before) or last (after) what is new, where order does "
            "not matter to a query.",
        ),
    ] = None,
    hooks: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE", help="Your functions on_disconnect, on_reconnect and on_evict: a module, or a file.py."
        ),
    ] = None,
    trust_functions: TrustFunctions = None,
    keys: Keys = None,
    settings: SettingsFile = None,
) -> None:
    """Start a device: it produces rows, works on them, and keeps them while it is cut off.

    rove device --name tram-7 --parent mast-12 --source trains=generate:rows=50,rate=2 --columns 'trains: train string,
    ts timestamp, boarding int'
    """
    start_worker(
        "device",
        name=name,
        coordinator=coordinator,
        parents=parent,
        data=data,
        slots=slots,
        memory=memory,
        disk=disk,
        evict=evict,
        compress=compress,
        hooks=hooks,
        backlog=backlog,
        trust_functions=trust_functions,
        keys=keys,
        settings=settings,
        sources=source,
        columns=columns,
    )
