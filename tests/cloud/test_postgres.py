"""Rows in PostgreSQL are Spark's rows, each once, whatever is run again."""

from __future__ import annotations

import datetime as dt
import logging
import math
import pickle
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rove.cloud.postgres import upsert
from rove.control.asks.requests import CloudSink
from rove.model.errors import DataError, PlanError, RoveError, SetupError
from tests.cloud.postgres_server import PASSWORD, Server

QUERY = "sql.streaming.queryId"  # where Spark tells a batch whose it is
NUMBERS = count()
MINUTE = "named_struct('start', TIMESTAMP'2024-01-01 00:00:00', 'end', TIMESTAMP'2024-01-01 00:01:00') AS window"
NUL = "decode(X'610062', 'UTF-8')"


@pytest.fixture
def sink(postgres: Server) -> Callable[..., CloudSink]:
    """Sinks for a schema of the test's own."""
    schema = f"test_{next(NUMBERS)}"
    postgres.ask(f"CREATE SCHEMA {schema}")

    def of(keys: str = "", mode: Any = "append", **options: str) -> CloudSink:
        chosen = {"url": postgres.url(), "keys": keys, **options}
        return CloudSink(kind="postgres", name=f"{schema}.readings", mode=mode, options=chosen)

    return of


def write(spark: Any, sink: CloudSink, batch: int, rows: str, query: str = "q") -> None:
    """Hand over a batch as Spark does; `rows` are those of a SQL statement."""
    spark.sparkContext.setLocalProperty(QUERY, query)
    try:
        upsert(sink)(spark.sql(rows), batch)
    finally:
        spark.sparkContext.setLocalProperty(QUERY, None)


def test_every_type_comes_back_as_spark_has_it(spark: Any, postgres: Server, sink: Any) -> None:
    frame = spark.sql("""
        SELECT * FROM VALUES
          (1, true, 127Y, -32768S, 2147483647, -9223372036854775808L, float(1.1), 0.1D + 0.2D, 1234567.89BD,
           DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'2024-02-29 12:00:00.000001',
           X'00FF5C', 'plain', TIME'23:59:59.999999', INTERVAL -'1 02:03:04.000005' DAY TO SECOND),
          (2, false, -128Y, 32767S, 0, 9223372036854775807L, float('NaN'), double('NaN'), -0.01BD,
           DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00',
           X'', '', TIME'00:00:00', INTERVAL '106751990 00:00:00' DAY TO SECOND),
          (3, true, 0Y, 0S, -1, 0L, float('-inf'), double('inf'), 0.00BD,
           DATE'1970-01-01', TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'1970-01-01 00:00:00',
           X'22', 'NULL', TIME'12:00:00', INTERVAL '0.5' SECOND),
          (4, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
          (5, false, 1Y, 1S, 1, 1L, float(1e-45), 4.9E-324D, 99999999.99BD,
           DATE'2000-02-29', TIMESTAMP'2023-11-05 05:30:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999',
           X'0A', 'quote " comma , new\nline\r\n tab\t back\\\\slash \\\\N é 😀', TIME'00:00:00.000001',
           INTERVAL -'3' HOUR),
          (6, false, 1Y, 1S, 1, 1L, float(-0.0), -1.7976931348623157E308D, 0.10BD, null, null, null, null, '\\\\.',
           null, null)
        AS t (id, flag, tiny, small, whole, big, single, fraction, exact, day, moment, wall, bytes, text, hour, span)
    """)
    upsert(sink())(frame, 0)
    table = sink().name
    expected = frame.orderBy("id").toArrow().to_pylist()
    names = list(expected[0])
    stored = postgres.ask(f"SELECT {', '.join(names).replace('single', 'single::float8')} FROM {table} ORDER BY id")
    for row, spark_row in zip(stored, expected, strict=True):
        for name, value in zip(names, row, strict=True):
            assert _same(value, spark_row[name]), (name, value, spark_row[name])
    about = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
    kinds = postgres.ask(f"{about} WHERE attrelid = '{table}'::regclass AND attnum > 1 ORDER BY attnum")
    assert [kind for (kind,) in kinds] == [
        *("boolean", "smallint", "smallint", "integer", "bigint", "real", "double precision", "numeric(10,2)", "date"),
        *("timestamp with time zone", "timestamp without time zone", "bytea", "text", "time without time zone"),
        "interval",
    ]


