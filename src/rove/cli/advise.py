"""`rove advise`: advice on settings, from measured rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table

if TYPE_CHECKING:
    from rove.control.asks.requests import NodeLine

SPARE = 1.2  # a margin, because rates go up and down

app = typer.Typer(help="Advice on settings, from measured rates.", add_completion=False, no_args_is_help=True)


@app.callback()
def advise() -> None:
    """Advice on settings, from measured rates."""


@app.command()
def buffer(
    away: Annotated[
        list[str] | None, typer.Option(help="How long a device may be away, such as '30 seconds'. Can be repeated.")
    ] = None,
    node: Annotated[str, typer.Option(help="One node. Default: all nodes that take rows in.")] = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """How much memory a node needs to lose nothing while it is cut off, at the rates of the last seconds.

    Waiting batches are compressed. How much that saves is known once a node has been away; until then no saving is
    assumed. A fifth is added, because rates go up and down.
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
        print("No node takes rows in now, so there is nothing to measure. Start a query and ask again.")
    else:
        heads = ("node", "takes in", "packed to", "has", "lasts s", *(f"for {duration_text(t)}" for t in times))
        print_table(heads, [_row(line, times) for line in found])
        print("Set it with: rove device --memory 50MB, or with a disk as well: --data DIR --disk 500MB.")


def needed_bytes(line: NodeLine, away_us: int) -> int:
    """The bytes that a node's store must hold so that nothing is evicted."""
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
