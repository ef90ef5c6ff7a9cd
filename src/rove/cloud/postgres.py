"""Writes the rows of a query into a table of PostgreSQL.

Law: a micro-batch and its number become visible in one transaction, and a batch whose number is stored is not written
again. So every result is in the table once, whatever crashes and runs again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pyarrow import csv
from pyspark.sql import functions as F

from rove.control.asks.requests import CloudSink
from rove.control.sink_options import URL, check_url
from rove.model.errors import DataError, PlanError, RoveError, SetupError, nearest
from rove.model.names import quoted

BATCHES = "rove_batches"  # a table beside it, with the last batch of every query that writes into it
ARRIVED = sql.Identifier("pg_temp", "rove_arrived")  # a temporary table with the rows of one batch
NAME_BYTES_MAX = 63  # PostgreSQL cuts off the rest of a name without an error
COPY_ROWS_MAX = 65_536  # rows that are formatted as text at a time

# How long to wait for a server that does not answer. The `url` may set other values.
LOGIN = {
    "application_name": "rove",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
# Timestamps and intervals are read as Spark writes them. A committed batch survives a crash of the server.
SETTINGS = """
SELECT set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true),
       set_config('intervalstyle', 'sql_standard', true),
       CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
"""
COLUMNS = """
SELECT a.attname, coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# Whether NULL equals NULL in a unique index over these columns. No row if there is no such index.
UNIQUE = """
SELECT coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) FROM pg_index i
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
  AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C")
       FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
       LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
       WHERE k.place <= i.indnkeyatts) = %s
ORDER BY 1 DESC LIMIT 1
"""

# With this style every text is quoted, also an empty one, and NULL is not, so COPY can tell them apart.
CSV = csv.WriteOptions(include_header=False, quoting_style="needed")
JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A table, and how to connect to its database."""

    table: str  # or schema.table
    keys: tuple[str, ...]
    create: bool
    login: Mapping[str, Any] = field(repr=False)  # without the password

    @property
    def place(self) -> str:
        host, port = self.login.get("host", "the local socket"), self.login.get("port", "")
        return f"{host}{':' if port else ''}{port}/{self.login.get('dbname', '')}"

    @property
    def name(self) -> sql.Identifier:
        return sql.Identifier(*self.table.split("."))

    @property
    def batches(self) -> sql.Identifier:
        return sql.Identifier(*self.table.split(".")[:-1], BATCHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of the table: its type in PostgreSQL, and the Spark column whose text PostgreSQL reads as that type."""

    name: str
    type: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """A micro-batch in the form in which it is written."""

    target: _Target
    query: str
    number: int
    columns: tuple[_Column, ...]
    keys: tuple[str, ...]
    rows: pa.Table

    @property
    def names(self) -> sql.Composed:
        return _names([column.name for column in self.columns])

    @property
    def counter(self) -> str:
        """The key under which the batch number is stored. A query with a new checkpoint counts from 0 under a new
        id."""
        return f"{self.target.table}/{self.query}"


def upsert(sink: CloudSink) -> Callable[[Any, int], None]:
    """The function for `foreachBatch`. With `keys` a row replaces the row with the same key; without, it is added."""
    keys = tuple(key.strip() for key in sink.options.get("keys", "").split(",") if key.strip())
    create = sink.options.get("create", "true").lower()
    if not re.fullmatch(r"[^.]+(\.[^.]+)?", sink.name):
        raise PlanError(f"`{sink.name}` is not a name of a table in PostgreSQL; write table or schema.table")
    if sink.mode == "update" and not keys:
        raise PlanError(
            f"in update mode results replace rows of table {sink.name}, but nothing says which; "
            "set option `keys` to the columns that identify a result, such as window,device"
        )
    if create not in ("true", "false"):
        raise PlanError(f"option `create` of table {sink.name} must be true or false, not {create}")
    login = _login(sink.name, sink.options.get("url", ""))
    return partial(_write, _Target(table=sink.name, keys=keys, create=create == "true", login=login))


def _login(table: str, url: str) -> dict[str, str]:
    """The parts of a url. libpq finds the password by itself when it connects: in ~/.pgpass, in a service file or in
    PGPASSWORD. Errors show neither the url nor psycopg's message, because both may contain a password."""
    check_url(table, url)
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        raise PlanError(
            f"option `url` of table {table} is understood by Rove and not by PostgreSQL's library; write it like {URL}"
        ) from None
    return {**LOGIN, **parts, "client_encoding": "utf8"}


