"""One soak: start everything, let faults happen, let it settle, and check.

Law: faults are drawn before (`faults`). Each has a thread of its own while it lasts, and everything is well when it is
over: the process runs, its disk has room.
"""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from rove.control.asks.requests import NodeLine, QueryLine, Submit, Submitted
from rove.model.messages import Sink
from rove.plan import codec
from rove.plan.stages import Stages
from tests.e2e.cluster import eventually
from tests.soak.checks import Checks
from tests.soak.damage import damageable, flip
from tests.soak.faults import Fault, plan_faults
from tests.soak.forger import Forger
from tests.soak.network import COORDINATOR, DEVICES, EDGES, FORGER, GATEWAY, Network, streams_of
from tests.soak.queries import HURT, STREAMS, WINDOWS, plans
from tests.soak.watch import Watch

QUIET_S = 10.0  # rows flow for so long after the last fault
SETTLE_S = 120.0  # everything has arrived this long after the sources have ended
UNCHANGED_S = 6  # nothing is produced for so long: the sources have ended
START_S = 180.0
Say = Callable[[str], None]
Show = Callable[[float, str], None]  # how far the run is, and what happens


class Soak:
    """One run. `failures` are complete when `run` has returned."""

    def __init__(self, folder: Path, seed: int, seconds: float, say: Say, show: Show) -> None:
        self.folder, self.seed, self.seconds, self._say, self._show = folder, seed, seconds, say, show
        self.failures: list[str] = []
        self.faults: Counter[str] = Counter()
        self._history = folder / "faults.txt"
        self._began = 0.0

    def run(self) -> list[str]:
        """Run, and return what is wrong."""
        network = Network(self.folder, self.seed)
        watch = Watch(network)
        try:
            self._start(network)
            forger = Forger(self.folder / f"{FORGER}.joined" / "node.keys", network.url)
            self._began = time.monotonic()
            network.go.touch()
            watch.start()
            self._faults(network, watch, forger)
            ended = time.monotonic()
            self._settle(network, watch)
            watch.stop()
            codes = network.stop()
            self._end(network, watch, codes, ended)
            self._say(f"forged frames: {forger.sent:,} sent, {forger.refused:,} refused in words")
        finally:
            network.destroy()
        return self.failures

    def _start(self, network: Network) -> None:
        self._show(0.0, "starting")
        network.lasts_s = self.seconds + QUIET_S
        network.join_all()
        network.start(GATEWAY, *EDGES)
        network.start(*DEVICES)

        def known() -> bool:
            up = {line.node for line in network.client.ask("topology", None, list[NodeLine]) if line.state == "up"}
            streams = network.client.ask("streams", None, dict[str, str])
            return up >= {GATEWAY, *EDGES, *DEVICES} and streams.keys() == STREAMS.keys()

        if not eventually(known, START_S):
            raise RuntimeError("the coordinator does not hear of all nodes and streams")
        for query, plan in plans().items():
            asked = Submit(name=query, plan=codec.encode(Stages.of({"out": plan})), sink=Sink(kind="log"))
            network.client.ask("submit", asked, Submitted)

        def sources_of(query: str) -> int:
            stream = WINDOWS.get(query, "readings")
            return sum(stream in streams_of(device) for device in DEVICES)

        def running() -> bool:
            lines = network.client.ask("queries", None, list[QueryLine])
            return all(q.state == "running" and not q.missing and q.nodes > sources_of(q.query) for q in lines)

        if not eventually(running, START_S):
            raise RuntimeError(f"queries do not run: {network.client.ask('queries', None, list[QueryLine])}")
        network.ends_at = time.monotonic() + network.lasts_s

    # Faults

    def _faults(self, network: Network, watch: Watch, forger: Forger) -> None:
        threads = []
        for fault in plan_faults(self.seed, self.seconds):
            self._sleep(fault.at_s)
            thread = threading.Thread(target=self._suffer, args=(fault, network, watch, forger))
            thread.start()
            threads = [each for each in (*threads, thread) if each.is_alive()]
            self._show(fault.at_s, f"{fault.kind} {fault.victim}")
        self._sleep(self.seconds)
        for thread in threads:
            thread.join()
        self._show(self.seconds, "quiet")

    def _sleep(self, until_s: float) -> None:
        while (left := self._began + until_s - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            self._show(time.monotonic() - self._began, "")

    def _suffer(self, fault: Fault, network: Network, watch: Watch, forger: Forger) -> None:
        name, random = fault.victim, Random(fault.draw)
        self.faults[fault.kind] += 1
        told = ""
        with network.lock:
            network.down[name] = fault.kind
        try:
            match fault.kind:
                case "kill":
                    network.kill(name)
                    time.sleep(fault.lasts_s)
                    network.again(name)
                case "stop":
                    network.signal(name, signal.SIGSTOP)
                    time.sleep(fault.lasts_s)
                    network.signal(name, signal.SIGCONT)
                case "full":
                    network.fill(name)
                    time.sleep(fault.lasts_s)
                    network.clear(name)
                case "flip":
                    told = self._flip(fault, network, watch, random)
                case "forge":
                    origins = [line.origin for line in watch.lines]
                    forger.throw(random, fault.lasts_s, random.sample(origins, min(len(origins), 40)))
            if name != FORGER and network.exit_code(name) is not None:
                text = network.log(name).read_text(errors="replace")[-1_500:]
                watch.fail(f"{name} does not start after {fault}: exit code {network.exit_code(name)}, …{text}")
        except Exception as error:  # the run goes on; it has failed
            watch.fail(f"the soak itself, {fault}: {error!r}")
        finally:
            with network.lock:
                network.down.pop(name, None)
                network.well_since[name] = time.monotonic()
                with open(self._history, "a") as history:
                    history.write(f"{fault}  {told}\n")

    def _flip(self, fault: Fault, network: Network, watch: Watch, random: Random) -> str:
        name = fault.victim
        network.kill(name)
        time.sleep(fault.lasts_s)
        if name != COORDINATOR:
            told = flip(random, damageable(network.disk(name)))
            network.again(name)
            return "; ".join(told)
        disk, copy = network.disk(name), self.folder / "catalog.copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(disk, copy)
        files = disk.glob("catalog.sqlite*")
        told = flip(random, sorted(file for file in files if file.stat().st_size), 1)
        network.begin(name)
        if network.ready(name):
            return f"{'; '.join(told)}; it started"
        code = network.exit_code(name)
        last = (network.log(name).read_text().splitlines() or [""])[-1]
        if code != 1 or "catalog" not in last:
            watch.fail(f"the coordinator does not name its damaged catalog: exit code {code}, {last}")
        for file in (*disk.glob("*"),):
            file.unlink()
        for file in copy.iterdir():
            shutil.copy2(file, disk / file.name)
        network.again(name)
        return f"{'; '.join(told)}; it said: {last[:200]}"

    # The end

    def _settle(self, network: Network, watch: Watch) -> None:
        """Wait until everything has arrived, or a damaged query says why not."""
        self._sleep(self.seconds + QUIET_S)
        until = time.monotonic() + SETTLE_S
        quiet, before = 0, 0
        while time.monotonic() < until and quiet < UNCHANGED_S:
            time.sleep(1)
            left, produced = self._left(watch), sum(line.produced for line in watch.lines)
            quiet = 0 if left or produced != before else quiet + 1
            before = produced
            self._show(self.seconds, f"settling, {len(left)} left" if left else "settled")
        for text in self._left(watch)[:10]:
            self.failures.append(f"{SETTLE_S:.0f} s after the sources ended: {text}")

    def _left(self, watch: Watch) -> list[str]:
        """What has not arrived, without queries whose damage was named."""
        hurt = {query for query in HURT if query in watch.troubles}
        return [text for query, text in watch.unsettled() if query not in hurt]

    def _end(self, network: Network, watch: Watch, codes: dict[str, int], ended: float) -> None:
        for what, found in (("status", watch.lines), ("topology", watch.nodes), ("queries", watch.queries)):
            (self.folder / f"last-{what}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))
        (self.folder / "memory.json").write_bytes(msgspec.json.encode(watch.memory()))
        self.failures += watch.failures
        self.failures += [f"{name} ended with {code}" for name, code in codes.items() if code]
        before = len(watch.failures)
        memory = watch.check_memory(self._began, ended)
        self.failures += watch.failures[before:]
        checks = Checks(network.disk(GATEWAY) / "log", network.origins, watch.lines, watch.troubles)
        checks.run(watch.lines)
        self.failures += checks.failures
        self._say(f"faults: {dict(self.faults)}")
        self._say(f"status asked {watch.asked} times, answered {watch.answered}; the command {watch.commands} times")
        for text in checks.summary:
            self._say(text)
        grown = sorted(memory.items(), key=lambda each: each[1][0] - each[1][1])
        self._say("memory, MB: " + ", ".join(f"{name} {a:.0f} → {b:.0f}" for name, (a, b) in grown[:6]))
        refused: Counter[str] = Counter()
        for node in watch.nodes:
            refused.update(node.refused)
        self._say(f"refused: {dict(refused)}")
        for query, troubles in watch.troubles.items():
            for text, times in troubles.most_common(3):
                self._say(f"trouble of {query}, {times} s: {text}")
        for text, times in watch.warnings.most_common(12):
            self._say(f"log, {times} times: {text}")
