"""`rove demo`: trains on a ring line move from cell to cell. At the end it proves that no row was lost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rove.model.ids import SOURCE, read_origin

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rove.api.query import Query
    from rove.api.session import Session
    from rove.api.stream import Stream
    from rove.services.transit.journeys import Journeys

LOOKS_PER_S = 4
ARRIVES_S = 5  # after the last call all trains are in a cell, and send what they have kept


def demo(
    trains: Annotated[int, typer.Option(help="How many trains run.", min=1, max=100)] = 12,
    minutes: Annotated[
        int, typer.Option(help="How long the trains run, in minutes of event time.", min=4, max=600)
    ] = 40,
    seconds: Annotated[int, typer.Option(help="How long the demo takes, in seconds.", min=5, max=3_600)] = 30,
    seed: Annotated[int, typer.Option(help="The same seed gives the same passengers.")] = 1,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder with the real Berlin ring, its towers and calls, if you have it."),
    ] = None,
) -> None:
    """Trains count passengers while they move from cell to cell. One query ends in Spark, one on an edge node. At the
    end both are compared with a batch Spark job."""
    from rich.console import Console

    import rove
    from rove.api.troubles import DEPLOYED
    from rove.services.transit import passengers, queries, timetable
    from rove.services.transit.journeys import Journeys
    from rove.services.transit.ring import drawn_ring, real_ring

    console = Console()
    ring = drawn_ring() if data is None else real_ring(data)
    calls = timetable.drawn(ring, trains, minutes) if data is None else timetable.real(ring, data, trains, minutes)
    rows = passengers.counted(calls, seed)
    longest = max(map(len, rows.values()))
    cells = [cell.name for cell in ring.cells]
    with rove.Session.local(edges={"ring": "gateway", **dict.fromkeys(cells, "ring")}) as session:
        stream = session.stream("trains", schema=passengers.SCHEMA, data=rows)
        console.print(
            f"\n[bold]A ring line with {len(rows)} trains.[/] At every stop each train counts who boards and alights, "
            f"coach by coach. The trains run for {minutes} minutes, shown here in {seconds} seconds. Each train is a "
            f"device. It moves through {len(cells)} radio cells, which send to an edge node of the line, which sends "
            "to the gateway. Between two cells there is no network: a train goes on counting, keeps its counts, and "
            "sends them to the next cell.\n"
        )
        occupancy, alert = queries.occupancy(stream), queries.overcrowding(stream)
        with console.status("starting the nodes, and Spark …"):
            journeys = Journeys(session.world, ring, calls)
            by_train = session.data_of(stream)["trains"]
            session.world.feed("trains", stream.plan.schema, by_train, longest / seconds, cells)
            overcrowding = alert.writeStream.queryName("overcrowding").format("files").on("ring").start("alerts")
            occupied = occupancy.writeStream.toTable("occupancy")
            _wait(lambda: all(q.listed().state in DEPLOYED for q in (occupied, overcrowding)), 60)
        for title, query in (
            ("Query 1: how many got on and off each train, every 30 seconds, in Spark", occupied),
            ("Query 2: coaches that fill up fast, on the edge node of the line", overcrowding),
        ):
            console.print(f"[bold]{title}[/]")
            query.explain()
            console.print()
        watch(console, session, [occupied, overcrowding], journeys, seconds)
        with console.status("waiting for the last rows, and asking batch Spark for its answer …"):
            occupied.processAllAvailable()
            overcrowding.processAllAvailable()
            proofs = [
                prove(session, occupied, occupancy, session.table("occupancy")),
                prove(session, overcrowding, alert, files(session, "ring", "alerts")),
            ]
        verdict(console, proofs)


# While the trains run


def watch(console: Console, session: Session, queries: list[Query], journeys: Journeys, seconds: float) -> None:
    """Move the trains from cell to cell and show their state."""
    from rich.live import Live

    session.world.play()
    begin = time.monotonic()
    with Live(console=console, refresh_per_second=LOOKS_PER_S, transient=False) as live:
        while (gone := time.monotonic() - begin) < seconds + 1:
            journeys.go(gone / seconds)
            live.update(scene(queries, journeys))
            time.sleep(1 / LOOKS_PER_S)
        journeys.arrive()
        _wait(lambda: _told(queries[0]), ARRIVES_S)
        live.update(scene(queries, journeys))
    console.print()


def scene(queries: list[Query], journeys: Journeys) -> Table:
    """A table of the trains as they are now, with the queries below."""
    from rich.table import Table

    occupied = queries[0]
    lines = [(read_origin(line.origin), line) for line in occupied.accounts]
    counted = {origin.node: line for origin, line in lines if origin.stage == SOURCE}
    sent = {origin.node: line for origin, line in lines if origin.stage != SOURCE}
    table = Table(title="Trains now", title_justify="left")
    for head in ("train", "cell", "rows counted", "results made", "arrived", "kept on board", "resent"):
        table.add_column(
            head, justify="left" if head in ("train", "cell") else "right", no_wrap=head in ("train", "cell")
        )
    for train, cell in journeys.cells.items():
        net = "[red]none" if cell is None else f"[green]{cell}"
        rows, results = counted.get(train), sent.get(train)
        made, arrived, resent = (results.produced, results.delivered, results.resent) if results else (0, 0, 0)
        counts = (rows.produced if rows else 0, made, arrived, max(0, made - arrived), resent)
        table.add_row(train, net, *(f"{n:,}" for n in counts))
    spark = occupied.spark
    said = "is starting"
    if spark is not None and spark.batch >= 0:
        said = f"has done {spark.batch + 1} batches; its watermark is at {spark.watermark[11:19] or 'the beginning'}"
    table.caption = (
        f"Spark {said}. Trains came to another cell {journeys.moves} times and lost the network {journeys.gaps} times."
    )
    return table


def _told(query: Query) -> bool:
    """Whether all counted rows have arrived and all nodes have reported it."""
    from rove.api.accounts import excess

    return not any(line.in_flight > line.open or excess(line) for line in query.accounts)


def _wait(condition: Any, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


# The result


@dataclass(frozen=True, slots=True)
class Proof:
    """The rows and results of one query, beside those of the batch job."""

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
    """Compare the results of a query with those of one batch Spark job over all rows."""
    import pyarrow as pa

    from rove.cloud.compile import compile_plan
    from rove.cloud.start.session import frame_of, spark_session

    spark = spark_session()
    rows = {
        name: frame_of(spark, pa.Table.from_batches([b for batches in by_origin.values() for b in batches]))
        for name, by_origin in session.data_of(stream).items()
    }
    judge = compile_plan(stream.plan, rows).toArrow()
    lines = query.accounts
    counted = [line for line in lines if read_origin(line.origin).stage == SOURCE]  # not partial aggregates
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
    """The rows that a query wrote into files on a node."""
    import pyarrow as pa

    from rove.runtime.disk.disk import open_reader

    reader, batches = open_reader(session.world.folder / node / folder), []
    while entries := reader.entries():
        batches += [rows for entry in entries if (rows := reader.read(entry)) is not None]
    return pa.Table.from_batches(batches)


def verdict(console: Console, proofs: list[Proof]) -> None:
    """Print the table at the end, and a sentence that sums it up."""
    from rich.table import Table

    table = Table(title="The result", title_justify="left")
    table.add_column("")
    for p in proofs:
        table.add_column(p.query, justify="right")
    lines: dict[str, list[int]] = {
        "rows produced by the trains": [p.produced for p in proofs],
        "delivered": [p.delivered for p in proofs],
        "late": [p.late for p in proofs],
        "lost": [p.lost for p in proofs],
        "duplicates, dropped on arrival": [p.duplicates for p in proofs],
        "results of the stream": [p.results for p in proofs],
        "results of one batch Spark job": [p.judged for p in proofs],
    }
    for name, counts in lines.items():
        table.add_row(name, *(f"{n:,}" for n in counts))
    table.add_row("the same rows?", *("[green]yes" if p.equal else "[bold red]no" for p in proofs))
    console.print(table)
    if all(p.equal and p.produced == p.delivered + p.late and not p.lost for p in proofs):
        console.print(
            "\nEvery row that a train counted has arrived exactly once, also those counted without a network. The "
            "results of both queries equal those of one batch Spark job over all rows.\n"
        )
        return
    console.print("\n[bold red]Rows are missing or results differ. This is a bug; please report it with the seed.[/]\n")
    raise typer.Exit(1)


def _sorted(table: Any) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())