def _write(target: _Target, frame: Any, number: int) -> None:
    """Store a micro-batch, unless it is stored already."""
    columns, keys = _shape(target, frame.schema)
    batch = _Batch(
        target=target,
        query=frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or "",
        number=number,
        columns=columns,
        keys=keys,
        # Computed even if the batch is stored already: Spark updates its state only if the rows are computed.
        rows=_without_zones(frame.select(*(column.value.alias(column.name) for column in columns)).toArrow()),
    )
    with _in_words(batch), _connect(target) as connection:
        connection.execute(SETTINGS)
        _make_missing(connection, batch)
        if not _is_next(connection, batch):
            return
        _check(connection, batch)
        if batch.rows.num_rows:
            _store(connection, batch)
        statement = sql.SQL("UPDATE {} SET batch = %s WHERE target = %s").format(target.batches)
        connection.execute(statement, (number, batch.counter))


def _shape(target: _Target, schema: Any) -> tuple[tuple[_Column, ...], tuple[str, ...]]:
    """The columns of a batch in the table, and those of its key. A window becomes two columns."""
    found: dict[str, list[_Column]] = {}
    for each in schema:
        value, kind = F.col(quoted(each.name)), each.dataType
        if kind.typeName() == "struct" and _is_window(kind):
            ends = [(f"{each.name}_{end.name}", end.dataType, value.getField(end.name)) for end in kind]
        else:
            ends = [(each.name, kind, value)]
        found.setdefault(each.name, []).extend(_column(target, *end) for end in ends)
    columns = tuple(column for part in found.values() for column in part)
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1 or len(name.encode()) > NAME_BYTES_MAX:
            why = "appears twice" if names.count(name) > 1 else f"has more than {NAME_BYTES_MAX} bytes"
            raise DataError(
                f"column name `{name}` {why}, which table {target.table} cannot have; rename it in the query"
            )
    known = {name: [name] for name in names} | {name: [c.name for c in part] for name, part in found.items()}
    for key in target.keys:
        if key not in known:
            raise DataError(f"key `{key}` of table {target.table} is not a column of the query; {nearest(key, names)}")
    return columns, tuple(dict.fromkeys(name for key in target.keys for name in known[key]))


def _column(target: _Target, name: str, kind: Any, value: Any) -> _Column:
    if kind.typeName() == "decimal":
        return _Column(name=name, type=f"numeric({kind.precision},{kind.scale})", value=value)
    if kind.typeName() not in _TYPES:
        raise DataError(
            f"column `{name}` is of type {kind.simpleString()}, which table {target.table} cannot take; "
            "cast it to a text or a number in the query"
        )
    type_, as_text = _TYPES[kind.typeName()]
    return _Column(name=name, type=type_, value=as_text(value) if as_text else value)


def _is_window(kind: Any) -> bool:
    return kind.names == ["start", "end"] and all(f.dataType.typeName().startswith("timestamp") for f in kind)


def _json(value: Any) -> Any:
    return F.to_json(value, JSON)


def _interval(whole: str) -> Callable[[Any], Any]:
    return lambda value: F.regexp_extract(value.cast(f"interval {whole}").cast("string"), "'(.*)'", 1)


# Spark's types and PostgreSQL's, with a function where Arrow or PostgreSQL cannot read the value as it is.
_TYPES: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "boolean": ("boolean", None),
    "byte": ("smallint", None),
    "short": ("smallint", None),
    "integer": ("integer", None),
    "long": ("bigint", None),
    "float": ("real", None),
    "double": ("double precision", None),
    "string": ("text", None),
    "varchar": ("text", None),
    "char": ("text", None),
    "void": ("text", lambda value: value.cast("string")),
    "date": ("date", None),
    "timestamp": ("timestamp with time zone", None),
    "timestamp_ntz": ("timestamp without time zone", None),
    "time": ("time without time zone", lambda value: value.cast("string")),
    "daytimeinterval": ("interval", _interval("day to second")),
    "yearmonthinterval": ("interval", _interval("year to month")),
    "binary": ("bytea", lambda value: F.concat(F.lit("\\x"), F.hex(value))),
    "struct": ("jsonb", _json),
    "array": ("jsonb", _json),
    "map": ("jsonb", _json),
    "variant": ("jsonb", _json),
}
_TEXTS = {"text", "character varying", "character"}
_MOMENTS = {"timestamp with time zone", "timestamp without time zone"}
_FRACTIONS = {"real", "double precision", "numeric"}
_NUMBERS = {"smallint", "integer", "bigint", *_FRACTIONS}
# The types that a user's own table may have instead of ours, besides text types. A text may go into a column of any
# type, such as uuid: PostgreSQL converts it.
_FITTING: dict[str, set[str]] = {
    "smallint": _NUMBERS,
    "integer": _NUMBERS,
    "bigint": _NUMBERS,
    "numeric": _FRACTIONS,
    "real": _FRACTIONS,
    "double precision": _FRACTIONS,
    "date": {"date", *_MOMENTS},
    "timestamp with time zone": _MOMENTS,
    "timestamp without time zone": _MOMENTS,
    "jsonb": {"jsonb", "json"},
}


