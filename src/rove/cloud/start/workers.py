"""The process that forks Spark's Python workers: PySpark's own, which also takes it calmly when Spark leaves a worker.

Law: only what is printed differs. When a task fails, Spark closes the connections of its workers, and says why it
failed. PySpark's process prints a traceback for each of them as well.
"""

from __future__ import annotations

from socket import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    """Work for Spark until it closes the connection. Returns the exit code."""
    try:
        return _worker(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
