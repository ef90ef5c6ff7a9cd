"""Random queries as Python source: the text of a chain of verbs that runs on a DataFrame and on a stream alike.

Law: `source(seed)` depends on the seed alone. Each line gives a frame a new name, so a line can be left out of a
failing query by handing its input on. Nothing in a query depends on the order of rows: fractions are filtered,
grouped and joined on only where they are exact (`double`), not where the order of adding shows (`real`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.portable.random_values import EXACT, MOMENTS, NAMES, NUMBERS, SHAPES, SOURCES, Frame, Values, quoted, ticked


class Writer(Values):
    """Writes one query."""

    # Verbs

    def begin(self, source: str | None = None) -> Frame:
        source = source or self.pick("readings", "readings", "readings", "bid", "auction")
        if source not in self.used:
            self.used.append(source)
        columns, time = SOURCES[source]
        frame = Frame(source, dict(columns), time)
        if source == "auction":
            frame = self.line(f"select({', '.join(map(repr, columns))})", frame)
        return frame

    def watched(self, frame: Frame) -> Frame:
        if frame.watched:
            return frame
        if self.chance(0.1) and frame.of("int"):
            nulls = f"IF({quoted(frame.of('int')[0])} = 3, NULL, {quoted(frame.time)})"
            frame = self.line(f"withColumn({frame.time!r}, F.expr({nulls!r}))", frame)
        delay = self.pick("3 seconds", "4 seconds", "10 seconds", "1 minute")
        return self.line(f"withWatermark({frame.time!r}, {delay!r})", frame, watched=True)

    def steps(self, frame: Frame, most: int) -> Frame:
        for _ in range(self.random.randint(0, most)):
            step = self.pick(
                self.where,
                self.where,
                self.with_column,
                self.with_column,
                self.select,
                self.drop,
                self.rename,
                self.union,
                self.map if self.chance(0.4) else self.with_column,
                self.spark_only if self.chance(0.4) else self.where,
            )
            frame = step(frame)
        return frame

    def where(self, frame: Frame) -> Frame:
        found = self.condition(frame)
        return self.line(f"where({found!r})", frame) if found else frame

    def with_column(self, frame: Frame) -> Frame:
        kind = self.pick(*EXACT)
        found = self.value(frame, kind)
        if found is None:
            return frame
        same = [n for n in frame.columns if n != frame.time and n not in frame.windows]
        name = self.pick(*same) if same and self.chance(0.3) else self.new()
        return self.line(f"withColumn({name!r}, F.expr({found!r}))", frame, columns={**frame.columns, name: kind})

    def select(self, frame: Frame) -> Frame:
        must = [n for n in (frame.time, *frame.windows) if n in frame.columns]
        others = [n for n in frame.columns if n not in must]
        kept = self.random.sample(others, self.random.randint(min(2, len(others)), len(others)))
        names = self.random.sample([*must, *kept], len(must) + len(kept))
        items, columns = [repr(ticked(n)) for n in names], {n: frame.columns[n] for n in names}
        for _ in range(self.random.randint(0, 2)):
            kind = self.pick(*EXACT)
            if found := self.value(frame, kind):
                name = self.new()
                items.append(f"F.expr({found!r}).alias({name!r})")
                columns[name] = kind
        return self.line(f"select({', '.join(items)})", frame, columns=columns)

    def drop(self, frame: Frame) -> Frame:
        others = [n for n in frame.columns if n != frame.time and n not in frame.windows]
        if len(others) < 3:
            return frame
        gone = self.random.sample(others, self.random.randint(1, len(others) - 2))
        columns = {n: t for n, t in frame.columns.items() if n not in gone}
        return self.line(f"drop({', '.join(map(repr, gone))})", frame, columns=columns)

    def rename(self, frame: Frame) -> Frame:
        old = self.pick(*frame.columns)
        odd = () if old == frame.time else ("Odd Name ", "a.b")  # PySpark's withWatermark takes plain names only
        new = self.new(self.pick("n", *odd))
        columns = {(new if n == old else n): t for n, t in frame.columns.items()}
        windows = {(new if n == old else n): w for n, w in frame.windows.items()}
        time = new if old == frame.time else frame.time
        return self.line(f"withColumnRenamed({old!r}, {new!r})", frame, columns=columns, windows=windows, time=time)

    def union(self, frame: Frame) -> Frame:
        a, b = self.where(frame), self.where(frame)
        if self.chance(0.2):
            b = self.where(b)
        if self.chance(0.3):
            columns = self.random.sample(list(frame.columns), len(frame.columns))
            b = self.line(f"select({', '.join(repr(ticked(c)) for c in columns)})", b)
            return self.line(f"unionByName({b.name})", a)
        return self.line(f"union({b.name})", a)

    def map(self, frame: Frame) -> Frame:
        if frame.windows or "unknown" in frame.columns.values():
            return frame
        schema = ", ".join(f"{quoted(n)} {t if t != 'real' else 'double'}" for n, t in frame.columns.items())
        return self.line(f"mapInArrow({self.pick('all_rows', 'valid_rows')}, {schema!r})", frame, watched=False)

    def spark_only(self, frame: Frame) -> Frame:
        texts, numbers = frame.of("string"), frame.of("int")
        if texts and self.chance(0.6):
            found, kind = self.pick(f"soundex({quoted(texts[0])})", f"initcap({quoted(texts[0])})"), "string"
        elif numbers:
            found, kind = f"CAST(factorial(pmod({quoted(numbers[0])}, 5)) AS INT)", "int"
        else:
            return frame
        name = self.new()
        return self.line(f"withColumn({name!r}, F.expr({found!r}))", frame, columns={**frame.columns, name: kind})

    # Windows

    def shape(self, tumbling: bool = False) -> tuple[int, int, int]:
        size, slide = self.pick(*(s for s in SHAPES if not tumbling or s[0] == s[1]))
        return size, slide, self.pick(0, 0, 1, 2)

    def window(self, time: str, shape: tuple[int, int, int]) -> str:
        size, slide, offset = shape
        parts = [repr(ticked(time)), f"'{size} seconds'"]
        if slide != size or offset:
            parts.append(f"'{slide} seconds'")
        if offset:
            parts.append(f"'{offset} seconds'")
        return f"F.window({', '.join(parts)})"

    def window_column(self, frame: Frame, shape: tuple[int, int, int] | None = None) -> Frame:
        frame = self.watched(frame)
        shape = shape or self.shape(tumbling=True)
        name = self.new("w")
        return self.line(
            f"withColumn({name!r}, {self.window(frame.time, shape)})",
            frame,
            columns={**frame.columns, name: "window"},
            windows={**frame.windows, name: shape},
        )

    def aggregate(self, frame: Frame, by: str | None = None) -> Frame:
        """A groupBy over event time, or by a column that is a window already."""
        if by is None:
            frame = self.watched(frame)
            shape = self.shape()
            name = self.pick("window", self.new("w"))
            groups = [self.window(frame.time, shape) + (f".alias({name!r})" if name != "window" else "")]
        else:
            shape, name = frame.windows[by], by
            groups = [repr(ticked(by))]
        columns = {name: "window"}
        for _ in range(self.pick(0, 1, 1, 1, 2, 3)):
            kind = self.pick(*EXACT)
            names = [n for n in frame.of(kind) if n not in columns and n != name]
            if names and self.chance(0.5):
                key = self.pick(*names)
                groups.append(repr(ticked(key)))
            elif found := self.value(frame, kind):
                key = self.new("k")
                groups.append(f"F.expr({found!r}).alias({key!r})")
            else:
                continue
            columns[key] = kind
        if self.chance(0.3):
            first, *rest = groups
            groups = [*rest, first]
            names = list(columns)
            columns = {n: columns[n] for n in [*names[1:], names[0]]}
        outputs = []
        for _ in range(self.random.randint(1, 4)):
            found, kind = self.aggregated(frame)
            alias = self.new("a")
            outputs.append(f"{found}.alias({alias!r})")
            columns[alias] = kind
        return self.line(
            f"groupBy({', '.join(groups)}).agg({', '.join(outputs)})",
            frame,
            columns=columns,
            windows={name: shape},
            time="",
        )

    def aggregated(self, frame: Frame) -> tuple[str, str]:
        if self.chance(0.2):
            return "F.count('*')", "bigint"
        kind = self.pick(*EXACT, *NUMBERS)
        found = self.value(frame, kind)
        if found is None:
            return "F.count('*')", "bigint"
        x = f"F.expr({found!r})"
        options = [(f"F.count({x})", "bigint")]
        if kind != "boolean":
            options += [(f"F.{self.pick('min', 'max')}({x})", kind)] * 2
        if kind in ("int", "bigint"):
            options += [(f"F.sum({x})", "bigint")] * 2
        if kind in NUMBERS:
            spread = self.pick("stddev", "variance", "var_pop", "stddev_pop")
            options += [(f"F.avg({x})", "real"), (f"F.{spread}({x})", "real"), (f"F.sum({x})", "real")]
            options += [(f"(F.sum({x}) / F.count({x}))", "real"), (f"(F.max({x}) - F.min({x}))", "real")]
        if kind not in ("double",):
            options += [(f"F.approx_count_distinct({x})", "bigint")]
        if self.chance(0.1) and kind != "double":
            options = [
                (f"F.sort_array(F.collect_list({x}))", "unknown"),
                (f"F.max(F.struct({x}.alias('x'), F.lit(1).alias('y')))", "unknown"),
            ]
        if kind == "boolean":
            options += [(f"F.{self.pick('bool_and', 'bool_or', 'max')}({x})", "boolean")]
        return self.pick(*options)

    def above(self, frame: Frame, most: int = 3) -> Frame:
        """Steps above an aggregate or join: filters on keys and results, the window's ends."""
        for _ in range(self.random.randint(0, most)):
            step = self.pick(self.where, self.where, self.with_column, self.ends, self.drop_windowless, self.union)
            frame = step(frame)
        return frame

    def drop_windowless(self, frame: Frame) -> Frame:
        return self.drop(frame) if self.chance(0.5) else self.select(frame)

    def ends(self, frame: Frame) -> Frame:
        if not frame.windows:
            return frame
        window, end, name = self.pick(*frame.windows), self.pick("start", "end"), self.new("t")
        found = f"{quoted(window)}.{quoted(end)}"
        if self.chance(0.5):
            moment = self.pick(*MOMENTS["readings" if "readings" in self.used else "bid"])
            condition = f"{found} {self.pick('<', '>=')} TIMESTAMP'{moment}'"
            return self.line(f"where({condition!r})", frame)
        columns = {**frame.columns, name: "timestamp"}
        return self.line(f"withColumn({name!r}, F.expr({found!r}))", frame, columns=columns)

    def join(self, left: Frame, right: Frame) -> Frame:
        """Two frames that have a window, matched on it and on whatever else they share."""
        a, b = self.pick(*left.windows), self.pick(*right.windows)
        pairs = [(a, b)]
        shared = [
            (n, m)
            for n, t in left.columns.items()
            for m, u in right.columns.items()
            if t == u and t in EXACT and (n == m or self.chance(0.2))
        ]
        if shared:
            pairs += self.random.sample(shared, min(len(shared), self.pick(0, 1, 1, 2)))
            pairs = [p for i, p in enumerate(pairs) if all(p[0] != q[0] and p[1] != q[1] for q in pairs[:i])]
        how = self.pick("inner", "inner", "inner", "inner", "left_outer", "left_semi", "left_anti", "full_outer")
        if self.chance(0.5):
            return self.join_using(left, right, pairs, how)
        names = {n: self.new("r") for n in right.columns}
        items = [f"F.col({ticked(n)!r}).alias({new!r})" for n, new in names.items()]
        moved = self.line(f"select({', '.join(items)})", right, columns={names[n]: t for n, t in right.columns.items()})
        both = {**left.columns, **moved.columns}
        parts = [f"{quoted(n)} = {quoted(names[m])}" for n, m in pairs]
        if self.chance(0.4) and (extra := self.condition(replace(left, columns=both))):
            parts.append(extra)
        elif self.chance(0.4):
            numbers = [n for n in left.columns if left.columns[n] == "int"], moved.of("int")
            if all(numbers):
                parts.append(f"{quoted(numbers[0][0])} < {quoted(numbers[1][0])}")
        self.random.shuffle(parts)
        columns = left.columns if how in ("left_semi", "left_anti") else both
        windows = dict(left.windows)
        if columns is both and how == "inner":
            windows |= {names[n]: w for n, w in right.windows.items()}
        text = f"join({moved.name}, F.expr({' AND '.join(parts)!r}), {how!r})"
        return self.line(text, left, columns=columns, windows=windows)

    def join_using(self, left: Frame, right: Frame, pairs: list[tuple[str, str]], how: str) -> Frame:
        names = {m: n for n, m in pairs}
        names |= {m: self.new("r") for m in right.columns if m not in names}
        items = [f"F.col({ticked(m)!r}).alias({n!r})" for m, n in names.items()]
        moved = self.line(f"select({', '.join(items)})", right)
        keys = [n for n, _ in pairs]
        columns = {k: left.columns[k] for k in keys} | {n: t for n, t in left.columns.items() if n not in keys}
        if how not in ("left_semi", "left_anti"):
            columns |= {n: right.columns[m] for m, n in names.items() if n not in keys}
        windows = {n: w for n, w in left.windows.items() if n in columns}
        return self.line(f"join({moved.name}, {keys!r}, {how!r})", left, columns=columns, windows=windows)

    # Whole queries

    def query(self) -> str:
        frame = self.steps(self.begin(), 4)
        match self.pick(
            "plain", "agg", "agg", "agg", "agg", "agg_agg", "join", "join", "agg_join", "join_agg", "by_column"
        ):
            case "plain":
                frame = self.steps(self.watched(frame) if self.chance(0.3) else frame, 3)
            case "agg":
                frame = self.steps(self.watched(frame), 2)
                frame = self.above(self.aggregate(frame))
            case "agg_agg":
                frame = self.above(self.aggregate(frame), 2)
                frame = self.above(self.aggregate(frame, by=self.pick(*frame.windows)), 2)
            case "by_column":
                frame = self.steps(self.window_column(frame), 2)
                if "window" in frame.columns.values():
                    frame = self.above(self.aggregate(frame, by=self.pick(*frame.windows)))
            case "join":
                frame = self.above(self.join(*self.sides(frame)))
            case "agg_join":
                frame = self.watched(frame)
                left = self.aggregate(frame)
                window = next(iter(left.windows))
                if self.chance(0.5):
                    right = self.aggregate(left, by=window)
                else:
                    right = self.where(left)
                frame = self.above(self.join(self.above(left, 1), right))
            case "join_agg":
                frame = self.above(self.join(*self.sides(frame)), 1)
                frame = self.above(self.aggregate(frame, by=self.pick(*frame.windows)), 2)
        body = "\n    ".join(["F = functions_for(" + self.used[0] + ")", *self.lines, f"return {frame.name}"])
        return f"def query({', '.join(self.used)}):\n    {body}\n"

    def sides(self, frame: Frame) -> tuple[Frame, Frame]:
        """Two sides with a window column of one shape: of one stream filtered twice, or of two streams."""
        shape = self.shape(tumbling=True)
        if self.chance(0.3) and "readings" not in self.used:
            left = self.window_column(frame, shape)
            right = self.window_column(self.where(self.begin(self.pick("bid", "auction"))), shape)
            return self.where(left), right
        left = self.window_column(frame, shape)
        return self.steps(left, 1), self.steps(left, 2)


def source(seed: int) -> str:
    """The text of one query."""
    return Writer(seed).query()


def compiled(text: str) -> Callable[..., Any]:
    """The function that a text defines."""
    scope = dict(NAMES)
    exec(text, scope)
    return scope["query"]