def _same(stored: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(stored, float):
        same_sign = math.copysign(1, stored) == math.copysign(1, expected)
        return (math.isnan(stored) and math.isnan(expected)) or (stored == expected and same_sign)
    return bool(stored == expected) and type(stored) is type(expected)


def test_what_is_nested_is_json_and_a_window_is_two_columns(spark: Any, postgres: Server, sink: Any) -> None:
    write(
        spark,
        sink(),
        0,
        f"""SELECT {MINUTE}, array(1, null, 3) AS list, map('a', 1.5D) AS map,
                   parse_json('{{"x": [true, null]}}') AS variant,
                   named_struct('a', CAST(null AS int), 'b', double('NaN'), 'c', 'say "hi"',
                                'd', TIMESTAMP'2024-01-01 00:00:00.000001') AS struct,
                   INTERVAL -'1-2' YEAR TO MONTH AS months, null AS nothing""",
    )
    [row] = postgres.ask(f"SELECT *, months::text FROM {sink().name}")
    minute = [dt.datetime(2024, 1, 1, 0, m, tzinfo=dt.UTC) for m in (0, 1)]
    struct = {"a": None, "b": "NaN", "c": 'say "hi"', "d": "2024-01-01T00:00:00.000001Z"}
    assert row[:6] == (*minute, [1, None, 3], {"a": 1.5}, {"x": [True, None]}, struct)
    assert row[7:] == (None, "-1 years -2 mons")
    types = postgres.ask(f"SELECT jsonb_typeof(struct), pg_typeof(list)::text FROM {sink().name}")
    assert types == [("object", "jsonb")]


def test_moments_are_right_whatever_the_session_s_time_zone(spark: Any, postgres: Server, sink: Any) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    upsert(sink())(other.sql("SELECT timestamp_seconds(-3000000000) AS moment"), 0)
    moment = dt.datetime.fromtimestamp(-3000000000, dt.UTC)  # when New York was 4:56:02 behind
    assert postgres.ask(f"SELECT moment FROM {sink().name}") == [(moment,)]


def test_a_batch_that_comes_again_changes_nothing(spark: Any, postgres: Server, sink: Any) -> None:
    for batch in (0, 0, 1, 0, 1):
        write(spark, sink(), batch, f"SELECT {batch} AS batch, id FROM range(3)")
    assert postgres.ask(f"SELECT batch, count(*) FROM {sink().name} GROUP BY 1 ORDER BY 1") == [(0, 3), (1, 3)]


def test_with_keys_a_result_is_corrected_even_one_whose_key_is_null(spark: Any, postgres: Server, sink: Any) -> None:
    into = sink("window, device", "update")
    write(spark, into, 0, f"SELECT {MINUTE}, device, 1 AS n FROM VALUES ('a'), ('b'), (null) AS t (device)")
    write(spark, into, 1, f"SELECT {MINUTE}, device, 2 AS n FROM VALUES (null), ('b'), ('c') AS t (device)")
    stored = postgres.ask(f"SELECT device, n FROM {into.name} ORDER BY device NULLS LAST")
    assert stored == [("a", 1), ("b", 2), ("c", 2), (None, 2)]


def test_rows_that_are_all_key_are_there_once(spark: Any, postgres: Server, sink: Any) -> None:
    for batch in (0, 1):
        write(spark, sink("id"), batch, "SELECT id FROM range(3)")
    assert postgres.ask(f"SELECT count(*) FROM {sink().name}") == [(3,)]


def test_an_empty_batch_makes_the_table_and_counts(spark: Any, postgres: Server, sink: Any) -> None:
    write(spark, sink("id"), 0, "SELECT id FROM range(0)")
    write(spark, sink("id"), 0, "SELECT id FROM range(3)")
    assert postgres.ask(f"SELECT count(*) FROM {sink().name}") == [(0,)]


CRASH = """
CREATE FUNCTION {schema}.crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NEW; END $$;
"""
MOMENTS = {
    "while rows are stored": """CREATE TRIGGER crash BEFORE INSERT ON {table}
                                FOR EACH ROW EXECUTE FUNCTION {schema}.crash()""",
    "at the commit": """CREATE CONSTRAINT TRIGGER crash AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
                        FOR EACH ROW EXECUTE FUNCTION {schema}.crash()""",
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("keys", ["", "id"], ids=["without keys", "with keys"])
def test_a_crash_before_the_end_leaves_nothing(spark: Any, postgres: Server, sink: Any, keys: str, moment: str) -> None:
    into = sink(keys)
    table, schema = into.name, into.name.split(".")[0]
    write(spark, into, 0, "SELECT id FROM range(2)")
    before = postgres.ask(f"SELECT * FROM {schema}.rove_batches")
    postgres.ask(CRASH.format(schema=schema))
    postgres.ask(MOMENTS[moment].format(schema=schema, table=table))
    with pytest.raises(SetupError, match=f"batch 1 is not in table {table}: PostgreSQL at .* disconnected"):
        write(spark, into, 1, "SELECT id FROM range(2, 5)")
    assert postgres.ask(f"SELECT count(*) FROM {table}") == [(2,)]
    assert postgres.ask(f"SELECT * FROM {schema}.rove_batches") == before
    postgres.ask(f"DROP TRIGGER crash ON {table}")
    write(spark, into, 1, "SELECT id FROM range(2, 5)")
    assert postgres.ask(f"SELECT id FROM {table} ORDER BY id") == [(0,), (1,), (2,), (3,), (4,)]


def test_a_run_that_is_still_storing_a_batch_is_waited_for(spark: Any, postgres: Server, sink: Any) -> None:
    write(spark, sink(), 0, "SELECT 0 AS id")
    with psycopg.connect(postgres.url()) as other:
        other.execute(f"UPDATE {sink().name.split('.')[0]}.rove_batches SET batch = 1".encode())
        again = threading.Thread(target=write, args=(spark, sink(), 1, "SELECT 1 AS id"))
        again.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rove' AND wait_event_type = 'Lock'"
        while not postgres.ask(waiting):
            assert again.is_alive()
        other.execute(f"INSERT INTO {sink().name} VALUES (1)".encode())
    again.join()
    assert postgres.ask(f"SELECT count(*) FROM {sink().name}") == [(2,)]


def at_once(spark: Any, sink: CloudSink, batch: int, rows: dict[str, str]) -> None:
    """A batch of each query at the same moment."""
    with ThreadPoolExecutor(len(rows)) as pool:
        for done in [pool.submit(write, spark, sink, batch, text, query) for query, text in rows.items()]:
            done.result()


def test_two_queries_make_and_fill_one_table_at_once(spark: Any, postgres: Server, sink: Any) -> None:
    into = sink()
    schema = into.name.split(".")[0]
    postgres.ask(
        f"""CREATE FUNCTION {schema}.slow() RETURNS event_trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.3); END';
            CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION {schema}.slow()"""
    )
    try:
        at_once(spark, into, 0, {"one": "SELECT id FROM range(3)", "two": "SELECT id FROM range(3, 6)"})
    finally:
        postgres.ask("DROP EVENT TRIGGER slow")
    assert postgres.ask(f"SELECT id FROM {into.name} ORDER BY 1") == [(0,), (1,), (2,), (3,), (4,), (5,)]


def test_two_queries_that_correct_the_same_rows_do_not_block_each_other(
    spark: Any, postgres: Server, sink: Any
) -> None:
    into = sink("id", "update")
    schema = into.name.split(".")[0]
    write(spark, into, 0, "SELECT id, 0L AS batch FROM range(2)")
    postgres.ask(
        f"""CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
            CREATE TRIGGER slow BEFORE INSERT ON {into.name} FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"""
    )
    up, down = (f"SELECT id, 1L AS batch FROM range(2) ORDER BY id {order}" for order in ("ASC", "DESC"))
    at_once(spark, into, 1, {"up": up, "down": down})
    assert postgres.ask(f"SELECT * FROM {into.name} ORDER BY 1") == [(0, 1), (1, 1)]


def test_a_database_that_went_back_in_time_is_noticed(spark: Any, postgres: Server, sink: Any) -> None:
    for batch in (7, 8):
        write(spark, sink(), batch, "SELECT 1 AS id")
    with pytest.raises(DataError, match="has lost batches 9 to 10 of its query"):
        write(spark, sink(), 11, "SELECT 1 AS id")


def test_a_table_of_the_user_s_own_is_filled_as_it_is(spark: Any, postgres: Server, sink: Any) -> None:
    postgres.ask(
        f"CREATE TABLE {sink().name} (id uuid, n integer, moment timestamp, note varchar(20), added text DEFAULT 'now')"
    )
    known = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    moment = "TIMESTAMP'2024-01-01 00:00:00' AS moment"
    write(spark, sink(create="false"), 0, f"SELECT '{known}' AS id, 5L AS n, {moment}, true AS note")
    assert postgres.ask(f"SELECT id::text, n, moment, note, added FROM {sink().name}") == [
        (known, 5, dt.datetime(2024, 1, 1), "true", "now")
    ]


REFUSALS: dict[str, tuple[str, str, str, type[RoveError], str]] = {
    "no column": ("id bigint, name text", "", "SELECT 1L AS id, 'x' AS nmae", SetupError,
                  r"no column `nmae` .*did you mean `name`.*ALTER TABLE .* ADD COLUMN \"nmae\" text"),
    "other type": ("id integer", "", "SELECT DATE'2024-01-01' AS id", DataError,
                   "column `id` is date in the query and integer in table"),
    "a fraction into an integer": ("id integer", "", "SELECT 1.5D AS id", DataError, "double precision in the query"),
    "a text that is no number": ("id integer", "", "SELECT 'five' AS id", DataError,
                                 'invalid input syntax for type integer: "five"; COPY readings, line 1, column id'),
    "out of range": ("id smallint", "", "SELECT 70000 AS id", DataError, "out of range for type smallint"),
    "too long": ("id varchar(2)", "", "SELECT 'long' AS id", DataError, "value too long .*column id"),
    "NUL": ("id bigint, name text", "", f"SELECT 1L AS id, {NUL} AS name", DataError,
            r"column `name` has a text with the character NUL.*replace\(name, chr\(0\), ''\)"),
    "NUL in JSON": ("j jsonb", "", f"SELECT array({NUL}) AS j", DataError, "cannot be converted to text.*column j"),
    "not null": ("id bigint NOT NULL", "", "SELECT CAST(null AS bigint) AS id", DataError, 'null value in column "id"'),
    "unique without keys": ("id bigint UNIQUE", "", "SELECT 1L AS id FROM range(2)", DataError,
                            "duplicate key .*option `keys`"),
    "no unique index": ("id bigint, x int", "id", "SELECT 1L AS id", SetupError,
                        r'several rows with the same key.*CREATE UNIQUE INDEX ON .*\("id"\)'),
    "another unique index": ("id bigint, x int, UNIQUE (id, x)", "id", "SELECT 1L AS id", SetupError, "several rows"),
    "NULL as key": ("id bigint UNIQUE", "id", "SELECT CAST(null AS bigint) AS id", DataError, "key `id` is NULL"),
    "a key twice": ("id bigint UNIQUE, n bigint", "id", "SELECT 7L AS id, id AS n FROM range(2)", DataError,
                    r"several of its rows have the same key \(id\) such as 7,"),
    "no such key": ("id bigint", "di", "SELECT 1L AS id", DataError, "key `di` .* did you mean `id`"),
    "two columns of one name": ("id bigint", "", "SELECT 1 AS id, 2 AS id", DataError, "`id` appears twice"),
    "a long name": ("id bigint", "", f"SELECT 1 AS {'x' * 64}", DataError, "more than 63 bytes"),
    "an interval of three units": ("id bigint", "", "SELECT make_interval(1, 2, 3) AS span", DataError,
                                   "`span` is of type interval"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_fit_is_refused_in_words(spark: Any, postgres: Server, sink: Any, case: str) -> None:
    table, keys, rows, kind, words = REFUSALS[case]
    postgres.ask(f"CREATE TABLE {sink().name} ({table})")
    with pytest.raises(kind, match=words):
        write(spark, sink(keys), 0, rows)
    assert postgres.ask(f"SELECT count(*) FROM {sink().name}") == [(0,)]


def test_the_cure_for_nul_is_one(spark: Any, postgres: Server, sink: Any) -> None:
    write(spark, sink(), 0, f"SELECT replace({NUL}, chr(0), '') AS name")
    assert postgres.ask(f"SELECT name FROM {sink().name}") == [("ab",)]


def test_a_table_that_is_not_to_be_made_is_asked_for(spark: Any, sink: Any) -> None:
    words = (
        r'no table .*`create` is false; create it: CREATE TABLE .*"id" bigint, "name" text, UNIQUE NULLS NOT DISTINCT'
    )
    with pytest.raises(SetupError, match=words):
        write(spark, sink("id", create="false"), 0, "SELECT 1L AS id, 'x' AS name")


def test_a_user_without_rights_is_told_what_to_grant(spark: Any, postgres: Server, sink: Any) -> None:
    postgres.ask("CREATE ROLE guest LOGIN PASSWORD 'guest-word'")
    postgres.ask(f"GRANT USAGE ON SCHEMA {sink().name.split('.')[0]} TO guest")
    with pytest.raises(SetupError, match=r"user guest may not: permission denied for schema .*; grant it"):
        write(spark, sink(url=postgres.url("guest", "guest-word")), 0, "SELECT 1 AS id")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://rove@127.0.0.1:{port}/postgres", "as user rove.*password authentication failed"),
        ("postgresql://rove@127.0.0.1:1/postgres", "PostgreSQL at 127.0.0.1:1/postgres .*Connection refused"),
        ("postgresql://strange@127.0.0.1:{port}/postgres", "as user strange.*no password supplied; .* ~/.pgpass"),
    ],
    ids=["wrong password", "nobody there", "no password"],
)
def test_a_server_that_cannot_be_reached_is_named_without_the_password(
    spark: Any, postgres: Server, sink: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path, url: str, words: str
) -> None:
    caplog.set_level(logging.DEBUG)
    kept = tmp_path / "pgpass"
    kept.touch(0o600)
    kept.write_text("127.0.0.1:*:*:rove:hunter2\n")
    into = sink(url=f"{url.format(port=postgres.port)}?passfile={kept}")
    with pytest.raises(SetupError, match=words) as raised:
        write(spark, into, 0, "SELECT 1 AS id")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value)) + caplog.text + repr(upsert(into))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgres//rove:hunter2@h/x",
        "postgresql://rove:hunter2@h/x",
        "postgresql://rove:12/hunter2@h:1/x",
        "postgresql://rove@h:1/x?password=hunter2",
        "host=h password=hunter2",
        "postgresql://hunter2%zz@h/x",
    ],
)
def test_a_url_with_a_password_or_that_cannot_be_read_is_refused_and_not_shown(sink: Any, url: str) -> None:
    with pytest.raises(PlanError, match=r"option `url` .* write it like postgresql://user@host") as raised:
        upsert(sink(url=url))
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_password_from_a_file_is_read_again_for_each_batch(
    spark: Any, postgres: Server, sink: Any, tmp_path: Path
) -> None:
    """A password is changed without a restart."""
    kept = tmp_path / "pgpass"
    kept.touch(0o600)
    into = sink(url=f"postgresql://rove@127.0.0.1:{postgres.port}/postgres?passfile={kept}")
    kept.write_text(f"127.0.0.1:{postgres.port}:*:rove:of-yesterday\n")
    with pytest.raises(SetupError, match="password authentication failed"):
        write(spark, into, 0, "SELECT 1 AS id")
    kept.write_text(f"127.0.0.1:{postgres.port}:*:rove:{PASSWORD}\n")
    write(spark, into, 0, "SELECT 1 AS id")
    assert postgres.ask(f"SELECT id FROM {into.name}") == [(1,)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "update"}, "set option `keys`"),
        ({"create": "maybe"}, "`create` .* must be true or false, not maybe"),
    ],
    ids=["update without keys", "create"],
)
def test_options_are_checked_before_anything_runs(sink: Any, change: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        upsert(sink(**change))


def test_the_function_can_be_sent_elsewhere(sink: Any) -> None:
    assert pickle.loads(pickle.dumps(upsert(sink("id")))).args == upsert(sink("id")).args


class Readings:
    """Files of readings, and a query that counts them by minute and device, a file a batch."""

    SCHEMA = "us long, device string"

    def __init__(self, spark: Any, place: Path) -> None:
        self.spark, self.place, self.files = spark, place, 0
        (place / "in").mkdir()

    def add(self, devices: str) -> None:
        """A file with a reading of each device, twenty seconds after those of the last."""
        rows = "".join(f"{self.files * 20_000_000},{device}\n" for device in devices)
        (self.place / "in" / f"{self.files:03}.csv").write_text(rows)
        self.files += 1

    def count(self, frame: Any) -> Any:
        from pyspark.sql import functions as F

        timed = frame.select(F.expr("timestamp_micros(us) AS ts"), "device")
        return timed.groupBy(F.window("ts", "1 minute"), "device").count()

    def run(self, sink: CloudSink, checkpoint: str = "state") -> None:
        """Everything that is there, from where the checkpoint is."""
        files = self.spark.readStream.schema(self.SCHEMA).option("maxFilesPerTrigger", 1).csv(str(self.place / "in"))
        writer = self.count(files).writeStream.outputMode("update").foreachBatch(upsert(sink))
        query = writer.option("checkpointLocation", str(self.place / checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination(60)

    def forget_the_last_commit(self) -> None:
        """As if Spark had died after a batch was stored and before it could note so."""
        commits = self.place / "state" / "commits"
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)

    def counted(self) -> list[tuple[Any, ...]]:
        """What Spark says in batch."""
        frame = self.count(self.spark.read.schema(self.SCHEMA).csv(str(self.place / "in")))
        rows = frame.select("window.start", "device", "count").toArrow().to_pylist()
        return sorted(tuple(row.values()) for row in rows)


def test_a_query_goes_on_from_its_checkpoint_and_a_batch_run_twice_counts_once(
    spark: Any, postgres: Server, sink: Any, tmp_path: Path
) -> None:
    readings, into = Readings(spark, tmp_path), sink("window,device", "update")
    question = f"SELECT window_start, device, count FROM {into.name} ORDER BY 1, 2"
    for devices in ("aab", "abc"):
        readings.add(devices)
    readings.run(into)
    assert postgres.ask(question) == readings.counted()
    postgres.ask(f"UPDATE {into.name} SET count = -1 WHERE device = 'c'")
    readings.forget_the_last_commit()
    readings.run(into)
    assert (-1,) in postgres.ask(f"SELECT count FROM {into.name}"), "a stored batch was written again"
    for devices in ("ccd", "ad"):
        readings.add(devices)
    readings.run(into)
    assert postgres.ask(question) == readings.counted()


def test_a_query_begun_anew_is_not_taken_for_the_old_one(
    spark: Any, postgres: Server, sink: Any, tmp_path: Path
) -> None:
    readings, into = Readings(spark, tmp_path), sink("window,device", "update")
    readings.add("ab")
    readings.run(into, "first")
    postgres.ask(f"DELETE FROM {into.name}")
    readings.run(into, "second")
    assert postgres.ask(f"SELECT window_start, device, count FROM {into.name} ORDER BY 1, 2") == readings.counted()
    assert postgres.ask(f"SELECT batch FROM {into.name.split('.')[0]}.rove_batches") == [(0,), (0,)]


def test_a_query_that_fails_says_why_and_not_the_password(
    spark: Any, postgres: Server, sink: Any, tmp_path: Path
) -> None:
    readings = Readings(spark, tmp_path)
    readings.add("a")
    with pytest.raises(Exception, match=r"rove\.model\.errors\.SetupError: there is no table") as raised:
        readings.run(sink("window,device", "update", create="false"))
    assert PASSWORD not in str(raised.value)
