"""A hundred thousand random and mutated frames thrown at a live worker and a live coordinator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import zmq

from rove.control.asks.requests import NodeLine
from rove.model.errors import ProtocolError
from rove.model.messages import Answer, Refused, decode, encode
from rove.runtime.network.client import Client
from tests.data.test_worker import encode_rows, mutated, rows, some_message
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
