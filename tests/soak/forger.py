"""A thief with the key of one device, who sends forged, mutated and random frames to the coordinator and all edges.

Law: the thief knows all names: of queries, nodes and origins. He may do harm to rows of his own device, of which there
are none, and to nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import zmq

from rove.data.rows import encode_rows
from rove.model.batch import Header
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version, read_origin
from rove.model.messages import (
    PROTOCOL,
    Ack,
    Answer,
    Ask,
    Beat,
    Data,
    Facts,
    Goodbye,
    Hello,
    Message,
    Orders,
    Peer,
    Refused,
    Report,
    Resend,
    SourceHere,
    Tally,
    TroubleHere,
    Welcome,
    decode,
    encode,
)
from rove.model.schema import parse_schema
from rove.runtime.network.keys import Keys, load_keys
from rove.runtime.network.sockets import Socket, dealer
from tests.data.test_worker import mutated
from tests.soak.network import DEVICES, EDGES, FORGER, GATEWAY
from tests.soak.queries import HURT, KEPT, ROWS, STREAMS

QUERIES = (*KEPT, *HURT)
NUMBERS = (0, 1, 2, 5, 10**6, 2**61, -1)
COUNTS = (0, 0, 0, 3, 2**31, 2**40, 2**62 - 1, 2**63, -7)
VERBS = ("stop", "status", "queries", "submit", "remove", "invite", "revoke", "enlist", "nothing")
MEET_S = 5.0
BURST = 40
WORD = "a forged trouble"  # what the thief says of queries that it does not run
PAUSE_S = 0.05


class Forger:
    """Bursts of bad frames, from one context."""

    def __init__(self, keys: Path, url: str) -> None:
        self._keys: Keys = load_keys(keys)
        self._url = url
        self.sent = self.refused = 0
        schema = parse_schema(STREAMS["readings"])
        rows = pa.record_batch([range(ROWS), range(ROWS), range(ROWS)], schema=schema)
        self._rows = bytes(encode_rows(rows) or b"")

    def throw(self, random: Random, seconds: float, origins: list[str]) -> None:
        """Send frames for some seconds, in the names of these origins."""
        context: zmq.Context[Socket] = zmq.Context()
        try:
            control = dealer(context, self._url, self._keys, self._keys.coordinator)
            sockets = [control]
            start = time.time_ns()
            control.send(encode(self._report(start)))
            for peer in self._peers(control):
                sockets.append(dealer(context, peer.address, self._keys, peer.key))
            time.sleep(0.3)
            for socket in sockets[1:]:
                self._send(socket, [encode(Hello(PROTOCOL, NodeId(FORGER), start))])
            known = [read_origin(text) for text in origins] or [Origin("readings", DEVICES[0])]
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for _ in range(BURST):
                    self._send(random.choice(sockets), self._frame(random, known, start))
                for socket in sockets:
                    self._hear(socket)
                time.sleep(PAUSE_S)
        finally:
            context.destroy(linger=0)

    def _report(self, start: int) -> Report:
        facts = Facts(
            kind="device",
            address="",
            parents=tuple(NodeId(edge) for edge in EDGES),
            slots=0,
            memory_bytes=1_000_000,
            sources=(),
        )
        return Report(protocol=PROTOCOL, node=NodeId(FORGER), start=start, number=1, whole=True, facts=facts)

    def _peers(self, control: Socket) -> tuple[Peer, ...]:
        until = time.monotonic() + MEET_S
        while control.poll(max(0, round((until - time.monotonic()) * 1_000))):
            message = decode(control.recv_multipart()[0])
            if isinstance(message, Orders) and message.peers:
                return tuple(peer for peer in message.peers if peer.address)
        return ()

    def _frame(self, random: Random, known: list[Origin], start: int) -> list[bytes]:
        if random.random() < 0.1:
            return [random.randbytes(random.randint(0, 80)) for _ in range(random.choice((1, 1, 2)))]
        raw = encode(self._message(random, known, start))
        rows = mutated(random, self._rows) if random.random() < 0.5 else self._rows
        parts = [mutated(random, raw) if random.random() < 0.4 else raw]
        return parts + ([rows] if random.random() < 0.5 else [])

    def _message(self, random: Random, known: list[Origin], start: int) -> Message:
        origin, number = random.choice(known), random.choice(NUMBERS)
        query = QueryId(random.choice((*QUERIES, "unknown")))
        seq = random.choice((0, 1, 50, 2**61))
        if random.random() < 0.3:
            return self._of_its_own(random, query, start)
        header = Header(
            query=query,
            origin=origin,
            seq=seq,
            through=random.choice((seq, seq + 5, 2**61)),
            stage=Stage(random.choice((0, 1, 3))),
            rows=random.choice((0, ROWS)),
            born=random.choice((0, ROWS)),
            late=random.random() < 0.1,
        )
        node = NodeId(random.choice((*DEVICES, *EDGES, GATEWAY, FORGER)))
        tally = Tally(query, origin, *(random.choice((0, 5, 1_000)) for _ in range(5)))
        report = Report(
            protocol=PROTOCOL,
            node=node,
            start=start,
            number=random.choice((1, 2, 3)),
            whole=random.random() < 0.5,
            tallies=(tally,),
        )
        asked = random.choice(
            ("stop", "status", "queries", "submit", "remove", "invite", "revoke", "enlist", "nothing")
        )
        return random.choice(
            (
                Hello(PROTOCOL, node, random.choice((start, 1, 2**61))),
                Welcome(PROTOCOL, node, start, 1, abs(number), abs(number)),
                Data(random.choice((1, 2, number)), header),
                Data(random.choice((1, 2, 3)), header),
                Ack(number, number),
                Beat(number, number, number),
                Resend(number),
                Goodbye(node if node != FORGER else NodeId(DEVICES[0])),
                Orders(PROTOCOL, (), tuple(QueryId(name) for name in QUERIES), ()),
                Refused("unexpected", "?"),
                Answer("1", b"{}"),
                Ask(str(random.random()), asked, f'{{"name": "{random.choice((query, node))}"}}'.encode()),
                report,
            )
        )

    def _of_its_own(self, random: Random, query: QueryId, start: int) -> Message:
        """A batch or a report of its own rows, which nobody may refuse for whose it is. If it counts, one of its counts
        cannot be: what it could say of its own rows would be believed, and then the sums were its own."""
        if random.random() < 0.2:
            return self._about_itself(random, query, start)
        counts = random.choice(([0] * 5, [*(random.choice(COUNTS) for _ in range(4)), -7]))
        origin = Origin("readings", NodeId(FORGER))
        if random.random() < 0.3:
            origin = Origin(query, NodeId(FORGER), start, Stage(random.choice((1, 2, 3))))
        if random.random() < 0.2:
            tally = Tally(query, Origin("readings", NodeId(FORGER)), -7, *counts)
            return Report(protocol=PROTOCOL, node=NodeId(FORGER), start=start, number=2, whole=False, tallies=(tally,))
        seq = random.choice((0, 0, 1, 7, 2**61))
        rows = random.choice((0, 0, ROWS + 1))  # not as many as come
        header = Header(
            query=query,
            origin=origin if random.random() < 0.8 else origin.on_side(random.choice((0, 1))),
            seq=seq,
            through=seq if rows else max(seq, random.choice((0, 9, 2**61))),
            watermark=random.choice((0, 2**62, -(2**62))),
            stage=Stage(random.choice((0, 0, 1, 2, 3, 5))),
            rows=rows,
            born=counts[0],
            evicted=counts[1],
            lost=counts[2],
            faulted=counts[3],
            belated=counts[4],
            late=random.random() < 0.1,
            packed=random.choice((0, 0, 64, 2**40)),
            folded=random.random() < 0.1,
            state=random.random() < 0.1,
        )
        return Data(random.choice((1, 1, 2, 3)), header)

    def _about_itself(self, random: Random, query: QueryId, start: int) -> Report:
        """A report in its own name, which says that it runs, holds, lacks and reaches what it does not."""
        trouble = TroubleHere(WORD, holds=True, final=random.random() < 0.5, fault=random.random() < 0.5, lacks="f")
        stream = random.choice((*STREAMS, f"forged{random.randrange(10**6)}"))
        named = NodeId(random.choice((FORGER, *DEVICES)))
        source = SourceHere(stream=stream, origin=Origin(stream, named, start), columns="forged int")
        facts = self._report(start).facts
        assert facts is not None
        return Report(
            protocol=PROTOCOL,
            node=NodeId(FORGER),
            start=random.choice((start, start + 1)),
            number=random.choice((1, 2, 3, 2**61)),
            whole=random.random() < 0.5,
            facts=msgspec.structs.replace(facts, sources=(source,)) if random.random() < 0.3 else None,
            running={query: Version(random.choice((1, 7, 2**61)))} if random.random() < 0.5 else {},
            ended=(query,) if random.random() < 0.3 else (),
            unknown=tuple(QueryId(f"forged{random.randrange(10**6)}") for _ in range(random.choice((0, 1, 200)))),
            troubles={query: (trouble,)},
            reaches=tuple(NodeId(edge) for edge in random.sample((*EDGES, *DEVICES), 3)),
            obeyed=random.choice(NUMBERS),
        )

    def _send(self, socket: Socket, parts: list[bytes]) -> None:
        try:
            socket.send_multipart(parts, zmq.NOBLOCK)
            self.sent += 1
        except zmq.Again:
            return

    def _hear(self, socket: Socket) -> None:
        while socket.poll(0):
            message = decode(socket.recv_multipart()[0])
            self.refused += isinstance(message, Refused) or (isinstance(message, Answer) and bool(message.trouble))
