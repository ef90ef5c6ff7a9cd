"""What Rove and Spark make of the same statement over the same rows.

Law: a verdict is `equal`, `refused` (by Rove alone), `both refuse`, `accepted` (by Rove alone) or `different`. The last
two are bugs. Names, types and rows count; the order of rows does not. Spark is asked about many statements in one job.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import functions as spark_functions

import rove
from rove import functions as rove_functions
from rove.api.column import literal
from rove.api.stream import Stream
from rove.cloud.compile import compile_plan
from rove.cloud.start.session import frame_of
from rove.data.fragment.local import run
from rove.model.errors import PlanError, RoveError
from rove.model.schema import parse_schema, type_name
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import Cut, highest_cut

COLUMNS = {
    "t": "a int, b int, s string, d double, ts timestamp, st struct<x: int, y: string>, arr array<int>",
    "u": "a int, c int, s string, ts timestamp",
    "k": "a int, c int",
}
STATIC = "k"  # a table, not a stream
_START = datetime(2026, 1, 1, tzinfo=UTC)
_NAN = math.nan


def _at(seconds: int) -> datetime:
    return _START + timedelta(seconds=seconds)


ROWS: dict[str, list[tuple[Any, ...]]] = {
    "t": [
        (1, 1, "x", 0.0, _at(0), {"x": 1, "y": "p"}, [1, 2]),
        (1, 2, "x", -0.0, _at(2), {"x": 2, "y": None}, []),
        (2, 1, "y", _NAN, _at(4), None, None),
        (2, 2, "xy", 5.0, _at(9), {"x": None, "y": "q"}, [3]),
        (3, None, "Y", None, _at(12), {"x": 1, "y": "p"}, [None, 2]),
        (None, 4, None, 1.5, _at(17), {"x": 5, "y": "r"}, [1, 1]),
        (3, 4, "x", 1.5, _at(21), {"x": 1, "y": "p"}, [4]),
    ],
    "u": [
        (1, 1, "x", _at(1)),
        (1, 2, "y", _at(3)),
        (2, 2, "y", _at(11)),
        (5, 3, None, _at(13)),
        (None, 4, "x", _at(18)),
    ],
    "k": [(1, 1), (3, 2), (7, 3)],
}
TOGETHER = 40  # statements in one job of Spark


def tables() -> dict[str, pa.Table]:
    schemas = {name: parse_schema(columns) for name, columns in COLUMNS.items()}
    return {
        name: pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in ROWS[name]], schema=schema)
        for name, schema in schemas.items()
    }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a statement. `where` is `edge` or `Spark`; `why` is the reason of a refusal, or the difference;
    `said` is all that a refusal says, with the text and the place in it. `plan` is what Rove made of a statement."""

    kind: str
    where: str = ""
    why: str = ""
    said: str = ""
    plan: Operator | None = field(default=None, compare=False, repr=False)


class Made(Protocol):
    """What is asked about instead of a statement: verbs over streams by name, or over Spark's DataFrames."""

    def of(self, frame: Callable[[str], Any], functions: Any, /) -> Any: ...


@dataclass(slots=True)
class _Asked:
    """A statement on its way."""

    text: str | Made
    cut: Cut | None = None
    promised: list[tuple[str, str]] = field(default_factory=list)  # names and types as the plan has them
    refusal: str = ""  # its first line
    said: str = ""  # all of it
    plan: Operator | None = None
    theirs: Any = None  # Spark's DataFrame
    ours: Any = None  # a DataFrame or a table
    error: str = ""
    runs: bool = False  # whether its rows are compared


