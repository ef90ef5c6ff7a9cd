"""`rove worker`: starts an edge node."""

from __future__ import annotations

from rove.cli.starting import (
    Coordinator,
    Data,
    Functions,
    Keys,
    Listen,
    Memory,
    Name,
    Parents,
    SettingsFile,
    Slots,
    TrustFunctions,
    start_worker,
)


def worker(
    name: Name = None,
    listen: Listen = None,
    coordinator: Coordinator = None,
    parents: Parents = None,
    data: Data = None,
    slots: Slots = None,
    memory: Memory = None,
    trust_functions: TrustFunctions = None,
    functions: Functions = None,
    keys: Keys = None,
    settings: SettingsFile = None,
) -> None:
    """Start an edge node. It runs parts of queries and passes on the rows of devices."""
    start_worker(
        "edge",
        name=name,
        listen=listen,
        coordinator=coordinator,
        parents=parents,
        data=data,
        slots=slots,
        memory=memory,
        trust_functions=trust_functions,
        functions=functions,
        keys=keys,
        settings=settings,
    )
