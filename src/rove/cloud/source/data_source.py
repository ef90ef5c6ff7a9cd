"""Spark's data source "rove", for streams and batch queries: `spark.readStream.format("rove")`.

Law: the rows between two offsets depend on the offsets only, however often they are read. Rows come in watermark order,
so Spark drops no row as late that Rove took in time.

    register(spark)
    spark.readStream.format("rove").option("path", "/var/lib/rove").option("query", "trains").load()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from rove.cloud.source.admission import Limit
from rove.cloud.source.offset import Offset
from rove.cloud.source.options import Options, find_folders, parse_options
from rove.cloud.source.scan import Scan
from rove.cloud.source.shape import Shape, shape_of
from rove.cloud.source.shares import Share
from rove.model.errors import PlanError

NAME = "rove"


def register(spark: Any) -> None:
    """Make the format `rove` known to a session."""
    spark.dataSource.register(RoveDataSource)


class RoveDataSource(DataSource):
    """One output of a query, or a stream, in the log of one gateway or several.

    Options: `path`, `query` or `stream`, and `output` name the log; `columns` and `metadata` select columns; `time`,
    `delay`, `span` and `heartbeat` describe event time; `maxRowsPerTrigger`, `maxBytesPerTrigger` and `parallelism` set
    the size of micro-batches; `onDamage` says what to do about damage; the log keeps entries until the reader named
    `consumer` has read them.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        options = parse_options(self.options)
        return from_arrow_schema(shape_of(options, find_folders(options)).schema)

    def reader(self, schema: StructType) -> LogReader:
        options, folders, shape = self._found(schema)
        # A batch query reads all rows, whatever their event time.
        return LogReader(replace(options, time=None), folders, replace(shape, time=None))

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(*self._found(schema))

    def _found(self, schema: StructType) -> tuple[Options, tuple[str, ...], Shape]:
        options = parse_options(self.options)
        folders = find_folders(options)
        return options, tuple(map(str, folders)), shape_of(options, folders, schema)


class _ShareReader:
    """The part that runs in Spark's tasks. It is pickled, so it holds no open files."""

    def __init__(self, options: Options, folders: tuple[str, ...], shape: Shape) -> None:
        self._options, self._folders, self._shape = options, folders, shape

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):
            return iter(())  # Spark passes an empty partition if there is none
        return partition.read(self._shape, self._options.skip_damage)


class LogReader(_ShareReader, DataSourceReader):
    """All rows that are committed when the query is planned."""

    def partitions(self) -> Sequence[InputPartition]:
        return Scan(self._options, self._folders).everything()


class LogStreamReader(_ShareReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches, in one process that lives as long as the query. Tasks read in other processes."""

    def __init__(self, options: Options, folders: tuple[str, ...], shape: Shape) -> None:
        super().__init__(options, folders, shape)
        self._scanned: Scan | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self._scan.oldest().to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._scan.latest(Offset.from_json(start), self._limit(limit)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.rows_max is not None:
            return ReadMaxRows(self._options.rows_max)
        return ReadAllAvailable() if self._options.bytes_max is None else ReadMaxBytes(self._options.bytes_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._scan.end_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._scan.shares(Offset.from_json(start), Offset.from_json(end))

    def commit(self, end: dict[str, Any]) -> None:
        self._scan.tell(Offset.from_json(end))

    @property
    def _scan(self) -> Scan:
        if self._scanned is None:
            self._scanned = Scan(self._options, self._folders)
        return self._scanned

    def _limit(self, limit: ReadLimit) -> Limit | None:
        match limit:
            case ReadAllAvailable():
                return None
            case ReadMaxRows(max_rows=rows):
                # Spark passes on only one of two limits.
                both = rows == self._options.rows_max
                return Limit(rows=rows, bytes=self._options.bytes_max if both else None)
            case ReadMaxBytes(max_bytes=size):
                return Limit(bytes=size)
        raise PlanError(f"a log cannot be read up to {limit}; limit rows or bytes")
