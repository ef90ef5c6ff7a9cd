"""Tables of Parquet files that queries in Spark write, and how they are read.

Law: a table has its columns before it has rows. What Spark's sink has not committed is not in a table: a folder with a
`_spark_metadata` is read as that says, never as a listing of its files.

    riders/                  a table: Parquet files, and Spark's list of them in _spark_metadata
    riders_late/             a table of rows set aside: a folder for each stage of the plan, each a table by itself
        columns/             a file without rows, which has the columns
        late-2/
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rove.cloud.source.shape import NAMES
from rove.control.asks.requests import ASIDE_TABLES, CloudQuery
from rove.data.operators.faulted import fault_schema
from rove.model.disk_folders import FAULT, LATE
from rove.model.errors import SetupError
from rove.model.schema import parse_schema

ASIDE = dict(
    zip((LATE, FAULT), ASIDE_TABLES, strict=True)
)  # folders with rows set aside in a query's log, and their tables
COLUMNS = "columns"
METADATA = "_spark_metadata"


def begin_aside(tables: Path, query: CloudQuery) -> None:
    """Give the tables of late rows and of rows at fault their columns, before there are any rows."""
    if query.sink.kind != "table":
        return
    for suffix, columns in zip(ASIDE_TABLES, (query.late, query.faults), strict=True):
        file = tables / f"{query.sink.name}{suffix}" / COLUMNS / f"{COLUMNS}.parquet"
        if columns and not file.exists():
            schema = parse_schema(columns)
            schema = fault_schema(schema) if suffix == ASIDE[FAULT] else schema
            for name, dtype in NAMES.items():
                schema = schema if name in schema.names else schema.append(pa.field(name, dtype))
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_name(f".{file.name}.new")
            pq.write_table(schema.empty_table(), new)
            new.replace(file)


def read_table(spark: Any, folder: Path) -> Any:
    """A table as a DataFrame. The parts of a table of rows set aside are put together by the names of columns."""
    parts = parts_of(folder)
    if parts == [folder] and not _begun(folder):
        raise SetupError(f"table `{folder.name}` has no rows yet; its query has not written any")
    frames = [spark.read.parquet(str(part)) for part in parts]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def parts_of(folder: Path) -> list[Path]:
    """The folders of a table: one, or of a table of rows set aside its columns first, then one for each stage."""
    parts = sorted(part for part in folder.iterdir() if (part / METADATA).is_dir()) if folder.is_dir() else []
    if (folder / COLUMNS).is_dir():
        return [folder / COLUMNS, *(part for part in parts if _begun(part))]
    return [folder] if (folder / METADATA).is_dir() or not parts else parts


def _begun(part: Path) -> bool:
    """Whether Spark has done a micro-batch. Before that, it has no columns. Files without Spark's list are a table
    too."""
    said = part / METADATA
    return any(not file.name.startswith(".") for file in (said.iterdir() if said.is_dir() else part.glob("*.parquet")))
