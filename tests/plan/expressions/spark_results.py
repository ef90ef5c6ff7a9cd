"""Asks Spark for the types of its functions' results, and makes the table that Rove ships.

A function is asked with every mix of a few types of arguments. What all answers have in common is a rule: always
`double`, the type of argument 1, an array of it, and so on. A function without a rule is not in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from rove.plan.aggregates import RECIPES, SPARK_AGGREGATES
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.spark_names import SPARK_FUNCTIONS
from rove.plan.expressions.spark_results import ANY, resolve
from rove.plan.sql.entries import WINDOWS
from rove.plan.sql.in_spark.left_to_spark import GENERATORS

# Two constants of each type: a type that follows from the value of an argument is no rule.
CONSTANTS = {
    "boolean": ("true", "false"),
    "int": ("1", "0"),
    "bigint": ("1L", "0L"),
    "double": ("1D", "0D"),
    "decimal(10,2)": ("CAST(1 AS decimal(10,2))", "CAST(0 AS decimal(10,2))"),
    "decimal(5,1)": ("CAST(1 AS decimal(5,1))", "CAST(0 AS decimal(5,1))"),
    "string": ("'1'", "'a'"),
    "binary": ("X'31'", "X'32'"),
    "date": ("DATE'2026-01-01'", "DATE'2026-01-02'"),
    "timestamp": ("TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-02 00:00:00'"),
    "array<int>": ("array(1)", "array(0)"),
    "array<double>": ("array(1D)", "array(0D)"),
    "array<decimal(10,2)>": ("array(CAST(1 AS decimal(10,2)))", "array(CAST(0 AS decimal(10,2)))"),
    "array<string>": ("array('1')", "array('a')"),
    "map<string,int>": ("map('1', 1)", "map('a', 2)"),
    "struct<x:int>": ("named_struct('x', 1)", "named_struct('x', 2)"),
}
_FIRST = tuple(n for n in CONSTANTS if n not in ("array<double>", "array<decimal(10,2)>"))
_SECOND = tuple(
    "boolean int bigint double decimal(10,2) string timestamp array<int> array<double> array<decimal(10,2)>".split()
)
_SHORT = tuple("int bigint double string date timestamp array<int> array<string>".split())
_THIRD = tuple("int double decimal(10,2) string boolean".split())
# Aggregates are asked with more types: their arguments are columns of any type.
_KINDS_OF_AGGREGATES = ((), (_FIRST,), (_FIRST, _SECOND), (_THIRD, _THIRD, _THIRD))
_KINDS = ((), (_FIRST,), (_SHORT, ("int", "double", "string")), (("int", "string"),) * 3)
ASKED = sorted((SPARK_FUNCTIONS | SPARK_AGGREGATES) - RULES.keys() - RECIPES.keys() - GENERATORS - set(WINDOWS))
Signature = tuple[str, ...]


def table(spark: Any, names: Iterable[str] = ASKED) -> list[str]:
    """The lines of the table that are about some functions."""
    return [line for name in names for line in _lines(spark, name)]


def checks(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """For each line an expression, and the type that the line promises."""
    for line in lines:
        call, _, rule = line.partition(" -> ")
        name, _, inside = call.rstrip(")").partition("(")
        sets = [part.split("|") for part in inside.split("; ")] if inside else []
        kinds = [_FIRST[1] if s == [ANY] else s[0] for s in sets]
        arguments = ", ".join(CONSTANTS[k][0] for k in kinds)
        found = resolve(rule, kinds)
        assert found is not None
        yield f"{name}({arguments})", found


def _lines(spark: Any, name: str) -> Iterator[str]:
    for kinds in _KINDS_OF_AGGREGATES if name in SPARK_AGGREGATES else _KINDS:
        answers: dict[Signature, str] = {}
        for signature in product(*kinds):
            found = _answer(spark, name, signature)
            if found == "":
                break  # not this number of arguments
            if found is not None:
                answers[signature] = found
        yield from _rules(name, answers, kinds)


def _answer(spark: Any, name: str, signature: Signature) -> str | None:
    """The type of the result; None if Spark refuses these arguments, empty if it refuses their number."""
    types = []
    for variant in (0, 1):
        text = f"{name}({', '.join(CONSTANTS[k][variant] for k in signature)})"
        try:
            types.append(spark.sql(f"SELECT {text} AS x").schema[0].dataType.simpleString())
        except Exception as error:
            if "WRONG_NUM_ARGS" in str(error) or "UNRESOLVED_ROUTINE" in str(error):
                return ""
            if not types:
                return None
    return types[0] if len(set(types)) == 1 else None


def _rules(name: str, answers: dict[Signature, str], kinds: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """The lines for the answers. Where no rule fits all of them, one is looked for by the types of an argument."""
    if not answers:
        return
    if (rule := _rule(answers)) is not None:
        yield _line(name, answers, kinds, rule)
        return
    choices = []
    for place in range(len(kinds)):
        parts: dict[str, dict[Signature, str]] = {}
        for signature, answer in answers.items():
            parts.setdefault(signature[place], {})[signature] = answer
        ruled = {kind: rule for kind, part in parts.items() if (rule := _rule(part)) is not None}
        choices.append((sum(len(parts[kind]) for kind in ruled), -place, ruled))
    _, place, ruled = max(choices, key=lambda choice: choice[:2])
    for rule in sorted(set(ruled.values())):
        yield _line(name, {s: a for s, a in answers.items() if ruled.get(s[-place]) == rule}, kinds, rule)
    rest = {s: a for s, a in answers.items() if s[-place] not in ruled}
    if ruled:
        yield from _rules(name, rest, kinds)


def _rule(answers: dict[Signature, str]) -> str | None:
    """What all answers have in common. A rule about an argument goes before a type."""
    arguments = range(1, len(next(iter(answers))) + 1)
    rules = [form.format(n) for n in arguments for form in ("${}", "array<${}>", "element ${}")]
    some = next(iter(answers.values()))
    nested = {kind for signature in answers for kind in signature if "<" in kind}
    if "<" not in some or len(nested) != 1:
        rules.append(some)  # from one array or one map nothing follows for others
    for rule in rules:
        if "decimal" in some and rule == some:
            continue
        if all(resolve(rule, signature) == answer for signature, answer in answers.items()):
            return rule
    return None


def _line(name: str, answers: dict[Signature, str], kinds: tuple[tuple[str, ...], ...], rule: str) -> str:
    sets = []
    for place, asked in enumerate(kinds):
        taken = [k for k in asked if any(s[place] == k for s in answers)]
        # Two decimals make a third one by rules of Spark's own.
        taken = [k for k in taken if "decimal" not in k or len(kinds) == 1 or rule in CONSTANTS]
        sets.append(ANY if taken == list(asked) and asked == _FIRST else "|".join(taken))
    return f"{name}({'; '.join(sets)}) -> {rule}"
