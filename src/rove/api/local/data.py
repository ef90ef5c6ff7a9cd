"""The data of a local session: takes rows in the forms that users have them in, and runs queries over them.

Law: a value is taken as it is or refused with its column's name. A column may come in a wider type than its stream has,
if all values fit; a fraction takes the precision of its column. Times without a zone are UTC, with a warning.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from rove.data.fragment.local import Rows, run
from rove.model.errors import SchemaMismatch, nearest
from rove.model.ids import Origin, checked_name
from rove.model.schema import schema_text, type_name
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.plan.shown import Shown
from rove.plan.spark.cuts import Cut, highest_cut

LocalData = Rows
_ZONE = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")  # at the end of a time in ISO 8601
# A table, a batch or several of Arrow, a pandas or Polars frame, rows as dicts or tuples, or columns as lists; or by
# device each of these.
Given: TypeAlias = Any


def by_origin(stream: str, schema: pa.Schema, data: Given) -> dict[Origin, list[pa.RecordBatch]]:
    """The rows of a stream as batches, by the device that they come from. Rows without a device come from `0`."""
    given = _by_device(data, schema, stream)
    tables = {device: _table(part, schema, f"`{stream}`") for device, part in given.items()}
    naive = {field.name for table in tables.values() for field in table.schema if _is_naive(field.type)}
    if naive:
        names = ", ".join(f"`{name}`" for name in sorted(naive))
        warnings.warn(f"the times in {names} of `{stream}` have no zone; they are taken as UTC", stacklevel=4)
    return {
        Origin(stream, checked_name(device, "a node")): _fitting(table, schema, f"`{stream}`")
        for device, table in tables.items()
    }


def _by_device(data: Given, schema: pa.Schema, stream: str) -> Mapping[str, Given]:
    """The data by device. A dict whose keys are columns is one row, or lists with the values of each column."""
    if not isinstance(data, Mapping):
        return {"0": data}
    if not data or not set(data) <= set(schema.names) or any(_is_rows(value) for value in data.values()):
        return data
    return {"0": _rows(data, f"`{stream}`")}


def _rows(data: Mapping[str, Any], whose: str) -> list[Mapping[str, Any]]:
    """The rows of a dict whose keys are columns."""
    if not all(isinstance(v, Iterable) and not isinstance(v, str | bytes | Mapping) for v in data.values()):
        return [data]
    columns = {n: v.tolist() if hasattr(v, "tolist") else list(v) for n, v in data.items()}
    lengths = {n: len(v) for n, v in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{n}` has {length}" for n, length in lengths.items())
        raise SchemaMismatch(f"the columns of {whose} have different numbers of values: {said}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_rows(value: Given) -> bool:
    """Whether a value of a dict is the data of a device, not the values of a column."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping | pa.RecordBatch | pa.Table) for row in value)
    return hasattr(value, "__arrow_c_stream__") and not isinstance(value, pa.ChunkedArray)


def _fitting(table: pa.Table, schema: pa.Schema, whose: str) -> list[pa.RecordBatch]:
    if extra := [name for name in table.column_names if name not in schema.names]:
        raise SchemaMismatch(f"{whose} has no column `{extra[0]}`; {nearest(extra[0], schema.names)}")
    columns = [_column(table, field, schema, whose) for field in schema]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays(columns, schema=schema).to_batches()
    return batches


