"""Random values as SQL text: frames of a query, and expressions and conditions over their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rove import functions_for

READINGS = {
    "sensor": "string",
    "ts": "timestamp",
    "value": "double",
    "level": "int",
    "tags": "array<string>",
    "place": "struct<lat: double, lon: double>",
    "ok": "boolean",
    "amount": "decimal(10,2)",
    "day": "date",
}
BID = {
    "auction": "bigint",
    "bidder": "bigint",
    "price": "bigint",
    "channel": "string",
    "url": "string",
    "dateTime": "timestamp",
    "extra": "string",
}
AUCTION = {
    "id": "bigint",
    "itemName": "string",
    "initialBid": "bigint",
    "dateTime": "timestamp",
    "expires": "timestamp",
    "seller": "bigint",
    "category": "bigint",
}
SOURCES = {"readings": (READINGS, "ts"), "bid": (BID, "dateTime"), "auction": (AUCTION, "dateTime")}
MOMENTS = {
    "readings": ("2024-02-28 23:59:40", "2024-02-29 00:01:00"),
    "bid": ("2015-07-15 00:00:00", "2015-07-15 18:59:00", "2015-07-15 19:00:00"),
}

EXACT = ("string", "int", "bigint", "boolean", "date", "decimal(10,2)", "double", "timestamp")
NUMBERS = ("int", "bigint", "decimal(10,2)", "double")
# Each size with the slides that go with it, in seconds; not every slide divides its size.
SHAPES = ((5, 5), (7, 7), (10, 10), (20, 20), (60, 60), (10, 5), (10, 3), (9, 6), (20, 5), (12, 8), (6, 4))


def all_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: every row as it is."""
    yield from batches