def _fits(ours: str, theirs: str) -> bool:
    plain = ours.partition("(")[0]
    return plain == "text" or theirs in _TEXTS or theirs in _FITTING.get(plain, {plain})


def _without_zones(rows: pa.Table) -> pa.Table:
    """Timestamps without a time zone. They are in UTC, as is the transaction. With a zone Arrow writes them twenty
    times slower."""
    types = [pa.timestamp("us") if pa.types.is_timestamp(f.type) else f.type for f in rows.schema]
    return rows.cast(pa.schema([f.with_type(type_) for f, type_ in zip(rows.schema, types, strict=True)]))


def _connect(target: _Target) -> psycopg.Connection:
    try:
        connection = psycopg.connect(**target.login)
    except psycopg.Error as error:
        raise SetupError(
            f"PostgreSQL at {target.place} cannot be reached as user {target.login.get('user', '')}: {_line(error)}; "
            "check that it runs there, that `url` has the right user and database, and that the user who runs rove "
            "cloud has the password in ~/.pgpass, which only this user may read"
        ) from error
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


def _make_missing(connection: psycopg.Connection, batch: _Batch) -> None:
    """Create the table and the table of batches if they are missing. A lock keeps queries from doing so together."""
    target = batch.target
    known = connection.execute("SELECT to_regclass(%s), to_regclass(%s)", (_text(target.name), _text(target.batches)))
    table, batches = known.fetchone() or (None, None)
    if table and batches:
        return
    parts = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.type)) for c in batch.columns]
    if batch.keys:
        # Spark has groups whose key is NULL. Older servers treat NULLs as different, so `_check` refuses NULL keys
        # there.
        unique = "UNIQUE NULLS NOT DISTINCT" if connection.info.server_version >= 150_000 else "UNIQUE"
        parts.append(sql.SQL("{} ({})").format(sql.SQL(unique), _names(batch.keys)))
    create = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(target.name, sql.SQL(", ").join(parts))
    if not table and not target.create:
        raise SetupError(
            f"there is no table {target.table} in PostgreSQL at {target.place}, and option `create` is false; "
            f"create it: {_text(create)}"
        )
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('rove'))")
    if not table:
        connection.execute(create)
    connection.execute(
        sql.SQL("CREATE TABLE IF NOT EXISTS {} (target text PRIMARY KEY, batch bigint NOT NULL)").format(target.batches)
    )


def _is_next(connection: psycopg.Connection, batch: _Batch) -> bool:
    """Whether a batch is not stored yet. Waits for another run of the same query that is storing it."""
    batches, key = batch.target.batches, (batch.counter,)
    connection.execute(sql.SQL("INSERT INTO {} VALUES (%s, -1) ON CONFLICT (target) DO NOTHING").format(batches), key)
    row = connection.execute(
        sql.SQL("SELECT batch FROM {} WHERE target = %s FOR UPDATE").format(batches), key
    ).fetchone()
    stored = int(row[0]) if row else -1
    if 0 <= stored < batch.number - 1:
        raise DataError(
            f"table {batch.target.table} at {batch.target.place} has lost batches {stored + 1} to {batch.number - 1} "
            "of its query: the database was reset to an earlier state. Start the query from a new checkpoint, or go on "
            f"without them: DELETE FROM {_text(batches)} WHERE target = '{batch.counter}'"
        )
    return batch.number > stored


