"""`rove gateway`: starts a gateway, the worker at the cloud end, which keeps the log."""

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


def gateway(
    name: Name = None,
    listen: Listen = None,
    coordinator: Coordinator = None,
    parent: Parents = None,
    data: Data = None,
    slots: Slots = None,
    memory: Memory = None,
    trust_functions: TrustFunctions = None,
    functions: Functions = None,
    keys: Keys = None,
    settings: SettingsFile = None,
) -> None:
    """Start a gateway. It writes arriving rows to its log, each row once, and acknowledges them to the nodes below.

    It needs a folder: --data DIR.
    """
    start_worker(
        "gateway",
        name=name,
        listen=listen,
        coordinator=coordinator,
        parents=parent,
        data=data,
        slots=slots,
        memory=memory,
        trust_functions=trust_functions,
        functions=functions,
        keys=keys,
        settings=settings,
    )
