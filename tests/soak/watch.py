"""Watches the network from outside: asks for the accounts every second, and looks at processes and their logs.

Law: what is wrong at any moment is a failure of the whole run, whatever comes later. The coordinator may be silent only
while it has a fault, and shortly after.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from statistics import median

import psutil

from rove.api.accounts import COUNTS, verdict
from rove.control.asks.requests import AccountLine, NodeLine, QueryLine
from rove.model.errors import RoveError
from rove.runtime.network.client import Client
from tests.soak.forger import WORD
from tests.soak.network import COORDINATOR, Network

ASK_S, LOOK_S, CLI_S = 1.0, 5.0, 30.0
ANSWER_S = 4.0  # for the coordinator to answer
RECOVERY_S = 20.0  # after a fault of the coordinator, until it must answer again
FAILURES_MAX = 40
LOG_BYTES_MAX, LOG_BYTES_A_MINUTE = 1_000_000, 100_000  # of one process
GROWTH_BYTES, GROWTH_SHARE = 40_000_000, 0.25  # of a process, between the second and the last quarter
BAD = re.compile(r"Traceback|This is a bug in rove|is broken|Logging error|Segmentation|Fatal Python|malloc|free\(\)")


class Watch:
    """All observations of one run."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._stop = threading.Event()
        self._read: dict[str, int] = {}  # bytes of each log that were looked at
        self._began = time.monotonic()
        self._rss: dict[str, list[tuple[float, int, int]]] = {}  # by name: when, pid, bytes
        self.failures: list[str] = []
        self.asked = self.answered = self.commands = 0
        self.lines: list[AccountLine] = []
        self.queries: list[QueryLine] = []
        self.nodes: list[NodeLine] = []
        self.troubles: dict[str, Counter[str]] = {}  # by query, what was said of it at any time
        self.warnings: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._often, args=(each, every), daemon=True)
            for each, every in ((self._ask, ASK_S), (self._look, LOOK_S), (self._command, CLI_S))
        ]

    def start(self) -> None:
        self._client = Client(self._network.url, self._network.operator, timeout_s=ANSWER_S)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._look()
        self._client.close()

    def fail(self, text: str) -> None:
        with self._network.lock:
            at = time.monotonic() - self._began
            if len(self.failures) < FAILURES_MAX:
                self.failures.append(f"at {at:.1f} s: {text}")

    def _often(self, what: Callable[[], None], every_s: float) -> None:
        while not self._stop.wait(every_s):
            try:
                what()
            except Exception as error:  # the watch must not end silently
                self.fail(f"the soak itself: {what.__name__}: {error!r}")

    # The accounts

    def _ask(self) -> None:
        self.asked += 1
        began = time.monotonic()
        try:
            self.lines = self._client.ask("status", None, list[AccountLine])
            self.queries = self._client.ask("queries", None, list[QueryLine])
            self.nodes = self._client.ask("topology", None, list[NodeLine])
        except RoveError as error:
            well = self._network.well_since.get(COORDINATOR, 0.0)
            if COORDINATOR not in self._network.down and began - well > RECOVERY_S:
                self.fail(f"the coordinator does not answer: {error}")
            return
        self.answered += 1
        self.check(self.lines)
        for query in self.queries:
            for trouble in query.troubles:  # those that name damage; others come and go with the faults
                if WORD in trouble.reason:
                    self.fail(f"{query.query} shows what the thief says: {trouble}")
                if not (trouble.final or "damaged" in trouble.reason):
                    continue
                self.troubles.setdefault(query.query, Counter())[trouble.reason[:300]] += 1

    def check(self, lines: list[AccountLine]) -> None:
        """What must hold at every moment."""
        said = verdict(lines)
        if "do not add up" in said:
            self.fail(said)
            self._keep(lines)
        for line in lines:
            if min(getattr(line, what) for what in COUNTS) < 0:
                self.fail(f"a count is negative: {line}")

    def _keep(self, lines: list[AccountLine]) -> None:
        import msgspec

        place = self._network.folder / f"status-{int(time.monotonic() - self._began)}.json"
        place.write_bytes(msgspec.json.encode(lines))

    def _command(self) -> None:
        """The command itself, as users type it."""
        done = self._network.rove("status", "--json")
        if done.returncode:
            well = self._network.well_since.get(COORDINATOR, 0.0)
            if COORDINATOR not in self._network.down and time.monotonic() - well > RECOVERY_S + 15:
                self.fail(f"`rove status` ends with {done.returncode}: {done.stderr[-500:]}")
            return
        self.commands += 1
        if not json.loads(done.stdout)["adds_up"]:
            self.fail("`rove status --json` says that the sums do not add up")
            (self._network.folder / f"cli-{self.commands}.json").write_text(done.stdout)

    # Processes and logs

    def _look(self) -> None:
        network = self._network
        for name in network.names:
            with network.lock:
                down = name in network.down
                code = network.exit_code(name)
                pid = network.pid(name)
            if code is not None and not down:
                if not self._stop.is_set():
                    tail = network.log(name).read_text(errors="replace")[-1_500:]
                    self.fail(f"{name} ended by itself with {code}: …{tail}")
                    with network.lock:
                        network.again(name)
                continue
            if code is None:
                with contextlib.suppress(psutil.Error):
                    size = psutil.Process(pid).memory_info().rss
                    self._rss.setdefault(name, []).append((time.monotonic(), pid, size))
            self._read_log(name)

    def _read_log(self, name: str) -> None:
        path = self._network.log(name)
        if not path.exists():
            return
        with open(path, errors="replace") as log:
            log.seek(self._read.get(name, 0))
            text = log.read()
            self._read[name] = log.tell()
        if found := BAD.search(text):
            at = found.start()
            self.fail(f"the log of {name} says: {text[max(0, at - 300) : at + 1_500]}")
        for line in text.splitlines():
            if " WARNING " in line or " ERROR " in line:
                self.warnings[re.sub(r"\d+", "N", line.split(" ", 2)[-1])[:160]] += 1
        minutes = (time.monotonic() - self._began) / 60
        if self._read[name] > LOG_BYTES_MAX + LOG_BYTES_A_MINUTE * minutes:
            self.fail(f"the log of {name} has {self._read[name]:,} bytes after {minutes:.0f} minutes")

    def check_memory(self, began: float, ended: float) -> dict[str, tuple[float, float]]:
        """The memory of every process is flat between the second and the last quarter. Returns both in megabytes.
        A start that is younger than half a minute still fills its pools, so it is not counted."""
        found = {}
        quarter = (ended - began) / 4
        for name, samples in self._rss.items():
            first: dict[int, float] = {}
            for at, pid, _ in samples:
                first.setdefault(pid, at)
            grown = [(at, size) for at, pid, size in samples if at - first[pid] >= min(30.0, quarter / 2)]
            early = [size for at, size in grown if began + quarter <= at < began + 2 * quarter]
            late = [size for at, size in grown if at >= ended - quarter]
            if not early or not late:
                continue
            before, after = median(early), median(late)
            found[name] = (before / 1e6, after / 1e6)
            if after - before > max(GROWTH_BYTES, GROWTH_SHARE * before):
                self.fail(f"the memory of {name} grew from {before / 1e6:.0f} MB to {after / 1e6:.0f} MB")
        return found

    def memory(self) -> dict[str, list[tuple[float, float, int, float]]]:
        """All samples of each process: when, since its start, its number, megabytes."""
        found = {}
        for name, samples in self._rss.items():
            first: dict[int, float] = {}
            for at, pid, _ in samples:
                first.setdefault(pid, at)
            found[name] = [(at - self._began, at - first[pid], pid, size / 1e6) for at, pid, size in samples]
        return found

    def unsettled(self) -> list[tuple[str, str]]:
        """What has still not arrived by the last answer, by query. An operator whose watermark is not at the end waits
        for a source."""
        found = []
        for line in self.lines:
            if line.in_flight > line.open + line.missing or line.buffered:
                found.append(
                    (line.query, f"{line.query} {line.origin}: {line.in_flight} in flight, {line.buffered} kept")
                )
            elif line.watermark_lag_ms is not None and "#" in line.origin and "/" not in line.origin:
                found.append((line.query, f"{line.query} {line.origin}: its watermark is not at the end"))
        found += [(query.query, f"{query.query} misses {query.missing}") for query in self.queries if query.missing]
        return found
