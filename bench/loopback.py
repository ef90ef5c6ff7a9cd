"""Runs nodes as processes on this machine's loopback interface, and the same route as a bare pyzmq loop."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pyarrow as pa
import zmq

from rove.data.events import Produced
from rove.data.settings import WorkerSettings
from rove.model.events import COORDINATOR, Arrived
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Fragment, Learned, Orders, Peer, Sink, plan_digest
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Source
from rove.plan.stages import Stages
from rove.runtime.adapters.sources import generated, read_spec
from rove.runtime.clock import now_us, wall_us
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.memory import keep_freed_memory, look_for_cycles_seldom
from rove.runtime.network.bell import Bell
from rove.runtime.network.keys import Keys, new_keys
from rove.runtime.network.zeromq import Wires
from rove.runtime.shell import WorkerShell

COLUMNS = "a bigint, b bigint"
SCHEMA = parse_schema(COLUMNS)
ROW_BYTES = 16
TRAMS = "tram string, ts timestamp, riders int"  # what a generated source has, of about as many bytes
PLAN = codec.encode(Stages.of({"out": Source("s", SCHEMA)}))
ORIGIN = Origin("s", "device")
MEMORY_BYTES = 64 * 1024 * 1024
# Processes are forked from one that has only done the imports, because importing takes each process seconds.
NODES = multiprocessing.get_context("forkserver")
NODES.set_forkserver_preload(["bench.loopback"])


def rows_of(size: int) -> pa.RecordBatch:
    """A batch with so many bytes of rows."""
    column = pa.array(range(max(1, size // ROW_BYTES)), pa.int64())
    return pa.RecordBatch.from_arrays([column, column], schema=SCHEMA)


def fragment(next: str | None, logs: bool = False) -> Fragment:
    """A fragment that only passes rows on, or the end of a query: in a log, or nowhere."""
    return Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=plan_digest(PLAN),
        runs=(),
        makes={},
        waits={Stage(0): (ORIGIN,)},
        next=None if next is None else NodeId(next),
        sinks={Stage(0): Sink(kind="log" if logs else "discard")} if next is None else {},
        feeds=(ORIGIN,),
    )


@dataclass(slots=True)
class Node:
    """A worker and its sockets. It gets its fragments without a coordinator."""

    shell: WorkerShell
    wires: Wires

    @classmethod
    def start(
        cls,
        name: str,
        parent: Peer | None,
        keys: Keys | None,
        children: tuple[Peer, ...],
        listens: bool,
        folder: str = "",
    ) -> Node:
        """With a folder the node has a disk and a log, as a gateway does."""
        keep_freed_memory()
        look_for_cycles_seldom()
        wires = Wires("tcp://127.0.0.1:0" if listens else "", keys)
        settings = WorkerSettings(
            node=NodeId(name),
            kind="edge" if parent is not None else "gateway",
            address=wires.address,
            parents=() if parent is None else (parent.node,),
            memory_bytes=MEMORY_BYTES,
            report_us=10**12,
            keys=keys is not None,
        )
        shelf = None
        if folder:
            bell = Bell()
            wires.watch(bell.descriptor)
            shelf = DiskShelf(folder, bell)
        shell = WorkerShell(settings, wires, shelf=shelf)
        peers = (*children, *(() if parent is None else (parent,)))
        part = fragment(None if parent is None else parent.node, logs=bool(folder))
        below = Learned(0, tuple((child.node, ORIGIN.node) for child in children))
        orders = Orders(PROTOCOL, (part,), (), peers, plans={part.plan: PLAN}, learn=below)
        shell.round([Arrived(COORDINATOR, orders)])
        return cls(shell, wires)

    def turn(self, wait_ms: int = 0) -> None:
        self.shell.round(self.wires.receive(wait_ms))

    @property
    def taken(self) -> int:
        counts = self.shell.worker.output.counts
        return next(iter(counts.values())).delivered if counts else 0


def relay(pipe: Connection, name: str, keys: Keys | None, children: tuple[Peer, ...], timed: bool, folder: str) -> None:
    """A node in its own process. It gets its parent, reports its address, and runs until it is told to stop. The last
    node reports how many rows it took, and the latency of batches."""
    node = Node.start(name, pipe.recv(), keys, children, listens=True, folder=folder)
    latencies: list[int] = []
    if timed:
        output = node.shell.worker.output
        discard = output._discard

        def clocked(query: str, stage: Stage, header: Any) -> None:
            latencies.append(wall_us() - header.produced_at)
            discard(query, stage, header)

        output._discard = clocked  # type: ignore[method-assign]
    pipe.send(node.wires.address)
    while not pipe.poll():
        for _ in range(20):
            node.turn(1)
    pipe.send((node.taken, latencies))
    node.shell.stop()
    node.wires.close()


@contextmanager
def chain(hops: int, keyed: bool, timed: bool = False, folder: str = "") -> Iterator[tuple[Node, Connection]]:
    """A source in this process and so many nodes above it, each in its own process. With a folder, the last has a
    log."""
    names = ["device", *(f"hop{n}" for n in range(1, hops + 1))]
    keys = {name: new_keys() if keyed else None for name in names}

    def peer(name: str, address: str = "") -> Peer:
        pair = keys[name]
        return Peer(node=NodeId(name), address=address, key="" if pair is None else pair.public)

    parent: Peer | None = None
    ends: list[tuple[Any, Connection]] = []
    for below, name in reversed(list(pairwise(names))):
        here, there = NODES.Pipe()
        last = not ends
        args = (there, name, keys[name], (peer(below),), timed and last, folder if last else "")
        process = NODES.Process(target=relay, args=args, daemon=True)
        process.start()
        ends.append((process, here))
    for name, (_, pipe) in zip(reversed(names), ends, strict=False):
        pipe.send(parent)
        parent = peer(name, pipe.recv())
    node = Node.start("device", parent, keys["device"], (), listens=False)
    node.shell.worker.add_source("s", ORIGIN, COLUMNS)
    while not all(link.up for link in node.shell.worker.links().values()):
        node.turn(5)
    try:
        yield node, ends[0][1]
    finally:
        node.wires.close()
        for process, pipe in ends:
            with suppress(OSError):
                pipe.send("stop")
            process.join(5)
            process.kill()


def hop_seconds(size: int, count: int, keyed: bool) -> float:
    """How long so many batches take from a source over one hop to the next node, until all are acked."""
    batch = rows_of(size)
    with chain(1, keyed) as (node, _):
        worker = node.shell.worker
        feed(node, batch, count // 10 + 1)
        start = time.perf_counter()
        feed(node, batch, count)
        while len(worker.store):
            node.turn(1)
        return time.perf_counter() - start


class IntoLog(NamedTuple):
    """The cost of bringing rows from a device through an edge into the log of a gateway."""

    rows_a_second: float
    device_us: float  # CPU time of the device for each batch


def into_log(rows: int, count: int) -> IntoLog:
    """Send batches that were made beforehand, until the last one is durable and the device has forgotten it."""
    batch = rows_of(rows * ROW_BYTES)
    with tempfile.TemporaryDirectory() as folder, chain(2, keyed=False, folder=folder) as (node, last):
        worker, warm = node.shell.worker, count // 10 + 1
        feed(node, batch, warm)
        while len(worker.store):
            node.turn(1)
        start, cpu = time.perf_counter(), time.process_time()
        feed(node, batch, count)
        while len(worker.store):
            node.turn(1)
        seconds, device_s = time.perf_counter() - start, time.process_time() - cpu
        last.send("stop")
        taken, _ = last.recv()
    if taken != (warm + count) * rows:
        raise AssertionError(f"the log has {taken} rows of {(warm + count) * rows}")
    return IntoLog(count * rows / seconds, device_s / count * 1e6)


def made_up_us(rows: int, count: int) -> float:
    """The CPU time that a `generate:` source takes for such a batch."""
    batches = generated(read_spec(f"s=generate:start_us=1000000,rows={rows},batches={count + 1}", TRAMS, "device"))
    next(batches)  # the pool of its values is made with the first
    start = time.process_time()
    for _ in batches:
        pass
    return (time.process_time() - start) / count * 1e6


def feed(node: Node, batch: pa.RecordBatch, count: int) -> None:
    """Produce batches as fast as there is room, and run the shell often enough to receive the acks."""
    worker, shell = node.shell.worker, node.shell
    for n in range(count):
        shell._handle(Produced(ORIGIN, batch, 0))
        if n % 16 == 0:
            node.turn()
        while worker.room < MEMORY_BYTES // 2:
            node.turn(1)


def latencies_us(hops: int, per_second: int, seconds: float, rounds: int) -> list[list[int]]:
    """The latency of batches of a hundred rows from source to sink, at a steady rate, round by round. Between rounds
    all nodes come to rest. The first fifth of a round warms up."""
    batch = rows_of(100 * ROW_BYTES)
    with chain(hops, keyed=False, timed=True) as (node, last):
        every_us, count = 1_000_000 // per_second, int(per_second * seconds)
        for _ in range(rounds):
            due = now_us()
            for _ in range(count):
                while (left := due - now_us()) > 0:
                    node.turn(1 if left > 1_000 else 0)
                node.shell._handle(Produced(ORIGIN, batch, wall_us()))
                node.turn()
                due += every_us
            while len(node.shell.worker.store):
                node.turn(1)
        last.send("stop")
        _, found = last.recv()
        return [list(found)[n * count + count // 5 : (n + 1) * count] for n in range(rounds)]


# The same route without Rove


def bare_receiver(pipe: Connection, keys: Keys | None, count: int) -> None:
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    if keys is not None:
        router.curve_server = True
        router.curve_secretkey = keys.secret.encode()
    port = router.bind_to_random_port("tcp://127.0.0.1")
    pipe.send(port)
    for _ in range(count):
        conn, _, _ = router.recv_multipart(copy=False)
    router.send_multipart([conn.bytes, b"done"])
    pipe.recv()
    context.destroy(linger=0)


def bare_seconds(size: int, count: int, keyed: bool) -> float:
    """How long the same bytes take through a DEALER and a ROUTER and nothing else."""
    payload = rows_of(size).serialize()
    server, client = (new_keys(), new_keys()) if keyed else (None, None)
    here, there = NODES.Pipe()
    warm = count // 10 + 1
    process = NODES.Process(target=bare_receiver, args=(there, server, warm + count), daemon=True)
    process.start()
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    if server is not None and client is not None:
        dealer.curve_serverkey = server.public.encode()
        dealer.curve_publickey, dealer.curve_secretkey = client.public.encode(), client.secret.encode()
    dealer.connect(f"tcp://127.0.0.1:{here.recv()}")
    for _ in range(warm):
        dealer.send_multipart([b"head", payload], copy=size < 262_144)
    start = time.perf_counter()
    for _ in range(count):
        dealer.send_multipart([b"head", payload], copy=size < 262_144)
    dealer.recv()
    seconds = time.perf_counter() - start
    here.send("stop")
    process.join(5)
    context.destroy(linger=0)
    return seconds
