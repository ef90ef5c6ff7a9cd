"""`rove advise`: what to choose, from what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table

if TYPE_CHECKING:
    from rove.control.asks.requests import NodeLine

SPARE = 1.2  # rates go up and down

app = typer.Typer(help="Advice from what was measured.", add_completion=False, no_args_is_help=True)


@app.callback()
def advise() -> None:
    """Advice from what was measured."""


@app.command()
def buffer(
    away: Annotated[
        list[str] | None, typer.Option(help="How long a device may be away, as '30 seconds'. May be given again.")
    ] = None,
    node: Annotated[str, typer.Option(help="One node; all that take rows in if left out.")] = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """How much memory nodes need to lose nothing while they are cut off, at the rates of the last seconds.

    Batches that wait are packed. How much that saves is known of a node once it has been away; until then it counts as
    nothing. A fifth is added, since rates go up and down.
    """
    from rove.control.asks.requests import NodeLine
    from rove.model.clock import duration_text, parse_duration
    from rove.model.errors import SetupError, nearest

    times = [parse_duration(text, "--away") for text in (away or ["30 seconds", "10 minutes"])]
    lines = ask(coordinator, keys, "topology", None, list[NodeLine])
    if node and node not in {line.node for line in lines}:
        raise SetupError(f"no node `{node}`; {nearest(node, [line.node for line in lines])}")
    found = [line for line in lines if line.bytes_per_s >= 1 and node in ("", line.node)]
    if as_json:
        print_json([_advice(line, times) for line in found])
    elif not found:
        print("No node takes rows in now, so there is nothing to measure. Start a query, and ask again.")
    else:
        heads = ("node", "takes in", "packed to", "has", "lasts s", *(f"for {duration_text(t)}" for t in times))
        print_table(heads, [_row(line, times) for line in found])
        print("Give a node what it needs: rove device --memory 50MB, or --data DIR --disk 500MB behind it.")


def needed_bytes(line: NodeLine, away_us: int) -> int:
    """What a node's store must hold so that nothing goes."""
    return int(line.bytes_per_s * (line.packs_to or 1.0) * away_us / 1_000_000 * SPARE)


def _advice(line: NodeLine, times: list[int]) -> dict[str, object]:
    return {
        "node": line.node,
        "bytes_per_s": line.bytes_per_s,
        "packs_to": line.packs_to,
        "memory_bytes": line.memory_bytes,
        "disk_bytes": line.disk_bytes,
        "lasts_ms": line.lasts_ms,
        "needed_bytes": {str(away_us // 1_000_000): needed_bytes(line, away_us) for away_us in times},
    }


def _row(line: NodeLine, times: list[int]) -> tuple[str | int | None, ...]:
    packed = "not known" if line.packs_to is None else f"{line.packs_to:.0%}"
    lasts = None if line.lasts_ms is None else line.lasts_ms // 1_000
    return (
        line.node,
        f"{line.bytes_per_s / 1e6:,.3f} MB/s",
        packed,
        f"{line.room_bytes / 1e6:,.0f} MB",
        lasts,
        *(f"{needed_bytes(line, away_us) / 1e6:,.1f} MB" for away_us in times),
    )