def valid_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: rows whose first column is not null, each batch in two pieces."""
    for batch in batches:
        kept = batch.filter(pc.is_valid(batch.column(0)))
        half = kept.num_rows // 2
        yield kept.slice(0, half)
        yield kept.slice(half)


NAMES: dict[str, Any] = {"functions_for": functions_for, "all_rows": all_rows, "valid_rows": valid_rows}


@dataclass(frozen=True)
class Frame:
    """A frame of the query: its variable, its columns with their types, what is event time, and what a window."""

    name: str
    columns: dict[str, str]
    time: str
    watched: bool = False
    windows: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def of(self, *types: str) -> list[str]:
        return [n for n, t in self.columns.items() if t in types]


class Values:
    """Writes expressions; what it draws depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.used: list[str] = []
        self.fresh = 0

    # Pieces

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def new(self, stem: str = "c") -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def line(self, text: str, frame: Frame, **changes: Any) -> Frame:
        name = self.new("f")
        self.lines.append(f"{name} = {frame.name}.{text}")
        return replace(frame, name=name, **changes)

    def value(self, frame: Frame, wanted: str, depth: int = 0) -> str | None:
        """An expression of a type, as SQL text."""
        options: list[Callable[[], str | None]] = []
        names = frame.of(wanted)
        if names:
            options += [lambda: quoted(self.pick(*names))] * 2
        options += [lambda: self.computed(frame, wanted, depth + 1)] * (2 if depth < 2 else 0)
        for option in self.random.sample(options, len(options)):
            if found := option():
                return found
        return None

    def computed(self, frame: Frame, wanted: str, depth: int) -> str | None:
        def of(kind: str) -> str | None:
            return self.value(frame, kind, depth)

        pick = self.pick
        if wanted == "int":
            a, s, b, t = of("int"), of("string"), of("boolean"), (frame.of("timestamp") or [None])[0]
            tags = frame.of("array<string>")
            return (
                pick(
                    *(
                        [f"({a} {pick('+', '-', '*')} {pick(1, 2, 3)})", f"({a} % {pick(2, 3)})", f"coalesce({a}, -1)"]
                        if a
                        else []
                    ),
                    *([f"pmod({a} - 4, 3)", f"abs({a} - 5)", f"nullif({a}, {pick(0, 2, 3)})"] if a else []),
                    *([f"length({s})", f"instr({s}, '-')"] if s else []),
                    *([f"IF({b}, 1, 0)", f"CAST({b} AS INT)"] if b else []),
                    *([f"second({quoted(t)})", f"minute({quoted(t)})"] if t else []),
                    *([f"size({quoted(tags[0])})"] if tags else []),
                    *([f"CAST(12 DIV nullif({a}, 0) AS INT)"] if a else []),
                )
                if any((a, s, b, t, tags))
                else None
            )
        if wanted == "bigint":
            a, i = of("bigint"), of("int")
            return (
                pick(
                    *([f"({a} % {pick(2, 5, 123)})", f"({a} + {pick(1, 7)})", f"coalesce({a}, 0L)"] if a else []),
                    *([f"CAST({i} AS BIGINT)", f"({i} * 1000000000000L)"] if i else []),
                )
                if a or i
                else None
            )
        if wanted == "double":
            a, i = of("double"), of("int")
            zeros = "CAST('-0.0' AS DOUBLE)"
            return (
                pick(
                    *([f"({a} * 2)", f"({a} / 4)", f"nanvl({a}, 0D)", f"({a} + 1)", f"abs({a})"] if a else []),
                    *(
                        [f"CAST({i} AS DOUBLE)", f"IF({i} > 4, {zeros}, 0D)", f"IF({i} > 4, double('NaN'), {zeros})"]
                        if i
                        else []
                    ),
                )
                if a or i
                else None
            )
        if wanted == "decimal(10,2)":
            a, i = of("decimal(10,2)"), of("int")
            if i and self.chance(0.3):
                return f"CAST(({i} % 100) AS DECIMAL(10,2))"
            return f"abs({a})" if a else None
        if wanted == "string":
            s, i, b = of("string"), of("int"), of("boolean")
            return (
                pick(
                    *(
                        [f"upper(trim({s}))", f"concat({s}, '!')", f"substring({s}, 1, 3)", f"coalesce({s}, '?')"]
                        if s
                        else []
                    ),
                    *([f"nullif({s}, '')", f"reverse({s})", f"regexp_replace({s}, '[0-9]+', '#')"] if s else []),
                    *([f"CAST({i} AS STRING)"] if i else []),
                    *([f"CASE WHEN {b} THEN 'yes' WHEN NOT {b} THEN 'no' END"] if b else []),
                )
                if s or i or b
                else None
            )
        if wanted == "boolean":
            return self.condition(frame, depth)
        if wanted == "timestamp":
            t = of("timestamp")
            return pick(f"({t} + INTERVAL 90 SECONDS)", f"date_trunc('minute', {t})") if t else None
        if wanted == "date":
            d, t = of("date"), of("timestamp")
            return (
                pick(*([f"date_add({d}, 1)", f"last_day({d})"] if d else []), *([f"to_date({t})"] if t else []))
                if (d or t)
                else None
            )
        return None

    def condition(self, frame: Frame, depth: int = 0) -> str | None:
        """A boolean expression, null for some rows."""
        if depth < 2 and self.chance(0.35):
            a, b = self.condition(frame, depth + 1), self.condition(frame, depth + 1)
            if a and b:
                return self.pick(
                    f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})", f"coalesce({a}, {b})", f"({a} <=> {b})"
                )
        kinds = [k for k in EXACT if frame.of(k)]
        self.random.shuffle(kinds)
        for kind in kinds:
            x = self.value(frame, kind, depth + 1)
            if x is None:
                continue
            compare = self.pick("<", ">", "<=", ">=", "<>", "<>")
            if kind == "boolean":
                return self.pick(x, f"(NOT {x})", f"({x} IS NOT NULL)", f"({x} IS TRUE)")
            if self.chance(0.15):
                return f"({x} IS {self.pick('', 'NOT ', 'NOT ', 'NOT ')}NULL)"
            if kind in ("int", "decimal(10,2)"):
                return self.pick(
                    f"({x} {compare} {self.pick(0, 2, 5, 9)})", f"({x} BETWEEN 1 AND 6)", f"({x} IN (1, 4, 7))"
                )
            if kind == "bigint":
                return f"({x} {self.pick('>', '>=', '<>')} {self.pick(0, 3, 1010)})"
            if kind == "double":
                return self.pick(
                    f"({x} {compare} {self.pick('0D', '250D', '600.5D')})", f"isnan({x})", f"(NOT isnan({x}))"
                )
            if kind == "string":
                return self.pick(
                    f"({x} {compare} 'dock-2')", f"({x} LIKE '%o%')", f"({x} NOT IN ('', 'roof-5', 'Dock-2'))"
                )
            if kind == "date":
                return f"({x} {compare} DATE'2024-02-25')"
            if kind == "timestamp":
                moment = self.pick(*MOMENTS["readings" if "readings" in self.used else "bid"])
                return f"({x} {self.pick('<', '>=')} TIMESTAMP'{moment}')"
        return None


def quoted(name: str) -> str:
    return f"`{name}`"


def ticked(name: str) -> str:
    """A name as a verb takes it: dots in it would reach into a struct."""
    return f"`{name}`" if "." in name else name
