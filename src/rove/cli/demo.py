"""`rove demo`: trains on a ring line lose the net and find it again, and at the end the proof that no row was lost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rove.api.query import Query
    from rove.api.session import Session
    from rove.api.stream import Stream

EDGES = {"ring": "gateway", "cell-west": "ring", "cell-centre": "ring", "cell-east": "ring"}
TUNNEL_S = (3.0, 9.0)  # how long a train may be without a net
LOOKS_PER_S = 4


def demo(
    trains: Annotated[int, typer.Option(help="How many trains run.", min=1, max=100)] = 12,
    minutes: Annotated[int, typer.Option(help="How long they run, in event time.", min=4, max=600)] = 40,
    seconds: Annotated[int, typer.Option(help="How long that takes here.", min=5, max=3_600)] = 25,
    seed: Annotated[int, typer.Option(help="The same seed gives the same passengers.")] = 1,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Real calls of the Berlin ring, if you have them.")
    ] = None,
) -> None:
    """Trains count passengers while they lose the net; one query ends in Spark, one on an edge; batch Spark judges."""
    from rich.console import Console

    import rove
    from rove.services.transit import passengers, queries, timetable

    console = Console()
    calls = timetable.drawn(trains, minutes) if data is None else timetable.real(data, trains, minutes)
    rows = passengers.counted(calls, seed)
    longest = max(map(len, rows.values()))
    with rove.Session.local(edges=EDGES) as session:
        stream = session.stream("trains", schema=passengers.SCHEMA, data=rows)
        console.print(
            f"\n[bold]A ring line with {len(rows)} trains.[/] Each counts who boards and alights, coach by coach, at "
            f"every call of {minutes} minutes, which take {seconds} seconds here. Trains are devices of their own "
            "below three cells of a radio net, which hand on to an edge node of the line and that to the gateway. Now "
            "and then a train is without a net; it goes on counting, and keeps what it has counted.\n"
        )
        occupancy, alert = queries.occupancy(stream), queries.overcrowding(stream)
        with console.status("starting the nodes, and Spark …"):
            session.world.feed("trains", stream.plan.schema, session.data_of(stream)["trains"], longest / seconds)
            overcrowding = alert.writeStream.queryName("overcrowding").format("files").on("ring").start("alerts")
            occupied = occupancy.writeStream.toTable("occupancy")
            _wait(lambda: all(q.status().state == "running" for q in (occupied, overcrowding)), 60)
        for title, query in (
            ("Query 1, who got on and off each train, every 30 seconds, in Spark", occupied),
            ("Query 2, coaches that fill up fast, on the edge node of the line", overcrowding),
        ):
            console.print(f"[bold]{title}[/]")
            query.explain()
            console.print()
        watch(console, session, [occupied, overcrowding], Random(seed), seconds)
        with console.status("waiting for the last rows, and asking batch Spark for its answer …"):
            occupied.processAllAvailable()
            overcrowding.processAllAvailable()
            proofs = [
                prove(session, occupied, occupancy, session.table("occupancy")),
                prove(session, overcrowding, alert, files(session, "ring", "alerts")),
            ]
        verdict(console, proofs)


# What happens meanwhile


def watch(console: Console, session: Session, queries: list[Query], random: Random, seconds: float) -> None:
    """Let the trains run, take the net from some of them for a while, and show how they do."""
    from rich.live import Live

    tunnels = Tunnels(session, random, seconds)
    session.world.play()
    with Live(console=console, refresh_per_second=LOOKS_PER_S, transient=False) as live:
        end = time.monotonic() + seconds + 1
        while time.monotonic() < end:
            tunnels.pass_by()
            live.update(scene(session, queries, tunnels))
            time.sleep(1 / LOOKS_PER_S)
        tunnels.leave_all()
        live.update(scene(session, queries, tunnels))


class Tunnels:
    """Which trains are without a net, and until when. About one in four is, at any time."""

    def __init__(self, session: Session, random: Random, seconds: float) -> None:
        self._session, self._random = session, random
        cells = session.world.edges
        names = sorted(line.node for line in session.world.nodes() if line.kind == "device")
        links = {line.node: line.links for line in session.world.nodes()}
        self.cells = {name: next(c for c in links[name] if c in cells) for name in names}
        begin = time.monotonic()
        self._due = [(begin + random.uniform(1, seconds * 0.8), random.choice(names)) for _ in range(len(names))]
        self.inside: dict[str, float] = {}
        self.passed = 0

    def pass_by(self) -> None:
        now = time.monotonic()
        for at, train in [due for due in self._due if due[0] <= now]:
            self._due.remove((at, train))
            if train not in self.inside:
                self.inside[train] = now + self._random.uniform(*TUNNEL_S)
                self.passed += 1
                self._session.world.cut(train, self.cells[train])
        for train in [t for t, until in self.inside.items() if until <= now]:
            self._leave(train)

    def leave_all(self) -> None:
        for train in list(self.inside):
            self._leave(train)

    def _leave(self, train: str) -> None:
        del self.inside[train]
        self._session.world.mend(train, self.cells[train])


def scene(session: Session, queries: list[Query], tunnels: Tunnels) -> Table:
    """The trains as they are now, and the queries below them."""
    from rich.table import Table

    occupied = queries[0]
    counted = {_train(line.origin): line for line in occupied.accounts if line.origin.startswith("trains/")}
    sent = {_train(line.origin): line for line in occupied.accounts if not line.origin.startswith("trains/")}
    table = Table(title="Trains now", title_justify="left")
    for head in ("train", "net", "rows counted", "results made", "arrived", "kept on board", "resent"):
        table.add_column(head, justify="left" if head in ("train", "net") else "right")
    for train, cell in tunnels.cells.items():
        net = "[red]none" if train in tunnels.inside else f"[green]{cell}"
        rows, results = counted.get(train), sent.get(train)
        made, arrived, resent = (results.produced, results.delivered, results.resent) if results else (0, 0, 0)
        counts = (rows.produced if rows else 0, made, arrived, made - arrived, resent)
        table.add_row(train, net, *(f"{n:,}" for n in counts))
    spark = occupied.spark
    said = "is starting" if spark is None or spark.batch < 0 else f"has done {spark.batch + 1} batches"
    table.caption = f"Spark {said}. {tunnels.passed} times a train was without a net."
    return table


def _train(origin: str) -> str:
    """The train in the name of its rows, or of its results."""
    return origin.partition("~")[0].rpartition("/")[2]


def _wait(condition: Any, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


# What came of it


@dataclass(frozen=True, slots=True)
class Proof:
    """One query's rows and answer, beside the judge's."""

    query: str
    produced: int
    delivered: int
    late: int
    lost: int
    duplicates: int
    results: int
    judged: int
    equal: bool


def prove(session: Session, query: Query, stream: Stream, answer: Any) -> Proof:
    """What a query answered, and what one batch Spark job over all rows says."""
    import pyarrow as pa

    from rove.cloud.compile import compile_plan
    from rove.cloud.session import frame_of, spark_session

    spark = spark_session()
    rows = {
        name: frame_of(spark, pa.Table.from_batches([b for batches in by_origin.values() for b in batches]))
        for name, by_origin in session.data_of(stream).items()
    }
    judge = compile_plan(stream.plan, rows).toArrow()
    lines = query.accounts
    counted = [line for line in lines if line.origin.startswith("trains/")]  # the others are of partial results
    return Proof(
        query=query.name,
        produced=sum(line.produced for line in counted),
        delivered=sum(line.delivered for line in counted),
        late=sum(line.late for line in lines),
        lost=sum(line.lost + line.evicted for line in lines),
        duplicates=sum(line.duplicates for line in lines),
        results=answer.num_rows,
        judged=judge.num_rows,
        equal=_sorted(answer) == _sorted(judge),
    )


def files(session: Session, node: str, folder: str) -> Any:
    """What a query wrote on a node."""
    import pyarrow as pa

    from rove.runtime.disk import open_reader

    reader, batches = open_reader(session.world.folder / node / folder), []
    while entries := reader.entries():
        batches += [rows for entry in entries if (rows := reader.read(entry)) is not None]
    return pa.Table.from_batches(batches)


def verdict(console: Console, proofs: list[Proof]) -> None:
    """The table at the end, and in a sentence what it says."""
    from rich.table import Table

    table = Table(title="What came of it", title_justify="left")
    heads = ("query", "rows", "arrived", "late", "lost", "doubles", "results", "in batch", "equal")
    for head in heads:
        table.add_column(head, justify="left" if head == "query" else "right")
    for p in proofs:
        counts = (p.produced, p.delivered, p.late, p.lost, p.duplicates, p.results, p.judged)
        table.add_row(p.query, *(f"{n:,}" for n in counts), "[green]yes" if p.equal else "[bold red]no")
    console.print(table)
    if all(p.equal and p.produced == p.delivered + p.late and not p.lost for p in proofs):
        console.print(
            "\nEvery row that a train counted has arrived once, those counted without a net as well, and both answers "
            "equal those of one batch Spark job over all of them.\n"
        )
        return
    console.print(
        "\n[bold red]Rows are missing or the answers differ: this is a bug, please report it with the seed.[/]\n"
    )
    raise typer.Exit(1)


def _sorted(table: Any) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())