class Judge:
    """Two Sparks in one: the statement as it is, and what Rove leaves to Spark, which does not see the views."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.theirs = spark, spark.newSession()
        self.tables = tables()
        self.session = rove.Session.local()
        self._frames: dict[Operator, Any] = {}
        self._rows: dict[Operator, pa.Table] = {}
        for session in (spark, self.theirs):
            for key, value in SETTINGS.items():
                session.conf.set(key, value)
        for name, table in self.tables.items():
            frame_of(self.theirs, table).createOrReplaceTempView(name)
            if name == STATIC:
                frame_of(spark, table).createOrReplaceTempView("stored")
                self.session.name(name, self.session.read.schema(table.schema).table("stored"))
                continue
            stream = self.session.stream(name, schema=table.schema, data=table)
            self.session.name(name, stream.withWatermark("ts", "1 minute"))

    def verdicts(
        self, texts: Sequence[str | Made], all_of_them: bool = True, rows_max: int | None = None
    ) -> list[Verdict]:
        """A verdict for each text. Unless it is about `all_of_them`, Spark is not asked about what Rove refuses.
        `rows_max` is for how many statements rows are compared; for the others names and types are."""
        found: list[Verdict] = []
        for start in range(0, len(texts), TOGETHER):
            some = [self._asked(t, all_of_them) for t in texts[start : start + TOGETHER]]
            both = [asked for asked in some if asked.ours is not None and asked.theirs is not None]
            for asked in both if rows_max is None else both[: max(0, rows_max)]:
                asked.runs = True
            rows_max = None if rows_max is None else rows_max - len(both)
            rows = self._rows_of(some)
            found += [self._verdict(asked, rows.get(n)) for n, asked in enumerate(some)]
        return found

    def _asked(self, text: str | Made, all_of_them: bool) -> _Asked:
        asked = _Asked(text)
        try:
            made = self.session.sql(text) if isinstance(text, str) else text.of(self.session.stream, rove_functions)
            plan = asked.plan = made.plan
            asked.promised = _schema(plan.schema.empty_table())
            asked.cut = highest_cut(optimize(plan))
        except RoveError as error:
            asked.refusal, asked.said = str(error).splitlines()[0], str(error)
        except Exception as error:
            asked.refusal = f"raw {type(error).__name__}: {str(error).splitlines()[0]}"
        if asked.refusal and not all_of_them:
            return asked
        try:
            own = self.theirs
            asked.theirs = own.sql(text) if isinstance(text, str) else text.of(own.table, spark_functions)
        except Exception as error:
            asked.error = str(error).strip().splitlines()[0]
        if asked.cut is not None:
            try:
                asked.ours = self._ours(asked.cut)
            except PlanError as error:
                asked.refusal, asked.said = str(error).splitlines()[0], str(error)
            except Exception as error:
                asked.refusal = f"raw {type(error).__name__}: {str(error).splitlines()[0]}"
        return asked

    def difference(self, ours: Any, theirs: Any) -> str:
        """How our result differs from Spark's; empty if it does not."""
        if _schema(ours) != _schema(theirs):
            return f"columns {_schema(ours)}, Spark {_schema(theirs)}"
        jobs: dict[tuple[int, int], Any] = (
            {(0, 1): theirs} if isinstance(ours, pa.Table) else {(0, 1): theirs, (0, 0): ours}
        )
        rows = {key: lines for job in jobs.items() for key, lines in self._collected(dict([job])).items()}
        mine = sorted(_edge_rows(ours)) if isinstance(ours, pa.Table) else rows[0, 0]
        return "" if mine == rows[0, 1] else f"rows {mine}, Spark {rows[0, 1]}"

    def rows_of(self, cut: Cut) -> Any:
        """The rows of a plan over the data: a table, or a DataFrame if Spark is needed."""
        return self._ours(cut)

    def _ours(self, cut: Cut) -> Any:
        frames = {}
        for name, part in cut.lower:
            if part not in self._rows:
                self._rows[part] = run({name: part}, self.session.data_of(Stream(self.session, part)))[name].rows
            if not cut.needs_spark:
                return self._rows[part]
            if part not in self._frames:
                self._frames[part] = frame_of(self.spark, self._rows[part])
            frames[name] = self._frames[part]
        return compile_plan(cut.upper, frames)

    def _rows_of(self, some: Sequence[_Asked]) -> dict[int, tuple[list[str], list[str]]]:
        """The rows of both sides, as text, of the statements that both accept."""
        jobs: dict[tuple[int, int], Any] = {}
        found: dict[tuple[int, int], list[str]] = {}
        for n, asked in enumerate(some):
            if not asked.runs:
                continue
            jobs[n, 1] = asked.theirs
            if isinstance(asked.ours, pa.Table):
                found[n, 0] = sorted(_edge_rows(asked.ours))
            else:
                jobs[n, 0] = asked.ours
        for side in (0, 1):
            found |= self._collected({key: frame for key, frame in jobs.items() if key[1] == side})
        return {n: (found[n, 0], found[n, 1]) for n, side in found if side == 0}

    def _collected(self, jobs: dict[tuple[int, int], Any]) -> dict[tuple[int, int], list[str]]:
        if not jobs:
            return {}
        whole = None
        for number, frame in enumerate(jobs.values()):
            lines = _as_text(frame, number)
            whole = lines if whole is None else whole.union(lines)
        try:
            collected = whole.toArrow()
        except Exception as error:
            if len(jobs) == 1:
                return {key: [f"raises {str(error).strip().splitlines()[0][:80]}"] for key in jobs}
            asked, half = list(jobs.items()), len(jobs) // 2  # one statement raises: look for it in halves
            return self._collected(dict(asked[:half])) | self._collected(dict(asked[half:]))
        rows: list[list[str]] = [[] for _ in jobs]
        for number, line in zip(*collected.to_pydict().values(), strict=True):
            rows[number].append(_canonical(json.loads(line)))
        return dict(zip(jobs, (sorted(r) for r in rows), strict=True))

    def _verdict(self, asked: _Asked, rows: tuple[list[str], list[str]] | None) -> Verdict:
        where = "" if asked.cut is None else "Spark" if asked.cut.needs_spark else "edge"
        if asked.refusal.startswith("raw "):
            return Verdict("different", where, asked.refusal)
        if asked.refusal:
            return Verdict("both refuse" if asked.error else "refused", where, asked.refusal, asked.said)
        if asked.error:
            return Verdict("accepted", where, asked.error)
        ours, theirs = _schema(asked.ours), _schema(asked.theirs)
        if ours != theirs:
            return Verdict("different", where, f"columns {ours}, Spark {theirs}")
        known = [(name, kind) for name, kind in asked.promised if "unknown" not in kind]
        if wrong := [each for each in known if each not in theirs]:
            return Verdict("different", where, f"the plan promises {wrong}, Spark {theirs}")
        if rows is not None and rows[0] != rows[1]:
            return Verdict("different", where, f"rows {rows[0]}, Spark {rows[1]}")
        return Verdict("equal", where, plan=asked.plan)


SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def _schema(found: Any) -> list[tuple[str, str]]:
    if isinstance(found, pa.Table):
        return [(f.name, type_name(f.type).replace(" ", "").replace("`", "")) for f in found.schema]
    return [(f.name, f.dataType.simpleString().replace(" ", "").replace("`", "")) for f in found.schema]


def _as_text(frame: Any, number: int) -> Any:
    """The rows as JSON, one column beside the number of the statement."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType, NullType

    plain = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    as_text = (NullType, DecimalType)  # JSON has no decimals: a reader would round them
    cells = [
        F.col(f.name).cast("string").alias(f.name) if isinstance(f.dataType, as_text) else F.col(f.name)
        for f in plain.schema
    ]
    return plain.select(F.lit(number), F.to_json(F.struct(*cells), {"ignoreNullFields": "false"}))


def _edge_rows(table: pa.Table) -> list[str]:
    plain = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    return [_canonical({k: _digits(v) for k, v in row.items()}) for row in plain.to_pylist()]


def _digits(value: Any) -> Any:
    """A decimal with all its digits; inside of arrays and structs it is a number of JSON."""
    return format(value, "f") if isinstance(value, Decimal) else value


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
        case date():
            return value.isoformat()
        case timedelta():
            return literal(value)
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            return _plain(float(value))
        case float():
            return "NaN" if math.isnan(value) else repr(float(f"{value:.12g}"))
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case int() if not isinstance(value, bool):
            return value
    return value
