"""`rove gateway`: starts a gateway, the worker at the cloud end, which keeps the log."""

from __future__ import annotations

from typing import Any

from rove.cli.flags import with_flags_of
from rove.cli.starting import start_worker
from rove.cli.worker import worker


@with_flags_of(worker)
def gateway(**flags: Any) -> None:
    """Start a gateway. It writes arriving rows to its log, each row once, and acknowledges them to the nodes below.

    It needs a folder: --data DIR.
    """
    start_worker("gateway", **flags)
