"""The queries that runtime tests run, and what they should give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.data.fragment.local import run
from rove.model.batch import HeaderKind
from rove.model.ids import Origin
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.runtime.disk.disk import open_reader

COLUMNS = "train string, coach int, ts timestamp, boarding int, alighting int"


def trains() -> Stream:
    return rove.Session.local().stream("trains", schema=COLUMNS)


def busy() -> Operator:
    """A filter and a projection."""
    return optimize(trains().where("boarding > 40").select("train", "ts", "boarding").plan)


def windows(where: str) -> Operator:
    """Windows over all trains, begun on the devices and merged at a place."""
    counted = (
        trains()
        .withWatermark("ts", "5 seconds")
        .at("device")
        .groupBy(F.window("ts", "1 second"), "train")
        .agg(F.sum("boarding").alias("on"), F.count("*").alias("rows"))
        .at(where)
    )
    return optimize(counted.plan)


def staged(plan: Operator) -> Stages:
    return Stages.of({"out": plan})


def computed(plan: Operator, rows: Mapping[Origin, list[pa.RecordBatch]]) -> pa.Table:
    """What a plan gives over all rows, by origin."""
    return run({"out": plan}, {"trains": rows})["out"].rows


def as_rows(tables: Iterable[pa.Table | pa.RecordBatch]) -> list[tuple[object, ...]]:
    """Rows without an order."""
    return sorted(tuple(map(str, row.values())) for table in tables for row in table.to_pylist())


def in_log(folder: object) -> tuple[list[pa.RecordBatch], list[tuple[Origin, int, int]]]:
    """The batches with rows in a partition, and the names of all its batches."""
    reader, batches, names = open_reader(str(folder)), [], []
    while entries := reader.entries():
        for entry in entries:
            if entry.header.kind is HeaderKind.BATCH:
                names.append((entry.header.origin, entry.header.seq, entry.header.through))
            if (batch := reader.read(entry)) is not None:
                batches.append(batch)
    return batches, names