def _table(data: Given, schema: pa.Schema, whose: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return _whole_again(pa.Table.from_pandas(data, preserve_index=False), schema)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, Mapping):
        return _table_of_dicts(_rows(data, whose), schema, whose)
    rows = list(data) if isinstance(data, Iterable) and not isinstance(data, str | bytes) else [data]
    if all(isinstance(row, pa.RecordBatch) for row in rows):
        return pa.Table.from_batches(rows) if rows else schema.empty_table()
    if all(isinstance(row, pa.Table) for row in rows):
        try:
            return pa.concat_tables(rows, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaMismatch(f"the tables of {whose} do not fit together: {str(error).splitlines()[0]}") from None
    if all(isinstance(row, tuple) for row in rows):
        if wrong := next((row for row in rows if len(row) != len(schema.names)), None):
            raise SchemaMismatch(
                f"a row of {whose} has {len(wrong)} values, and the stream {len(schema.names)} columns"
            )
        rows = [dict(zip(schema.names, row, strict=True)) for row in rows]
    if all(isinstance(row, Mapping) for row in rows):
        return _table_of_dicts(rows, schema, whose)
    raise SchemaMismatch(
        f"data of {whose} is {_kind(data)}; give a pyarrow table, a pandas frame, a list of dicts or tuples, "
        "a dict of columns, or for each device one of these"
    )


def _kind(data: Given) -> str:
    """What data is, in the words of Python: `list of int`."""
    inside = {type(value).__name__ for value in data} if isinstance(data, list | tuple) else set()
    return f"{type(data).__name__} of {inside.pop()}" if len(inside) == 1 else type(data).__name__


def _whole_again(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Integers of a pandas frame, which has made fractions of them because one is missing."""
    for n, field in enumerate(table.schema):
        known = schema.field(field.name).type if schema.names.count(field.name) == 1 else field.type
        if pt.is_integer(known) and pt.is_floating(field.type):
            try:
                table = table.set_column(n, field.name, table.column(n).cast(known))
            except pa.ArrowInvalid:
                continue  # a fraction: `_column` refuses it by its name
    return table


def _table_of_dicts(rows: list[Mapping[str, Any]], schema: pa.Schema, whose: str) -> pa.Table:
    """Each column by itself, so that an error names it. A value that a row lacks is null."""
    for row in rows:
        if extra := [name for name in row if name not in schema.names]:
            raise SchemaMismatch(f"{whose} has no column `{extra[0]}`; {nearest(extra[0], schema.names)}")
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        try:
            columns.append(_array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaMismatch(
                f"column `{field.name}` of {whose} is {type_name(field.type)}, and a value is not: {error}"
            ) from error
    return pa.Table.from_arrays(columns, schema.names)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Python's values as a column. Dates and times may be texts as in JSON, such as 2026-05-04T08:00:02Z."""
    for value in values:
        _refuse_cut(value, kind)
    if not pt.is_temporal(kind):
        return pa.array(values, kind)
    if any(isinstance(value, datetime) and value.tzinfo is None for value in values):
        return pa.array(values, pa.timestamp("us"))
    if not any(isinstance(value, str) for value in values):
        return pa.array(values, kind)
    texts = pa.array(values, pa.string())
    zoned = any(value is not None and _ZONE.search(value) for value in values)
    return texts.cast(kind if zoned or not pt.is_timestamp(kind) else pa.timestamp("us"))


def _refuse_cut(value: Any, kind: pa.DataType) -> None:
    """Refuse what Arrow would take and cut: a fraction for an integer, a number for a time."""
    match value:
        case Mapping() if pt.is_struct(kind):
            for field in kind.fields:
                _refuse_cut(value.get(field.name), field.type)
        case Mapping() if pt.is_map(kind):
            for key, item in value.items():
                _refuse_cut(key, kind.key_type)
                _refuse_cut(item, kind.item_type)
        case list() | tuple() if _is_list(kind):
            for each in value:
                _refuse_cut(each, kind.value_type)
        case float() if pt.is_integer(kind) and not value.is_integer():
            raise ValueError(f"{value} is not a whole number")
        case int() | float() if pt.is_timestamp(kind) or pt.is_date(kind):
            raise ValueError(f"{value} is a number; give a datetime, or a text such as 2026-05-04T08:00:02Z")


def _column(table: pa.Table, field: pa.Field, schema: pa.Schema, whose: str) -> pa.ChunkedArray:
    if table.column_names.count(field.name) != 1:
        count = table.column_names.count(field.name)
        raise SchemaMismatch(f"data of {whose} has {count} columns named `{field.name}`; give: {schema_text(schema)}")
    values = table[field.name]
    if values.type == field.type:
        return values
    if not _widens(field.type, values.type):
        raise SchemaMismatch(
            f"column `{field.name}` of {whose} is {type_name(field.type)}, and the data has {values.type}; cast it, or "
            f"name that type in the stream's schema"
        )
    if _is_naive(values.type):
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))
    try:
        return values.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(
            f"column `{field.name}` of {whose} is {type_name(field.type)}, and a value does not fit: {error}"
        ) from error


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether values of the type `wide` may be taken for a column of the type `narrow`, if they fit."""
    if pt.is_dictionary(wide):
        return _widens(narrow, wide.value_type) or wide.value_type == narrow
    same = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_timestamp, _is_text, _is_binary, pt.is_date)
    return pt.is_null(wide) or any(kind(narrow) and kind(wide) for kind in same) or _nested_alike(narrow, wide)


def _nested_alike(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if _is_list(narrow) and _is_list(wide):
        return wide.value_type == narrow.value_type or _widens(narrow.value_type, wide.value_type)
    if pt.is_struct(narrow) and pt.is_struct(wide):
        if [f.name for f in narrow.fields] != [f.name for f in wide.fields]:
            return False
        pairs = zip(narrow.fields, wide.fields, strict=True)
        return all(w.type == n.type or _widens(n.type, w.type) for n, w in pairs)
    return False


def _is_naive(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def collect(plan: Operator, data: LocalData) -> pa.Table:
    """All rows of a plan, with as much of it as possible at the edge."""
    if isinstance(plan, Shown):
        rows = collect(plan.input, data)
        return rows.select([column for _, column in plan.columns]).rename_columns(plan.schema.names)
    return run_cut(highest_cut(optimize(plan)), data)


def run_cut(cut: Cut, data: LocalData) -> pa.Table:
    """All rows of a cut plan. Spark starts only if the cut has an upper part."""
    results = run(dict(cut.lower), data)
    if late := sum(result.late for result in results.values()):
        warnings.warn(
            f"{late} rows came too late and are not in the result; give withWatermark a longer delay", stacklevel=4
        )
    parts = {name: result.rows for name, result in results.items()}
    if not cut.needs_spark:
        return parts[cut.lower[0][0]]
    from rove.cloud.compile import collected, compile_plan
    from rove.cloud.start.session import frame_of, spark_session

    spark = spark_session()
    return collected(compile_plan(cut.upper, {name: frame_of(spark, table) for name, table in parts.items()}))
