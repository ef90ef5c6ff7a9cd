"""The process that forks Spark's Python workers: PySpark's own, which also takes it calmly when Spark leaves a worker.

Law: only what is printed differs. When a task fails, Spark closes the connections of its workers, and says why it
failed. It also closes them when it has read enough, or when a query is stopped. PySpark's process prints a traceback
for each of them as well.
"""

from __future__ import annotations

import sys
from socket import socket
from typing import Any

from pyspark import daemon

_LEFT = ("BrokenPipeError", "ConnectionResetError")  # what a worker raises when Spark has closed its connection

_worker = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    """Work for Spark until it closes the connection. Returns the exit code."""
    try:
        return _worker(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        return 1


def said(*words: Any, **where: Any) -> None:
    """Print what PySpark's process prints, but not that Spark has left a worker."""
    raised = " ".join(map(str, words)).strip().rpartition("\n")[2]
    if not raised.startswith(_LEFT):
        print(*words, **{"file": sys.stderr, **where})


if __name__ == "__main__":
    daemon.print = said  # type: ignore[attr-defined]
    daemon.worker = worker
    daemon.manager()
