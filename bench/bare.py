"""The queries of `bench/engine.py` as bare loops of pyarrow kernels: the speed that the engine is measured against."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

Feed = list[tuple[str, pa.RecordBatch]]
SIZE_US, SLIDE_US, DELAY_US = 10_000_000, 1_000_000, 2_000_000
BIDS, RATE = pa.scalar(2, pa.int32()), pa.scalar(0.908)
NOUGHT, STEP = pa.scalar(0, pa.int64()), pa.scalar(123, pa.int64())
SIZE, SLIDE = pa.scalar(SIZE_US, pa.int64()), pa.scalar(SLIDE_US, pa.int64())
BID_COLUMNS = ["auction", "bidder", "price", "dateTime", "extra"]


def q0(feed: Feed) -> int:
    out = 0
    for _, batch in feed:
        mask = pc.equal(batch.column("event_type"), BIDS)
        bid = batch.column("bid")
        rows = pa.RecordBatch.from_arrays([pc.struct_field(bid, n) for n in BID_COLUMNS], names=BID_COLUMNS)
        out += rows.filter(mask).num_rows
    return out


def q1(feed: Feed) -> int:
    out = 0
    for _, batch in feed:
        mask = pc.equal(batch.column("event_type"), BIDS)
        bid = batch.column("bid")
        rows = pa.RecordBatch.from_arrays([pc.struct_field(bid, n) for n in BID_COLUMNS], names=BID_COLUMNS)
        rows = rows.filter(mask)
        euros = pc.multiply(rows.column("price").cast(pa.float64()), RATE)
        columns = [rows.column(0), rows.column(1), euros, rows.column(3), rows.column(4)]
        out += pa.RecordBatch.from_arrays(columns, names=BID_COLUMNS).num_rows
    return out


def q2(feed: Feed) -> int:
    out = 0
    for _, batch in feed:
        bid = batch.column("bid")
        auction, price = pc.struct_field(bid, "auction"), pc.struct_field(bid, "price")
        rest = pc.remainder(auction, STEP)
        mask = pc.and_(pc.equal(batch.column("event_type"), BIDS), pc.equal(rest, NOUGHT))
        out += pa.RecordBatch.from_arrays([auction, price], names=["auction", "price"]).filter(mask).num_rows
    return out


def w(feed: Feed) -> int:
    """Aggregate each batch by window and key, merge and emit what the watermark has passed."""
    out, partials, newest, closed = 0, [], 0, 0
    for _, batch in feed:
        micros = batch.column("ts").cast(pa.int64())
        start = pc.subtract(micros, pc.remainder(micros, SIZE))
        table = pa.table({"start": start, "key": batch.column("key"), "value": batch.column("value")})
        grouped = pa.TableGroupBy(table, ["start", "key"], use_threads=False)
        partials.append(grouped.aggregate([("value", "count"), ("value", "max")]))
        newest = max(newest, pc.max(micros).as_py())
        bound = (newest - DELAY_US) // SIZE_US * SIZE_US
        if bound > closed:
            closed = bound
            merged = _merged(partials)
            done = pc.less(merged["start"], pa.scalar(bound, pa.int64()))
            out += merged.filter(done).sort_by([("start", "ascending"), ("key", "ascending")]).num_rows
            partials = [merged.filter(pc.invert(done))]
    return out + _merged(partials).sort_by([("start", "ascending"), ("key", "ascending")]).num_rows


def _merged(partials: list[pa.Table]) -> pa.Table:
    grouped = pa.TableGroupBy(pa.concat_tables(partials), ["start", "key"], use_threads=False)
    merged = grouped.aggregate([("value_count", "sum"), ("value_max", "max")])
    return merged.select(["start", "key", "value_count_sum", "value_max_max"]).rename_columns(
        ["start", "key", "value_count", "value_max"]
    )


def h(feed: Feed) -> int:
    """Sum each batch by second, then add up ten seconds for each window the watermark has passed."""
    out, sums, newest, following = 0, {}, 0, None
    panes = SIZE_US // SLIDE_US
    for _, batch in feed:
        micros = batch.column("ts").cast(pa.int64())
        bounds = pc.min_max(micros)
        newest = max(newest, bounds["max"].as_py())
        pane = pc.divide(micros, SLIDE)
        table = pa.table({"pane": pane, "value": batch.column("value")})
        grouped = pa.TableGroupBy(table, ["pane"], use_threads=False).aggregate([("value", "sum")])
        for number, total in zip(grouped["pane"].to_pylist(), grouped["value_sum"].to_pylist(), strict=True):
            sums[number] = sums.get(number, 0) + total
        if following is None:
            following = min(sums) - panes + 1
        last = (newest - DELAY_US) // SLIDE_US - panes
        while following <= last:
            out += any(following + i in sums for i in range(panes))
            sum(sums.get(following + i, 0) for i in range(panes))
            sums.pop(following, None)
            following += 1
    return out + sum(any(first + i in sums for i in range(panes)) for first in range(following or 0, max(sums) + 1))


def q8(feed: Feed) -> int:
    """Keep both sides by window, join a window when both streams have passed it."""
    out = 0
    sides: dict[str, dict[int, list[pa.Table]]] = {"person": {}, "auction": {}}
    newest = {"person": 0, "auction": 0}
    for stream, batch in feed:
        micros = batch.column("dateTime").cast(pa.int64())
        start = pc.subtract(micros, pc.remainder(micros, SIZE))
        columns = ["id", "name"] if stream == "person" else ["seller", "reserve"]
        names = ["id", "name"] if stream == "person" else ["id", "reserve"]
        rows = pa.table([batch.column(c) for c in columns], names=names)
        bounds = pc.min_max(start)
        for each in range(bounds["min"].as_py(), bounds["max"].as_py() + 1, SIZE_US):
            part = rows.filter(pc.equal(start, pa.scalar(each, pa.int64())))
            if part.num_rows:
                sides[stream].setdefault(each, []).append(part)
        newest[stream] = max(newest[stream], pc.max(micros).as_py())
        low = min(newest.values()) - DELAY_US
        for each in [s for s in sides["person"] if s + SIZE_US <= low]:
            out += _joined(sides, each)
    return out + sum(_joined(sides, each) for each in sorted(sides["person"]))


def _joined(sides: dict[str, dict[int, list[pa.Table]]], start: int) -> int:
    people, sellers = sides["person"].pop(start, []), sides["auction"].pop(start, [])
    if not people or not sellers:
        return 0
    joined = pa.concat_tables(people).join(pa.concat_tables(sellers), "id", join_type="inner", use_threads=False)
    moment = pa.repeat(pa.scalar(start, pa.timestamp("us", tz="UTC")), joined.num_rows)
    return joined.append_column("start", moment).num_rows
