"""The accounts of a query's rows, as sums and as a sentence.

Law: produced = delivered + evicted + late + lost + faulted + in flight, for each line and for all lines together. The
verdict says whether that holds, so readers need not add it up. It names rows in flight that no node has.
"""

from __future__ import annotations

from collections.abc import Sequence

from rove.control.asks.requests import AccountLine
from rove.control.members.accounts import ENDS, excess

__all__ = ["COUNTS", "ENDS", "excess", "total", "verdict"]

COUNTS = (
    "produced",
    "delivered",
    "in_flight",
    "buffered",
    "open",
    "missing",
    "resent",
    "duplicates",
    "evicted",
    "late",
    "lost",
    "faulted",
)


def total(lines: Sequence[AccountLine], query: str = "") -> AccountLine:
    """All lines added up. The lag is that of the origin that is furthest behind."""
    lags = [line.watermark_lag_ms for line in lines if line.watermark_lag_ms is not None]
    sums = {what: sum(getattr(line, what) for line in lines) for what in COUNTS}
    return AccountLine(query=query, origin="", watermark_lag_ms=max(lags, default=None), **sums)


def verdict(lines: Sequence[AccountLine]) -> str:
    """Whether the sums add up, as a sentence."""
    wrong = [line for line in lines if excess(line)]
    if wrong:
        first = wrong[0]
        others = f", and so do {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return (
            f"The sums do not add up: `{first.origin}` of query `{first.query}` has {excess(first):,} rows too many "
            f"for the {first.produced:,} it produced{others}. Rows were counted twice: it is a bug. Please report it "
            "with the output of `rove status --json`."
        )
    whole = total(lines)
    if not whole.produced:
        return "Nothing has been produced yet."
    ends = " + ".join(f"{getattr(whole, end):,} {end.replace('_', ' ')}" for end in ENDS)
    windows = f" ({whole.open:,} of them in open windows)" if whole.open else ""
    said = f"The sums add up: {whole.produced:,} produced = {ends}{windows}."
    gone = [line for line in lines if line.missing]
    if gone:
        first = gone[0]
        others = f", and so are rows of {len(gone) - 1} more lines" if len(gone) > 1 else ""
        said += (
            f" But {first.missing:,} rows of `{first.origin}` for query `{first.query}` are missing{others}. No node "
            f"has batches {first.missing_batches}, and they did not arrive: a node without a disk died with them, or a "
            "disk lost them."
        )
    return said
