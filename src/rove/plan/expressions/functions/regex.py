"""`rlike`, `regexp_replace`, `regexp_extract`, `regexp_count` and `split`.

Law: the pattern is a literal that `java_regex` can translate. A pattern that may match the empty text is used only for
yes-or-no answers, because the engines step over empty matches differently.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import BOOLEAN, INT, STRING
from rove.plan.expressions.functions.java_regex import Regex, translate
from rove.plan.expressions.functions.registry import arity, function
from rove.plan.expressions.functions.search import STRINGS, Kernel
from rove.plan.expressions.functions.strings import known_int, known_text, text
from rove.plan.expressions.tree import Call, Datum, Expr
from rove.plan.expressions.types import Refused

# Java's `$` matches at the end, or before one last line terminator, but not inside a final `\r\n`.
_AFTER_CRLF = "(?:\\r\\n)?\\z"
_AFTER_OTHER = "(?:[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z"


def _pattern(expr: Expr, name: str) -> Regex:
    return translate(known_text(expr, f"the regular expression of {name}"))


def _consuming(regex: Regex, name: str) -> None:
    if regex.can_be_empty:
        raise Refused(f"{name} with a pattern that can match nothing is left to Spark")


@function("rlike", "regexp", "regexp_like")
def rlike(args: tuple[Expr, ...]) -> Expr:
    arity("rlike", args, 2)
    regex = _pattern(args[1], "rlike")
    return Call(BOOLEAN, "rlike", (text(args[0], "rlike"), args[1]), _found(regex), template="({0} RLIKE {1})")


def _found(regex: Regex) -> Kernel:
    if not regex.at_end:
        return lambda x, _: pc.match_substring_regex(x, regex.body)

    def kernel(x: Datum, _: Datum) -> Datum:
        other = pc.match_substring_regex(x, regex.body + _AFTER_OTHER)
        crlf = pc.ends_with(x, "\r\n")
        if not crlf.true_count:
            return other
        return pc.if_else(crlf, pc.match_substring_regex(x, regex.body + _AFTER_CRLF), other)

    return kernel


@function("regexp_replace")
def regexp_replace(args: tuple[Expr, ...]) -> Expr:
    arity("regexp_replace", args, 3, 4)
    regex = _pattern(args[1], "regexp_replace")
    _consuming(regex, "regexp_replace")
    if regex.at_end or regex.body.startswith("\\A") or "|\\A" in regex.body or len(args) == 4:
        raise Refused("regexp_replace with `^`, `$` or a position is left to Spark", STRING)
    by = replacement(known_text(args[2], "the replacement"), regex.groups)
    value = text(args[0], "regexp_replace")
    return Call(
        STRING,
        "regexp_replace",
        (value, *args[1:]),
        lambda x, *_: pc.replace_substring_regex(x, regex.body, by),
    )


def replacement(written: str, groups: int) -> str:
    """Java's `$1` and `\\$` as RE2's `\\1` and `$`."""
    parts = []
    for token in re.findall(r"\\.|\$\d+|[\s\S]", written):
        if token[0] == "\\" and len(token) == 2:
            parts.append("\\\\" if token[1] == "\\" else token[1])
        elif token[0] == "$":
            if len(token) != 2 or int(token[1]) > groups:
                raise Refused(f"the replacement `{token}` is left to Spark", STRING)
            parts.append(f"\\{token[1]}")
        elif token == "\\":
            raise Refused("the replacement ends with a backslash; Spark raises", STRING)
        else:
            parts.append(token)
    return "".join(parts)


@function("regexp_extract")
def regexp_extract(args: tuple[Expr, ...]) -> Expr:
    """The group of the first match; an empty text where there is no match."""
    arity("regexp_extract", args, 2, 3)
    regex = _pattern(args[1], "regexp_extract")
    group = known_int(args[2], "the group of regexp_extract") if len(args) == 3 else 1
    if not 0 <= group <= regex.groups:
        raise Refused(f"the regular expression has {regex.groups} groups, not {group}; Spark raises", STRING)
    if regex.at_end:
        raise Refused("regexp_extract with `$` is left to Spark", STRING)
    body = f"(?P<g0>{regex.body})"

    def kernel(x: Datum, *_: Datum) -> Datum:
        found = pc.struct_field(pc.extract_regex(x, body), group)
        return pc.if_else(pc.is_valid(x), pc.fill_null(found, ""), pa.scalar(None, STRING))

    return Call(STRING, "regexp_extract", (text(args[0], "regexp_extract"), *args[1:]), kernel)


@function("regexp_count")
def regexp_count(args: tuple[Expr, ...]) -> Expr:
    arity("regexp_count", args, 2)
    regex = _pattern(args[1], "regexp_count")
    _consuming(regex, "regexp_count")
    if regex.at_end or "\\A" in regex.body:
        raise Refused("regexp_count with `^` or `$` is left to Spark", INT)
    value = text(args[0], "regexp_count")
    return Call(INT, "regexp_count", (value, args[1]), lambda x, _: pc.count_substring_regex(x, regex.body))


@function("split")
def split(args: tuple[Expr, ...]) -> Expr:
    arity("split", args, 2, 3)
    written = known_text(args[1], "the pattern of split")
    regex = translate(written)
    _consuming(regex, "split")
    if regex.at_end or "\\A" in regex.body:
        raise Refused("split with `^` or `$` is left to Spark", STRINGS)
    limit = known_int(args[2], "the limit of split") if len(args) == 3 else -1
    splits = limit - 1 if limit > 0 else -1
    literal_text = re.fullmatch(r"[^\\\[\](){}.*+?^$|]+", written)
    value = text(args[0], "split")
    if splits == 0 or regex.groups:
        raise Refused("split into one part, or by a pattern with groups, is left to Spark", STRINGS)

    def kernel(x: Datum, *_: Datum) -> Datum:
        if literal_text:
            return pc.split_pattern(x, pattern=written, max_splits=splits)
        return pc.split_pattern_regex(x, pattern=regex.body, max_splits=splits)

    return Call(STRINGS, "split", (value, *args[1:]), kernel)
