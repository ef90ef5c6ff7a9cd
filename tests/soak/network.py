"""The processes of the soak: a coordinator, a gateway, edges and devices, with keys, disks and logs of their own.

Law: every node's folder is a small disk of its own, so that it can be full. If this process may not mount one, a limit
on the size of files takes its place.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import RLock

from tests.e2e.cluster import Cluster
from tests.soak.queries import STREAMS, Origins

COORDINATOR, GATEWAY = "coordinator", "gateway"
EDGES = {
    "edge0": (GATEWAY,),
    "edge1": (GATEWAY,),
    "edge2": ("edge0", "edge1"),
    "edge3": ("edge1", "edge0"),
    "diskless": (GATEWAY, "edge0"),
}
DISKLESS = "diskless"  # an edge without a disk. It runs no operator, or the rows of open windows would die with it
DEVICES = tuple(f"dev{n:02}" for n in range(20))
FORGER = "forger"  # a device whose key was stolen
DISK_MB = {COORDINATOR: 64, GATEWAY: 1_024}
DEVICE_DISK_MB = 64
READY_S, STOP_S = 60.0, 60.0
MODULES = ("rove.runtime.process", "rove.control.coordinator", "rove.runtime.disk.catalog", "rove.data.worker")

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(list(MODULES))


def parents_of(device: str) -> tuple[str, ...]:
    """Three of the edges, the first one different from device to device. A device with events, which edges count, does
    not use the edge without a disk."""
    edges = [edge for edge in EDGES if edge != DISKLESS or "events" not in streams_of(device)]
    at = DEVICES.index(device) // 2
    return tuple(edges[(at + n) % len(edges)] for n in range(3))


def streams_of(device: str) -> tuple[str, ...]:
    return tuple(STREAMS) if DEVICES.index(device) % 2 else ("readings",)


class Network(Cluster):
    """All processes. `expected_down` are those that a fault has ended, stopped or taken the disk of."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.lock = RLock()
        self.origins = Origins(DEVICES, seed)
        self.lasts_s = 0.0  # how long sources produce that begin with `go`
        self.ends_at: float | None = None  # when sources end that begin later, by the monotonic clock
        self.down: dict[str, str] = {}  # by name, the fault that it has now
        self.well_since: dict[str, float] = {}
        self.go = folder / "go"
        self._running: dict[str, ForkServerProcess] = {}
        self._heard: dict[str, Connection] = {}
        self.mounted = _disk(folder / "catalog", DISK_MB[COORDINATOR])
        super().__init__(folder)

    def disk(self, name: str) -> Path:
        return self.folder / ("catalog" if name == COORDINATOR else f"{name}.disk")

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def join_all(self) -> None:
        """Let all nodes join. They are not started yet."""
        for name in (GATEWAY, *EDGES, *DEVICES):
            self.mounted &= name == DISKLESS or _disk(self.disk(name), DISK_MB.get(name, DEVICE_DISK_MB))
        self.add(GATEWAY, "gateway", listen="tcp://127.0.0.1:0", **self._common(GATEWAY))
        for edge, parents in EDGES.items():
            self.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=list(parents), **self._common(edge))
        for device in DEVICES:
            self.add(device, "device", **self._device(device))
        self.add(FORGER, "device", parents=list(EDGES))

    def again(self, name: str) -> None:
        """Start a process again. The sources of a device go on at the present time, under a new start."""
        if name in DEVICES:
            keys = str(self.folder / f"{name}.joined" / "node.keys")
            self._write(name, "worker", node=name, kind="device", keys=keys, **self._device(name))
        self.begin(name)
        self.ready(name)

    # Processes

    def start(self, *names: str, program: tuple[str, ...] = ()) -> None:
        """Start processes, and wait until they listen."""
        for name in names:
            self.begin(name)
        for name in names:
            if not self.ready(name):
                raise RuntimeError(f"{name} does not start: {self.log(name).read_text()}")

    def begin(self, name: str) -> None:
        """Start a process, without waiting for it."""
        heard, said = _PROCESSES.Pipe(duplex=False)
        process = _PROCESSES.Process(
            target=_live, args=(str(self._settings[name]), str(self.log(name)), said), name=name
        )
        process.start()
        said.close()
        self._running[name], self._heard[name] = process, heard

    def ready(self, name: str) -> bool:
        """Wait until a process is ready. Returns whether it is."""
        try:
            return bool(self._heard[name].poll(READY_S)) and self._heard[name].recv_bytes().startswith(b"ready")
        except EOFError:
            self._running[name].join()
            return False

    def pid(self, name: str) -> int:
        return self._running[name].pid or 0

    def exit_code(self, name: str) -> int | None:
        return self._running[name].exitcode

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self.pid(name), number)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].join()

    def stop(self) -> dict[str, int]:
        self.client.close()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join(STOP_S)
        return {name: -1 if process.exitcode is None else process.exitcode for name, process in self._running.items()}

    def destroy(self) -> None:
        self.client.close()
        for process in self._running.values():
            process.kill()
            process.join()

    @property
    def names(self) -> tuple[str, ...]:
        return (COORDINATOR, GATEWAY, *EDGES, *DEVICES)

    # Full disks

    def fill(self, name: str) -> None:
        """Take all room on the disk of a node."""
        if name == DISKLESS:
            return
        if not self.mounted:
            resource.prlimit(self.pid(name), resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with open(self.disk(name) / "full", "wb", buffering=0) as file:
            for size in (1 << 20, 4_096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def clear(self, name: str) -> None:
        if name == DISKLESS:
            return
        if not self.mounted:
            infinite = resource.RLIM_INFINITY
            resource.prlimit(self.pid(name), resource.RLIMIT_FSIZE, (infinite, infinite))
            return
        (self.disk(name) / "full").unlink(missing_ok=True)

    def _common(self, name: str) -> dict[str, object]:
        if name == DISKLESS:
            return {"slots": 256, "memory_bytes": 16_000_000}
        return {"folder": str(self.disk(name)), "slots": 256, "disk_bytes": 16_000_000, "memory_bytes": 16_000_000}

    def _device(self, device: str) -> dict[str, object]:
        left = self.lasts_s if self.ends_at is None else max(2.0, self.ends_at - time.monotonic())
        texts = self.origins.begin(device, streams_of(device), left, str(self.go))
        columns = {stream: STREAMS[stream] for stream in streams_of(device)}
        return {"parents": list(parents_of(device)), "sources": texts, "columns": columns, **self._common(device)}


def _live(settings: str, log: str, said: Connection) -> None:
    """A process of Rove. It is forked from one that has all modules, because 27 processes that import them take
    minutes on a busy machine."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = _Ready(said), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    from rove.runtime.process import main

    sys.exit(main(settings))


class _Ready(io.StringIO):
    """The standard output of a process: its first words are that it is ready."""

    def __init__(self, said: Connection) -> None:
        super().__init__()
        self._said = said

    def write(self, text: str) -> int:
        if text.strip():
            self._said.send_bytes(text.encode())
        return len(text)


def _disk(path: Path, megabytes: int) -> bool:
    """A small disk at a path. Returns whether it could be mounted."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "soak", str(path)]
    return os.environ.get("SOAK_MOUNTS") == "1" and not subprocess.run(command, capture_output=True).returncode
