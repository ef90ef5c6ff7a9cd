"""Converts the rows of a log to the columns that Spark expects.

Law: Spark gets exactly the Arrow types of its schema. A column that a segment lacks is null. A column of another type
is refused by name. A column that is not needed is not decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from rove.cloud.source.options import Options
from rove.data.log.segments.format import data_file, segment_of
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.errors import DiskError, PlanError, SchemaMismatch, nearest
from rove.model.ids import Origin
from rove.model.schema import BIGINT, BOOLEAN, STRING, TIMESTAMP, TIMESTAMP_NTZ, WINDOW
from rove.runtime.disk.disk import LogFolder

HEARTBEAT = "_heartbeat"
NAMES = {"_origin": STRING, "_seq": BIGINT, "_watermark": TIMESTAMP, "_produced_at": TIMESTAMP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The values of an entry's header, which hold for all its rows."""

    origin: Origin
    seq: int
    watermark: int
    produced_at: int

    def column(self, name: str, rows: int) -> pa.Array:
        match name:
            case "_origin":
                value = pa.scalar(str(self.origin), STRING)
            case "_seq":
                value = pa.scalar(self.seq, BIGINT)
            case "_watermark":
                said = MICROS_MIN < self.watermark <= MICROS_MAX
                value = pa.scalar(self.watermark if said else None, TIMESTAMP)
            case _:
                value = pa.scalar(self.produced_at or None, TIMESTAMP)
        return pa.repeat(value, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns that Spark expects."""

    schema: pa.Schema
    time: str | None = None
    names: bool = False  # whether the columns of `NAMES` are filled from headers
    heartbeat: bool = False

    def ours(self, name: str) -> bool:
        """Whether a column is filled here and not read from the file."""
        return (self.names and name in NAMES) or (self.heartbeat and name == HEARTBEAT)

    def wanted(self) -> list[str]:
        """The columns to be read from files."""
        names = [f.name for f in self.schema if not self.ours(f.name)]
        return names if self.time is None or self.time in names else [*names, self.time]

    def check(self, stored: pa.Schema, file: str) -> None:
        """Refuse a file with a column of another type, or with event time of a type that cannot be read."""
        for field in self.schema:
            at = -1 if self.ours(field.name) else stored.get_field_index(field.name)
            if at >= 0 and _spark_name(stored.field(at).type) != _spark_name(field.type):
                raise SchemaMismatch(
                    f"column `{field.name}` is {_spark_name(stored.field(at).type)} in {file}, not "
                    f"{_spark_name(field.type)}; read it with its own type and cast it, or begin after that file"
                )
        if self.time is not None and (at := stored.get_field_index(self.time)) >= 0:
            kind = stored.field(at).type
            if kind not in (TIMESTAMP, TIMESTAMP_NTZ) and _spark_name(kind) != _spark_name(WINDOW):
                raise SchemaMismatch(
                    f"column `{self.time}` is {_spark_name(kind)} in {file}; event time is a timestamp, or a window "
                    "with start and end"
                )

    def conform(self, rows: pa.RecordBatch, label: Label) -> pa.RecordBatch:
        """Rows as Spark expects them. A column is copied only if its type must be converted."""
        if rows.schema.equals(self.schema):
            return rows
        arrays = [self._column(field, rows, label) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def beat(self, time_us: int) -> pa.RecordBatch:
        """The heartbeat row, which advances event time while no rows flow."""
        arrays = []
        for field in self.schema:
            if field.name == self.time:
                arrays.append(_moment(field.type, time_us))
            else:
                arrays.append(pa.array([True if field.name == HEARTBEAT else None], field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, field: pa.Field, rows: pa.RecordBatch, label: Label) -> pa.Array:
        if self.ours(field.name):
            if field.name == HEARTBEAT:
                return pa.repeat(pa.scalar(False), rows.num_rows)
            return label.column(field.name, rows.num_rows)
        at = rows.schema.get_field_index(field.name)
        column = pa.nulls(rows.num_rows, field.type) if at < 0 else rows.column(at)
        if column.null_count and not field.nullable:
            raise SchemaMismatch(
                f"column `{field.name}` has nulls, but the schema does not allow them; make it nullable"
            )
        return column if column.type.equals(field.type) else column.cast(field.type)


def _moment(dtype: pa.DataType, time_us: int) -> pa.Array:
    if pa.types.is_struct(dtype):
        parts = [pa.array([time_us + (part.name == "end")], BIGINT).cast(part.type) for part in dtype.fields]
        return pa.StructArray.from_arrays(parts, fields=dtype.fields)
    return pa.array([time_us], BIGINT).cast(dtype)


def event_times(column: pa.Array) -> pa.Array:
    """The microseconds of an event-time column. For a window it is the start, as in watermarks."""
    if pa.types.is_struct(column.type):
        return pc.struct_field(column, "start").cast(BIGINT)
    return column.cast(BIGINT)


def shape_of(options: Options, folders: Sequence[Path], schema: StructType | None = None) -> Shape:
    """The columns that Spark expects, from the options and the newest segments. A given schema overrides them."""
    stored = [found for folder in folders if (found := newest_schema(folder)) is not None]
    there = _together([found for found, _ in stored])
    wanted = _asked(options, there) if schema is None else to_arrow_schema(schema, timezone="UTC")
    shape = Shape(schema=wanted, time=options.time, names=options.metadata, heartbeat=options.heartbeat)
    if there is not None:
        for name in shape.wanted():
            if there.get_field_index(name) < 0:
                hint = "; set option metadata to true" if name in NAMES else ""
                raise PlanError(f"no column `{name}` in {folders[0]}{hint}; {nearest(name, there.names)}")
    for found, file in stored:
        shape.check(found, file)
    _check_heartbeat(shape)
    return shape


def newest_schema(folder: Path) -> tuple[pa.Schema, str] | None:
    """The columns of the newest segment, and its file."""
    disk = LogFolder(folder)
    numbers = (n for file in disk.sizes() if (n := segment_of(file, ".arrows")) is not None)
    for number in sorted(numbers, reverse=True):
        try:
            return pa.ipc.read_schema(pa.py_buffer(disk.mapped(data_file(number), 0))), str(folder / data_file(number))
        except (pa.ArrowInvalid, EOFError, FileNotFoundError):
            continue  # a segment that was just begun or just deleted
    return None


def _together(schemas: Sequence[pa.Schema]) -> pa.Schema | None:
    """The columns of all gateways together, in the order of the first gateway."""
    if not schemas:
        return None
    fields = {field.name: field for schema in reversed(schemas) for field in schema}
    order = dict.fromkeys(name for schema in schemas for name in schema.names)
    return pa.schema([fields[name].remove_metadata().with_nullable(True) for name in order])


def _asked(options: Options, there: pa.Schema | None) -> pa.Schema:
    """The columns that options ask for."""
    if there is None:
        raise DiskError(f"the log of `{options.query}` has no segment yet; wait for the first, or give a schema")
    if options.columns is not None:
        for name in options.columns:
            if there.get_field_index(name) < 0:
                raise PlanError(f"no column `{name}` in the log of `{options.query}`; {nearest(name, there.names)}")
        there = pa.schema([there.field(name) for name in options.columns])
    ours = [*(NAMES.items() if options.metadata else ()), *([(HEARTBEAT, BOOLEAN)] if options.heartbeat else ())]
    for name, dtype in ours:
        if there.get_field_index(name) >= 0:
            raise PlanError(f"the log of `{options.query}` already has a column `{name}`; leave it out of `columns`")
        there = there.append(pa.field(name, dtype))
    return there


def _check_heartbeat(shape: Shape) -> None:
    if not shape.heartbeat:
        return
    names = shape.schema.names
    if not names or names[-1] != HEARTBEAT or shape.schema.field(HEARTBEAT).type != BOOLEAN:
        raise PlanError(
            f"with heartbeat=true the last column of the schema must be `{HEARTBEAT} boolean`, which marks heartbeats"
        )
    if shape.time not in names:
        raise PlanError(f"with heartbeat=true column `{shape.time}` must be read too; name it in `columns`")
    if any(not field.nullable for field in shape.schema):
        raise PlanError("with heartbeat=true all columns must be nullable, because a heartbeat has only a time")


def _spark_name(dtype: pa.DataType) -> str:
    try:
        return str(from_arrow_type(dtype, prefer_timestamp_ntz=True).simpleString())
    except Exception:  # a type that PySpark does not know; it raises errors of several classes
        return str(dtype)
