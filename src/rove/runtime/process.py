"""One node, one process: `python -m rove.runtime.process settings.toml`.

Law: receive, handle, execute, wait. Only a signal or a bug (`runtime/broken`) ends a process that has started. It
starts only if everything it needs is there. Data flows without the coordinator, and the process keeps dialing it.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rove.data.log.settings import LogSettings
from rove.data.settings import WorkerSettings
from rove.model.errors import NotWritable, RoveError, SetupError
from rove.model.events import COORDINATOR
from rove.model.ids import NodeId
from rove.model.messages import Goodbye
from rove.runtime.adapters.sources import SourceSpec, read_spec, stream_of
from rove.runtime.broken import EXIT_CODE, Broken
from rove.runtime.clock import now_us
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.functions.process import Bounds
from rove.runtime.functions.reader import ProcessReader
from rove.runtime.hooks import Hooks
from rove.runtime.memory import keep_freed_memory, look_for_cycles_seldom
from rove.runtime.network.bell import Bell
from rove.runtime.network.keys import Keys, coordinator_keys, load_keys
from rove.runtime.network.zeromq import Wires
from rove.runtime.settings import CoordinatorSection, WorkerSection, load
from rove.runtime.shell import CoordinatorShell, Shell, WorkerShell

if TYPE_CHECKING:
    from rove.runtime.metrics import MetricsServer

log = logging.getLogger("rove")

WAIT_MS_MAX = 500
STDERR = 2  # its descriptor
UNBOUNDED = 2**62  # data that waits for the disk is bounded by credit


class Stopped:
    """Whether this process has been told to stop, by a signal or by another thread."""

    def __init__(self) -> None:
        self.bell, self.asked = Bell(), False

    def ask(self) -> None:
        self.asked = True
        self.bell.ring()

    def on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)
        faulthandler.register(signal.SIGUSR1, file=STDERR)  # it writes where each thread is

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.ask()


def run_worker(section: WorkerSection, stopped: Stopped | None = None) -> None:
    """Run a device, edge or gateway until it is told to stop."""
    keep_freed_memory()
    look_for_cycles_seldom()
    stopped = stopped or _by_signals()
    keys = load_keys(section.keys) if section.keys else None
    specs = source_specs(section)
    url = section.coordinator or (keys.url if keys is not None else "")
    if not url:
        raise SetupError(
            f"`{section.node}` knows no coordinator; give its url, or join with a token: rove join --token"
        )
    if section.kind != "device" and not section.listen:
        raise SetupError(f"`{section.node}` is an {section.kind} and must listen; give it an address: tcp://HOST:PORT")
    wires = Wires(section.listen, keys)
    shelf = None
    functions = _functions(section)
    try:
        wires.watch(stopped.bell.descriptor)
        wires.dial(COORDINATOR, url, keys.coordinator if keys is not None else "")
        log.info("asks the coordinator at %s", url)
        shelf = _shelf(section, stopped.bell)
        settings = worker_settings(section, _heard_at(section, wires), keys)
        specs = _readable(section, specs, shelf)
        hooks = Hooks(section.hooks) if section.hooks else None
        shell = WorkerShell(settings, wires, specs, shelf, hooks, functions, again=section.begin == "start")
        shell.start()
        _ready(section.kind, section.node, wires.address)
        _loop(shell, wires, stopped)
        shell.stop()
        if section.leave:
            wires.send(COORDINATOR, Goodbye(NodeId(section.node)))
    except Broken:
        if shelf is not None:
            shelf.close()
        raise
    finally:
        if functions is not None:
            functions.close()
        wires.close()
    log.info("%s stopped", section.node)


def run_coordinator(section: CoordinatorSection, stopped: Stopped | None = None) -> None:
    """Run the coordinator until it is told to stop."""
    from rove.control.coordinator import Coordinator
    from rove.control.deployment.dead.decision import Patience
    from rove.runtime.disk.catalog import Catalog

    look_for_cycles_seldom()
    stopped = stopped or _by_signals()
    keys, operator = None, ""
    if section.keys:
        url = section.advertise or section.listen
        if url.endswith(":0") or _everywhere(url):
            raise SetupError(
                f"tokens and key files contain the coordinator's url, and {url} cannot be used in them; set advertise"
            )
        keys, theirs = coordinator_keys(section.keys, url)
        operator = theirs.public
    catalog = Catalog(Path(section.folder) / "catalog.sqlite")
    wires = Wires(section.listen, keys)
    metrics = None
    try:
        wires.watch(stopped.bell.descriptor)
        if section.metrics:
            metrics = _metrics(section.metrics, stopped.bell, keys)
            log.info("metrics are at %s", metrics.url)
        machine = Coordinator(keys is not None, operator, section.redeploy)
        machine.absence.deaths.patience = Patience.of_seconds(section.replace_durable_s, section.replace_s)
        shell = CoordinatorShell(machine, wires, catalog, metrics)
        shell.start()
        _ready("coordinator", "coordinator", wires.address)
        _loop(shell, wires, stopped)
        shell.stop()
    finally:
        if metrics is not None:
            metrics.close()
        wires.close()
    log.info("coordinator stopped")


def worker_settings(section: WorkerSection, address: str, keys: Keys | None) -> WorkerSettings:
    """The machine's settings from a section."""
    return WorkerSettings(
        node=NodeId(section.node),
        kind=section.kind,
        address=address,
        parents=tuple(NodeId(p) for p in section.parents),
        slots=section.slots,
        memory_bytes=section.memory_bytes,
        disk_bytes=section.disk_bytes,
        evict=section.evict,
        compress=section.compress,
        backlog=section.backlog,
        silent_us=section.silent_ms * 1_000,
        weights=section.weights,
        report_us=section.report_ms * 1_000,
        keys=keys is not None,
        trusts=section.trust_functions,
    )


