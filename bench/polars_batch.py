"""The queries of `bench/engine.py` in Polars, in one batch over all rows: what a vectorised engine makes of them.

Polars sees all rows at once, so it keeps no state, closes no window and names no batch. It runs on one thread, as the
engine does, and its rows are converted before the clock starts.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # Polars reads it once, when it is imported

import polars as pl
import pyarrow as pa
from polars.testing import assert_frame_equal

BID_COLUMNS = ("auction", "bidder", "price", "dateTime", "extra")
SECOND = pl.duration(seconds=1)


def frame(rows: pa.Table) -> pl.LazyFrame:
    """The same rows in Polars' own memory."""
    if pl.thread_pool_size() != 1:
        raise RuntimeError("Polars was imported before the benchmark and uses all cores; set POLARS_MAX_THREADS=1")
    needed = rows.select(["event_type", "bid"]) if "bid" in rows.column_names else rows
    return pl.from_arrow(needed).rechunk().lazy()


def require_equal(engine: pa.Table, found: pl.DataFrame) -> None:
    """Raise unless the engine's rows are these, in any order. A window is known by its start."""
    ours = pl.from_arrow(engine)
    if "window" in ours.columns:
        ours = ours.with_columns(pl.col("window").struct.field("start"))
    assert_frame_equal(ours.select(found.columns), found, check_row_order=False, check_exact=True)


def bid(name: str) -> pl.Expr:
    return pl.col("bid").struct.field(name)


def q0(events: pl.LazyFrame) -> pl.LazyFrame:
    return events.filter(pl.col("event_type") == 2).select(bid(name) for name in BID_COLUMNS)


def q1(events: pl.LazyFrame) -> pl.LazyFrame:
    return q0(events).with_columns(pl.col("price") * 0.908)


def q2(events: pl.LazyFrame) -> pl.LazyFrame:
    auctions = (pl.col("event_type") == 2) & (bid("auction") % 123 == 0)
    return events.filter(auctions).select(bid("auction"), bid("price"))


def w(readings: pl.LazyFrame) -> pl.LazyFrame:
    grouped = readings.group_by(pl.col("ts").dt.truncate("10s").alias("start"), "key")
    return grouped.agg(pl.len().cast(pl.Int64).alias("n"), pl.col("value").max().alias("top"))


def h(readings: pl.LazyFrame) -> pl.LazyFrame:
    """Sums a second first, then ten of them for each window."""
    seconds = readings.group_by(pl.col("ts").dt.truncate("1s")).agg(pl.col("value").sum())
    windows = seconds.select(
        pl.concat_list(pl.col("ts") - n * SECOND for n in range(10)).alias("start"), "value"
    ).explode("start")
    return windows.group_by("start").agg(pl.col("value").sum().alias("total"))


def q8(person: pl.LazyFrame, auction: pl.LazyFrame) -> pl.LazyFrame:
    start = pl.col("dateTime").dt.truncate("10s").alias("start")
    people = person.select(start, "id", "name")
    sellers = auction.select(start, pl.col("seller").alias("id"), "reserve")
    return people.join(sellers, on=["start", "id"]).select("id", "name", "reserve", "start")
