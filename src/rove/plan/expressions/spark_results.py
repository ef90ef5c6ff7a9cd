"""The types of the results of functions that only Spark computes.

Law: the table is Spark's own. `pytest tests/plan/expressions/test_spark_results.py --all-functions --rewrite-docs` asks
a Spark and writes all of it; without the last flag it compares. A call that no line of the table fits has an unknown
type: Spark decides, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from rove.model.schema import UNKNOWN, is_spark_only, parse_type, type_name
from rove.plan.expressions.result_table import RESULTS

ANY = "any"


def result_type(function: str, arguments: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a call's result; `UNKNOWN` if the table does not say."""
    if any(is_spark_only(a) for a in arguments):
        return UNKNOWN
    given = [type_name(a).replace(", ", ",").replace(": ", ":") for a in arguments]
    kinds = [_kind(g) for g in given]
    for sets, rule in _lines().get(function.lower(), ()):
        if len(sets) == len(kinds) and all(s == {ANY} or k in s for s, k in zip(sets, kinds, strict=True)):
            found = resolve(rule, given)
            return UNKNOWN if found is None else parse_type(found)
    return UNKNOWN


def resolve(rule: str, arguments: Sequence[str]) -> str | None:
    """The type that a rule gives for arguments of these types; None if it gives none."""
    if "$" not in rule:
        return rule
    before, _, number = rule.rstrip(">").partition("$")
    argument = arguments[int(number) - 1]
    if before == "element ":
        return argument[6:-1] if argument.startswith("array<") else None
    return f"{before}{argument}{'>' if before else ''}"


def _kind(name: str) -> str:
    """The type of the table that stands for a type: one decimal for all of them."""
    return re.sub(r"decimal\(\d+,\d+\)", "decimal(10,2)", name)


@cache
def _lines() -> dict[str, list[tuple[list[set[str]], str]]]:
    found: dict[str, list[tuple[list[set[str]], str]]] = {}
    for line in RESULTS.split("\n"):
        call, _, rule = line.partition(" -> ")
        name, _, inside = call[:-1].partition("(")
        sets = [set(part.split("|")) for part in inside.split("; ")] if inside else []
        found.setdefault(name, []).append((sets, rule))
    return found