def source_specs(section: WorkerSection) -> tuple[SourceSpec, ...]:
    """The sources of a section, each with the columns of its stream."""
    specs = []
    for text in section.sources:
        stream = stream_of(text)
        if stream not in section.columns:
            raise SetupError(f'source `{text}` has no columns; give them: columns.{stream} = "name type, name type"')
        spec = read_spec(text, section.columns[stream], section.node)
        if spec.file and not spec.when and not os.path.exists(spec.file):
            raise SetupError(f"source `{text}`: there is no file {spec.file}")
        specs.append(spec)
    if len({s.origin for s in specs}) < len(specs):
        raise SetupError(f"`{section.node}` has two sources of one stream; put the second one on another node")
    return tuple(specs)


def main(path: str) -> int:
    """Run the process that a settings file describes. Returns the exit code."""
    try:
        settings = load(path, os.environ)
        logging.basicConfig(
            level=settings.log.level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
        )
        if settings.worker is not None and settings.coordinator is None:
            run_worker(settings.worker)
        elif settings.coordinator is not None and settings.worker is None:
            run_coordinator(settings.coordinator)
        else:
            raise SetupError(f"{path} describes one process: give it a section [worker] or a section [coordinator]")
    except RoveError as error:
        print(error, file=sys.stderr)
        return 1
    except Broken as broken:
        print(broken, file=sys.stderr)
        return EXIT_CODE
    return 0


def _shelf(section: WorkerSection, bell: Bell) -> DiskShelf | None:
    """A node's disk, if it has one. A device goes on without a disk that is full or broken; other nodes need theirs."""
    if not section.folder:
        return None
    try:
        return DiskShelf(section.folder, bell, _retention(section))
    except NotWritable as error:
        if section.kind != "device":
            raise
        log.error("%s; going on without it: waiting rows are in memory only, until the next start", error)
        return None


def _readable(section: WorkerSection, specs: tuple[SourceSpec, ...], shelf: DiskShelf | None) -> tuple[SourceSpec, ...]:
    """The sources that may begin. If the folder that says how far files were read cannot be used, they are not read:
    rows that have arrived would be sent again. A node without a folder reads them from the first row at each start."""
    files = [spec for spec in specs if spec.file and section.begin == "kept"]
    if shelf is not None or not files:
        return specs
    if section.folder:
        log.error("%s are not read until %s can be used", ", ".join(spec.file for spec in files), section.folder)
        return tuple(spec for spec in specs if spec not in files)
    for spec in files:
        log.warning("%s is read from its first row at each start; with a folder (--data) it is read on", spec.file)
    return specs


def _functions(section: WorkerSection) -> ProcessReader | None:
    """Where users' functions run: in processes of their own, or (None) inside the node."""
    if section.functions == "inline":
        return None
    return ProcessReader(section.trust_functions, Bounds(section.function_ms / 1_000, section.function_memory_bytes))


def _retention(section: WorkerSection) -> LogSettings:
    keep_us = None if section.keep_hours is None else int(section.keep_hours * 3_600_000_000)
    return LogSettings(keep_us=keep_us, keep_bytes=section.keep_bytes, keep_consumed=True, pending_bytes=UNBOUNDED)


def _loop(shell: Shell, wires: Wires, stopped: Stopped) -> None:
    while not stopped.asked:
        wait_us = shell.due() - now_us()
        shell.round(wires.receive(min(WAIT_MS_MAX, max(0, -(-wait_us // 1_000)))))


def _metrics(address: str, bell: Bell, keys: Keys | None) -> MetricsServer:
    try:
        from rove.runtime.metrics import MetricsServer
    except ModuleNotFoundError as error:
        raise SetupError("metrics need one more package. Type: pip install 'rove[coordinator]'") from error
    return MetricsServer(address, bell, keys is not None)


def _by_signals() -> Stopped:
    stopped = Stopped()
    stopped.on_signals()
    return stopped


def _heard_at(section: WorkerSection, wires: Wires) -> str:
    address = section.advertise or wires.address
    if _everywhere(address):
        raise SetupError(
            f"`{section.node}` listens everywhere ({address}); set the address at which others reach it: advertise"
        )
    return address


def _everywhere(address: str) -> bool:
    return any(host in address for host in ("://0.0.0.0:", "://[::]:", "://*:"))


def _ready(kind: str, name: str, address: str) -> None:
    print(f"ready {kind} {name} {address}".rstrip(), flush=True)
    log.info("%s %s is ready %s", kind, name, address)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "give one settings file: rove.runtime.process FILE.toml")
