"""Schemas: Spark's type names on the outside, Arrow's types on the inside.

Law: one Arrow type for one Spark type, so that equal types mean equal rows in both engines. Types that only Spark
can hold are `spark_only(name)`: they may be carried in a plan, never in a batch.
"""

from __future__ import annotations

import pyarrow as pa

from rove.model.errors import ParseError, SchemaMismatch
from rove.model.names import quoted

BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING, BINARY = pa.string(), pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
DAY_TIME = pa.duration("us")
VOID = pa.null()
WINDOW = pa.struct([pa.field("start", TIMESTAMP), pa.field("end", TIMESTAMP)])

DECIMAL_DIGITS_MAX = 38

_NAMES: dict[pa.DataType, str] = {
    BOOLEAN: "boolean",
    TINYINT: "tinyint",
    SMALLINT: "smallint",
    INT: "int",
    BIGINT: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    DAY_TIME: "interval day to second",
    VOID: "void",
}


def spark_only(name: str) -> pa.DataType:
    """A type that Spark has and a batch cannot hold. `explain()` shows `name`."""
    return pa.opaque(pa.null(), name, "spark")


UNKNOWN = spark_only("unknown")
YEAR_MONTH = spark_only("interval year to month")


def is_spark_only(dtype: pa.DataType) -> bool:
    """Whether rows of this type can exist in Spark only."""
    if isinstance(dtype, pa.OpaqueType):
        return True
    return any(is_spark_only(dtype.field(i).type) for i in range(dtype.num_fields))


def type_name(dtype: pa.DataType) -> str:
    """Spark's name of a type: `type_name(pa.int64())` is `bigint`."""
    if name := _NAMES.get(dtype):
        return name
    if pa.types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_struct(dtype):
        fields = ", ".join(f"{quoted(f.name)}: {type_name(f.type)}" for f in dtype.fields)
        return f"struct<{fields}>"
    if pa.types.is_map(dtype):
        return f"map<{type_name(dtype.key_type)}, {type_name(dtype.item_type)}>"
    if pa.types.is_list(dtype):
        return f"array<{type_name(dtype.value_type)}>"
    if isinstance(dtype, pa.OpaqueType):
        return str(dtype.type_name)
    return f"unsupported Arrow type {dtype}"


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark type name: `parse_type("array<int>")`."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        node = exp.DataType.build(text, dialect="spark")
    except SqlglotError as error:
        raise ParseError(f"`{text}` is not a Spark type") from error
    return arrow_type(node)


def parse_schema(text: str) -> pa.Schema:
    """The schema of a DDL string: `parse_schema("train string, coach int, ts timestamp")`."""
    try:
        dtype = parse_type(f"struct<{text}>")
    except ParseError as error:
        raise ParseError(f"`{text}` is not a schema; write `name type, name type, …` with Spark's types") from error
    fields = [f.with_nullable(True) for f in dtype.fields]
    if not fields:
        raise ParseError(f"`{text}` is not a schema; names with spaces or of SQL words go in backticks")
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise ParseError(f"column `{field.name}` appears twice in the schema `{text}`")
        seen.add(field.name.lower())
    return pa.schema(fields)


def schema_text(schema: pa.Schema) -> str:
    """The DDL string of a schema; the inverse of `parse_schema`."""
    return ", ".join(f"{quoted(f.name)} {type_name(f.type)}" for f in schema)


def arrow_type(node: object) -> pa.DataType:
    """The Arrow type of a parsed Spark type (a sqlglot `DataType`)."""
    from sqlglot import exp

    if not isinstance(node, exp.DataType):
        raise ParseError(f"`{node}` is not a Spark type")
    kind = node.this.value if hasattr(node.this, "value") else str(node.this)
    if simple := _PARSED.get(kind):
        return simple
    inner = node.expressions
    if kind == "DECIMAL":
        digits = [int(p.this.this) for p in inner] or [10, 0]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not 1 <= precision <= DECIMAL_DIGITS_MAX or scale > precision:
            raise ParseError(f"decimal({precision},{scale}) is out of range; precision is 1 to 38 and holds the scale")
        return pa.decimal128(precision, scale)
    if kind in ("ARRAY", "LIST") and len(inner) == 1:
        return pa.list_(arrow_type(inner[0]))
    if kind == "MAP" and len(inner) == 2:
        return pa.map_(arrow_type(inner[0]), arrow_type(inner[1]))
    if kind == "STRUCT":
        return pa.struct([pa.field(f.this.name, arrow_type(f.args.get("kind"))) for f in inner])
    raise ParseError(f"`{node.sql('spark')}` is not a type that a stream can hold")


_PARSED: dict[str, pa.DataType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
    "NULL": VOID,
}


def conformed(batch: pa.RecordBatch, schema: pa.Schema, whose: str) -> pa.RecordBatch:
    """The batch with exactly `schema`. A batch with other columns is refused; the error names them. O(1) if it fits."""
    if batch.schema.equals(schema):
        return batch
    check_batch(batch, schema, whose)
    return batch.cast(schema)  # only nullability or metadata differ


def check_batch(batch: pa.RecordBatch, schema: pa.Schema, whose: str) -> None:
    """Refuse a batch whose columns, their order or types differ from `schema`. The error says which."""
    have, want = batch.schema.names, schema.names
    missing = [n for n in want if n not in have]
    extra = [n for n in have if n not in want]
    wrong = [
        f"`{f.name}` is {type_name(batch.schema.field(f.name).type)}, not {type_name(f.type)}"
        for f in schema
        if have.count(f.name) == 1 and type_name(batch.schema.field(f.name).type) != type_name(f.type)
    ]
    what = []
    if missing:
        what.append(f"missing: {', '.join(missing)}")
    if extra:
        what.append(f"not in the schema: {', '.join(extra)}")
    if wrong:
        what.append("; ".join(wrong))
    if not what and have != want:
        what.append(f"columns in another order: {', '.join(have)}")
    if what:
        raise SchemaMismatch(f"a batch of {whose} does not fit: {'; '.join(what)}. Send: {schema_text(schema)}")
