"""A hundred thousand random and mutated frames thrown at a live worker and a live coordinator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import zmq

from rove.control.asks.requests import AccountLine, Named, NodeLine, Submit, Submitted
from rove.model.batch import Header
from rove.model.errors import ProtocolError
from rove.model.ids import NodeId
from rove.model.messages import (
    PROTOCOL,
    Answer,
    Data,
    Facts,
    Hello,
    Refused,
    Report,
    Sink,
    SourceHere,
    decode,
    encode,
)
from rove.model.schema import schema_text
from rove.runtime.network.client import Client
from tests.data.test_worker import ORIGIN, PLAN, SCHEMA, encode_rows, mutated, rows, some_message
from tests.e2e.cluster import STOP_S_MAX, eventually, free_port

FRAMES = 50_000  # at each of the two
BURST = 250
GROWTH_KB = 60_000  # of a process, over all frames


def started(below: Path, section: str, **settings: object) -> subprocess.Popen[str]:
    lines = [f"[{section}]", *(f"{key} = {value!r}" for key, value in settings.items())]
    (below / f"{section}.toml").write_text("\n".join(lines).replace("'", '"'))
    command = [sys.executable, "-m", "rove.runtime.process", str(below / f"{section}.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready")
    return process


def resident_kb(process: subprocess.Popen[str]) -> int:
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, check=True).stdout)


def thrown(url: str, seed: int) -> tuple[int, int]:
    """Throw frames; how many of them were no messages, and how many were refused in words."""
    random, payload = Random(seed), bytes(encode_rows(rows()) or b"")
    kept = [encode(some_message(random)) for _ in range(200)]
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.connect(url)
    poller = zmq.Poller()
    poller.register(dealer, zmq.POLLIN)
    garbled = refused = 0

    def heard(wait_ms: int) -> None:
        nonlocal refused
        while poller.poll(wait_ms):
            message = decode(dealer.recv_multipart()[0])
            refused += isinstance(message, Refused) or (isinstance(message, Answer) and bool(message.trouble))

    for n in range(FRAMES):
        raw = random.randbytes(random.randint(0, 80)) if random.random() < 0.3 else mutated(random, random.choice(kept))
        parts = [raw] + [mutated(random, payload)] * random.choice((0, 0, 1, 1, 2))
        try:
            decode(raw)
            garbled += len(parts) > 2
        except ProtocolError:
            garbled += 1
        dealer.send_multipart(parts)
        if n % BURST == BURST - 1:
            heard(1)
    heard(1_000)
    context.destroy(linger=0)
    return garbled, refused


class Device:
    """A device that lies about its own rows. It has reported a source, and has a session with a node."""

    def __init__(self, coordinator: str, node: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._control, self._link = (self._context.socket(zmq.DEALER) for _ in range(2))
        self._control.connect(coordinator)
        self._link.connect(node)
        source = SourceHere(stream="s", origin=ORIGIN, columns=schema_text(SCHEMA))
        facts = Facts(
            kind="device", address="", parents=(NodeId("gateway"),), slots=0, memory_bytes=10**6, sources=(source,)
        )
        name = NodeId(ORIGIN.node)
        report = Report(protocol=PROTOCOL, node=name, start=1, number=1, whole=True, facts=facts)
        self._control.send(encode(report))
        self._starts = 0

    def says(self, *headers: Header) -> None:
        """Batches without rows, in a session of their own. One that is refused is not taken, so the next has its
        number."""
        self._starts += 1
        self._link.send(encode(Hello(PROTOCOL, NodeId(ORIGIN.node), self._starts)))
        for header in headers:
            self._link.send(encode(Data(1, header)))

    def refused(self) -> list[str]:
        """Why its messages were refused since the last look."""
        found: list[str] = []
        while self._link.poll(300):
            message = decode(self._link.recv_multipart()[0])
            found += [message.why] if isinstance(message, Refused) else []
        return found

    def close(self) -> None:
        self._context.destroy(linger=0)


def test_counts_that_a_device_forges_of_its_own_rows_end_no_process(tmp_path: Path) -> None:
    """They enter the books of a query that runs, and the node starts again from them."""
    url, gateway_url = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    gateway = {"node": "gateway", "kind": "gateway", "listen": gateway_url, "coordinator": url}
    gateway |= {"folder": str(tmp_path / "gateway")}
    processes = [
        started(tmp_path, "coordinator", listen=url, folder=str(tmp_path / "catalog")),
        started(tmp_path, "worker", **gateway),
    ]
    device, client = Device(url, gateway_url), Client(url, None)

    def lost() -> list[int]:
        lines = client.ask("status", Named(name="q"), list[AccountLine])
        return [line.lost for line in lines if line.origin == str(ORIGIN)]

    def headers(**counts: int) -> list[Header]:
        return [Header(origin=ORIGIN, seq=n, through=n, query="q", **counts) for n in range(10)]

    try:
        assert eventually(lambda: len(client.ask("topology", None, list[NodeLine])) == 2, 10)
        client.ask("submit", Submit(name="q", plan=PLAN, sink=Sink(kind="log")), Submitted)
        device.says(*headers(lost=3)[:1])
        assert eventually(lambda: lost() == [3], 20), "what it says of its own rows is counted"
        device.refused()
        for counts in ({"born": 2**62 - 1}, {"lost": 2**62 - 1}, {"evicted": 2**62 - 1, "belated": 2**62 - 1}):
            device.says(*headers(**counts))
            assert device.refused() == ["malformed"] * 10
        for process in processes:
            assert process.poll() is None
        processes[1].terminate()
        assert processes[1].wait(STOP_S_MAX) == 0
        processes[1] = started(tmp_path, "worker", **gateway)
        assert eventually(lambda: lost() == [3], 20)
        (line,) = (each for each in client.ask("topology", None, list[NodeLine]) if each.node == "gateway")
        assert "bug" not in line.refused
    finally:
        device.close()
        client.close()
        for process in processes:
            process.terminate()
    assert [process.wait(STOP_S_MAX) for process in processes] == [0, 0]


def test_what_is_no_message_is_answered_and_counted_and_nothing_falls_over(tmp_path: Path) -> None:
    url, gateway_url = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    coordinator = started(tmp_path, "coordinator", listen=url, folder=str(tmp_path / "catalog"))
    gateway = started(
        tmp_path,
        "worker",
        node="gateway",
        kind="gateway",
        listen=gateway_url,
        coordinator=url,
        folder=str(tmp_path / "gateway"),
        memory_bytes=10_000_000,
    )
    try:
        client = Client(url, None)
        assert eventually(lambda: bool(client.ask("topology", None, list[NodeLine])), 10)
        for process, address in ((gateway, gateway_url), (coordinator, url)):
            before = resident_kb(process)
            garbled, refused = thrown(address, seed=process.pid % 7)
            assert garbled > FRAMES // 3
            assert refused >= garbled
            assert resident_kb(process) - before < GROWTH_KB
            assert process.poll() is None
        lines = client.ask("topology", None, list[NodeLine])
        (line,) = (line for line in lines if line.node == "gateway")
        assert line.refused["malformed"] > FRAMES // 3
        assert "bug" not in line.refused
    finally:
        for process in (gateway, coordinator):
            process.terminate()
    assert [process.wait(STOP_S_MAX) for process in (gateway, coordinator)] == [0, 0]