def _check(connection: psycopg.Connection, batch: _Batch) -> None:
    """Refuse a batch that does not fit the table, before any row is sent."""
    target = batch.target
    found = connection.execute(COLUMNS, (_text(target.name),)).fetchall()
    types = {name: (base, shown) for name, base, shown in found}
    for column in batch.columns:
        if column.name not in types:
            missing = sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.type))
            raise SetupError(
                f"table {target.table} has no column `{column.name}` ({nearest(column.name, list(types))}); "
                f"rename it in the query, or ALTER TABLE {_text(target.name)} ADD COLUMN {_text(missing)}"
            )
        base, shown = types[column.name]
        if not _fits(column.type, base):
            raise DataError(
                f"column `{column.name}` is {column.type} in the query and {shown} in table {target.table}; "
                "cast it in the query, or change the column's type"
            )
    if not batch.keys:
        return
    row = connection.execute(UNIQUE, (_text(target.name), sorted(batch.keys))).fetchone()
    if row is None:
        raise SetupError(
            f"table {target.table} may have several rows with the same key, so none can be replaced; "
            f"CREATE UNIQUE INDEX ON {_text(target.name)} ({_text(_names(batch.keys))})"
        )
    empty = [key for key in batch.keys if batch.rows.column(key).null_count]
    if empty and not row[0]:
        raise DataError(
            f"key `{empty[0]}` is NULL in a row for table {target.table}, whose index treats NULLs as different; use "
            "coalesce in the query, or (PostgreSQL 15 and later) an index with UNIQUE NULLS NOT DISTINCT"
        )


def _store(connection: psycopg.Connection, batch: _Batch) -> None:
    name, names, keys = batch.target.name, batch.names, _names(batch.keys)
    if not batch.keys:
        _copy(connection, name, batch)
        return
    like = sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
    connection.execute(like.format(ARRIVED, names, name))
    _copy(connection, ARRIVED, batch)
    others = [sql.Identifier(column.name) for column in batch.columns if column.name not in batch.keys]
    change = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(other) for other in others)
    action = sql.SQL("UPDATE SET {}").format(change) if others else sql.SQL("NOTHING")
    # In the order of keys, so that two queries that write the same rows cannot deadlock.
    insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ORDER BY {} ON CONFLICT ({}) DO {}")
    connection.execute(insert.format(name, names, names, ARRIVED, keys, keys, action))


def _copy(connection: psycopg.Connection, into: sql.Identifier, batch: _Batch) -> None:
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, batch.names)
    with connection.cursor().copy(statement) as copy:
        for chunk in batch.rows.to_batches(COPY_ROWS_MAX):
            text = pa.BufferOutputStream()
            csv.write_csv(chunk, text, CSV)
            copy.write(memoryview(text.getvalue()))


@contextmanager
def _in_words(batch: _Batch) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _meaning(error, batch) from error


def _meaning(error: psycopg.Error, batch: _Batch) -> RoveError:
    """Our error for an error of PostgreSQL, by the class of its code. Nothing of the batch is stored."""
    code, about = error.sqlstate or "", error.diag
    table, keys = batch.target.table, ", ".join(batch.keys)
    parts = (about.message_primary, about.message_detail, (about.context or "").strip().rpartition("\n")[2])
    said = "; ".join(part for part in parts if part) or _line(error)
    begin = f"batch {batch.number} is not in table {table}: "
    if code == "22021" and (columns := _with_nul(batch.rows)):
        return DataError(
            f"{begin}column `{columns[0]}` has a text with the character NUL, which PostgreSQL cannot hold; "
            f"remove it in the query: replace({quoted(columns[0])}, chr(0), '')"
        )
    if code == "21000":
        return DataError(
            f"{begin}several of its rows have the same key ({keys}){_example(batch)}, so the result would be random; "
            "add a column to `keys`, or keep one row for each key in the query, for example by groupBy and max_by"
        )
    if code == "23505":
        return DataError(f"{begin}{said}; name the columns of that constraint in option `keys` to replace rows")
    if code.startswith(("21", "22", "23")):
        return DataError(f"{begin}{said}; cast or filter it in the query, or change the table")
    if code == "42501":
        return SetupError(
            f"{begin}user {batch.target.login.get('user', '')} may not: {said}; grant it, or create the table and "
            f"{BATCHES} (target text PRIMARY KEY, batch bigint NOT NULL) and grant SELECT, INSERT and UPDATE on both"
        )
    if isinstance(error, psycopg.OperationalError):
        return SetupError(
            f"{begin}PostgreSQL at {batch.target.place} disconnected: {said}; it is stored when the query starts again"
        )
    return SetupError(f"{begin}{said}")


def _with_nul(rows: pa.Table) -> list[str]:
    texts = [f.name for f in rows.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    return [name for name in texts if pc.any(pc.match_substring(rows[name], "\0")).as_py()]


def _example(batch: _Batch) -> str:
    """An example of a key that several rows have."""
    counts = batch.rows.group_by(list(batch.keys)).aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts["count_all"], 1))
    if not several.num_rows:
        return ""
    return f" such as {', '.join(str(several[key][0].as_py()) for key in batch.keys)}"


def _names(names: Any) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _text(part: sql.Composable) -> str:
    return part.as_string(None)


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
