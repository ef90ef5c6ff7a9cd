"""Asks Spark what it calls the results of its functions, and makes the table that Rove ships.

A function is asked with arguments of types that it takes, as `spark_results.py` knows them. In the name that Spark
gives, the arguments are replaced by their numbers: `regexp_instr($1, $2, 0)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rove.plan.expressions.result_table import RESULTS
from rove.plan.expressions.spark_results import ANY

# For each type the name of a column, and a constant. Both are told apart by the place of the argument.
KINDS = {
    "boolean": ("b{n}", "true"),
    "int": ("i{n}", "7{n}"),
    "bigint": ("g{n}", "7{n}L"),
    "double": ("d{n}", "0.{n}D"),
    "decimal(10,2)": ("c{n}", "0.{n}"),
    "decimal(5,1)": ("f{n}", "0.{n}"),
    "string": ("s{n}", "'k{n}'"),
    "binary": ("y{n}", "X'3{n}'"),
    "date": ("e{n}", "DATE'2026-01-0{n}'"),
    "timestamp": ("t{n}", "TIMESTAMP'2026-01-01 00:00:0{n}'"),
    "array<int>": ("li{n}", "array(7{n})"),
    "array<double>": ("ld{n}", "array(0.{n}D)"),
    "array<decimal(10,2)>": ("lc{n}", "array(0.{n})"),
    "array<string>": ("ls{n}", "array('k{n}')"),
    "map<string,int>": ("m{n}", "map('k{n}', 7{n})"),
    "struct<x:int>": ("r{n}", "named_struct('x', 7{n})"),
}
COLUMN, CONSTANT = 0, 1
ARGUMENTS_MAX = 4
VIEW = "__named"
# Their names follow from the types of arguments, or they are no calls.
OTHERS = frozenset("to_char to_varchar when transform".split())


def signatures() -> dict[tuple[str, int], list[str]]:
    """Types of arguments that a function takes, by its name and their number."""
    found: dict[tuple[str, int], list[str]] = {}
    for line in RESULTS.splitlines():
        name, _, inside = line.partition(" -> ")[0].removesuffix(")").partition("(")
        kinds = [part.split("|")[0] for part in inside.split("; ")] if inside else []
        if name not in OTHERS:
            found.setdefault((name, len(kinds)), ["string" if k == ANY else k for k in kinds])
    return found


def table(spark: Any, asked: Iterable[tuple[str, int]]) -> list[str]:
    """The lines of the table for some functions: the call, and what Spark calls it unless that is the call."""
    columns = [f"{c[COLUMN].format(n=n)} {kind}" for kind, c in KINDS.items() for n in range(1, ARGUMENTS_MAX + 1)]
    spark.createDataFrame([], ", ".join(columns)).createOrReplaceTempView(VIEW)
    known = signatures()
    try:
        found = ((name, count, _template(spark, name, known[name, count])) for name, count in asked)
        return [_line(name, count, template) for name, count, template in found if template]
    finally:
        spark.catalog.dropTempView(VIEW)


def _line(name: str, count: int, template: str) -> str:
    plain = f"{name}({', '.join(f'${n}' for n in range(1, count + 1))})"
    return f"{name}/{count}" if template == plain else f"{name}/{count} {template}"


def _template(spark: Any, name: str, kinds: list[str]) -> str:
    """What Spark calls a call with arguments of these types; empty if it is not known."""
    for forms in _forms(len(kinds)):
        arguments = [KINDS[kind][form].format(n=n) for n, (kind, form) in enumerate(zip(kinds, forms, strict=True), 1)]
        try:
            (shown,) = spark.sql(f"SELECT {name}({', '.join(arguments)}) FROM {VIEW}").columns
        except Exception:
            continue
        for n, argument in enumerate(arguments, 1):
            token = rf"(?<![\w.]){re.escape(_shown(argument))}(?![\w.])"
            if len(re.findall(token, shown)) != 1:
                return ""
            shown = re.sub(token, f"${n}", shown)
        return "" if "lambda" in shown else str(shown)
    return ""


def _forms(count: int) -> Iterator[list[int]]:
    """Columns before constants: some arguments must be constants, mostly the last ones."""
    for columns in range(count, -1, -1):
        yield [COLUMN] * columns + [CONSTANT] * (count - columns)
    if count > 1:
        yield [CONSTANT] * (count - 1) + [COLUMN]


def _shown(argument: str) -> str:
    """An argument as Spark writes it in a name."""
    if typed := re.fullmatch(r"(DATE|TIMESTAMP)('.*')", argument):
        return f"{typed[1]} {typed[2]}"
    return argument if argument.startswith("X'") else re.sub(r"'|(?<=\d)[DL]", "", argument)
