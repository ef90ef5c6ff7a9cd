"""Finding, replacing and splitting by a literal text, and SQL's LIKE.

Law: the text that is searched for is a literal at the edge. A LIKE pattern becomes a prefix, suffix or substring test
where that is equivalent, and an anchored regular expression otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault
from rove.model.schema import BINARY, BOOLEAN, INT, STRING, VOID
from rove.plan.expressions.functions.masks import row_numbers
from rove.plan.expressions.functions.registry import apply, arity, function
from rove.plan.expressions.functions.strings import known_int, known_text, text
from rove.plan.expressions.tree import Call, Datum, Expr
from rove.plan.expressions.types import Refused

Kernel = Callable[..., Datum]
STRINGS = pa.list_(STRING)


def _matching(name: str, kernel: Kernel) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 2)
        if BINARY in (args[0].dtype, args[1].dtype):
            raise Refused(f"{name} of binary is left to Spark", BOOLEAN)
        wanted = known_text(args[1], f"what {name} looks for")
        return Call(BOOLEAN, name, (text(args[0], name), args[1]), lambda x, _: kernel(x, wanted))


_matching("startswith", pc.starts_with)
_matching("endswith", pc.ends_with)
_matching("contains", pc.match_substring)


def _position(x: Datum, wanted: str, skipped: int) -> Datum:
    """The place of the first occurrence past `skipped` characters, counted from 1; 0 if there is none."""
    if not wanted:
        return pc.if_else(pc.is_valid(x), pa.scalar(1, INT), pa.scalar(None, INT))
    rest = pc.utf8_slice_codeunits(x, skipped) if skipped else x
    found = pc.match_substring(rest, wanted)
    before = pc.list_element(pc.split_pattern(rest, pattern=wanted, max_splits=1), 0)
    return pc.if_else(found, pc.add(pc.utf8_length(before), pa.scalar(skipped + 1, INT)), pa.scalar(0, INT))


@function("locate", "position")
def locate(args: tuple[Expr, ...]) -> Expr:
    arity("locate", args, 2, 3)
    wanted = known_text(args[0], "what locate looks for")
    start = known_int(args[2], "the position of locate") if len(args) == 3 else 1
    value = text(args[1], "locate")
    if start < 1:
        nothing = pa.scalar(0, INT)
        none = pa.scalar(None, INT)
        return Call(
            INT,
            "locate",
            (args[0], value, *args[2:]),
            lambda _, x, *__: pc.if_else(pc.is_valid(x), nothing, none),
        )
    return Call(INT, "locate", (args[0], value, *args[2:]), lambda _, x, *__: _position(x, wanted, start - 1))


@function("instr")
def instr(args: tuple[Expr, ...]) -> Expr:
    arity("instr", args, 2)
    wanted = known_text(args[1], "what instr looks for")
    return Call(INT, "instr", (text(args[0], "instr"), args[1]), lambda x, _: _position(x, wanted, 0))


@function("replace")
def replace(args: tuple[Expr, ...]) -> Expr:
    arity("replace", args, 2, 3)
    wanted = known_text(args[1], "what replace looks for")
    by = known_text(args[2], "the replacement") if len(args) == 3 else ""
    kernel: Kernel = (lambda x, *_: pc.replace_substring(x, wanted, by)) if wanted else (lambda x, *_: x)
    return Call(STRING, "replace", (text(args[0], "replace"), *args[1:]), kernel)


@function("translate")
def translate(args: tuple[Expr, ...]) -> Expr:
    """Letter by letter, one after the other; so a letter that is also a result is left to Spark."""
    arity("translate", args, 3)
    letters, results = known_text(args[1], "the letters"), known_text(args[2], "their replacements")
    pairs: dict[str, str] = {}
    for i, letter in enumerate(letters):
        pairs.setdefault(letter, results[i] if i < len(results) else "")
    if set(pairs.values()) & pairs.keys():
        raise Refused("translate whose letters replace each other is left to Spark", STRING)

    def kernel(x: Datum, *_: Datum) -> Datum:
        for letter, by in pairs.items():
            x = pc.replace_substring(x, letter, by)
        return x

    return Call(STRING, "translate", (text(args[0], "translate"), *args[1:]), kernel)


@function("split_part")
def split_part(args: tuple[Expr, ...]) -> Expr:
    arity("split_part", args, 3)
    delimiter = known_text(args[1], "the delimiter of split_part")
    place = known_int(args[2], "the place in split_part")
    value = text(args[0], "split_part")

    def kernel(x: Datum, *_: Datum) -> Datum:
        if not place:
            if x.null_count < len(x):
                raise ArithmeticFault("split_part counts from 1; the place is 0")
            return x
        parts = pc.split_pattern(x, pattern=delimiter) if delimiter else _alone(x)
        return part_at(parts, place)

    return Call(STRING, "split_part", (value, *args[1:]), kernel, fallible=not place)


def _alone(x: pa.Array) -> pa.Array:
    """Each text as a list of one."""
    return pa.ListArray.from_arrays(pc.cast(row_numbers(len(x) + 1), pa.int32()), x, mask=pc.is_null(x))


def part_at(parts: pa.Array, place: int) -> pa.Array:
    """The item at a place counted from 1, or from the end if negative; an empty text where there is none."""
    length = pc.list_value_length(parts)
    index = pa.scalar(place - 1, INT) if place > 0 else pc.add(length, pa.scalar(place, INT))
    inside = pc.and_(pc.less(index, length), pc.greater_equal(index, 0))
    starts = parts.offsets.slice(0, len(parts))
    items = parts.values.take(pc.if_else(inside, pc.add(starts, index), pa.scalar(None, INT)))
    return pc.if_else(inside, items, "")


@function("like")
def like(args: tuple[Expr, ...]) -> Expr:
    arity("like", args, 2, 3)
    pattern = known_text(args[1], "the pattern of LIKE")
    escape = known_text(args[2], "the escape of LIKE") if len(args) == 3 else "\\"
    if len(escape) != 1:
        raise Refused("LIKE escapes with one character", BOOLEAN)
    kernel = like_kernel(pattern, escape)
    if args[0].dtype not in (STRING, VOID):
        raise Refused("LIKE of other types than string is left to Spark", BOOLEAN)
    template = "({0} LIKE {1} ESCAPE {2})" if len(args) == 3 else "({0} LIKE {1})"
    return Call(BOOLEAN, "like", (text(args[0], "LIKE"), *args[1:]), lambda x, *_: kernel(x), template=template)


def like_kernel(pattern: str, escape: str) -> Kernel:
    """Split `pattern` into literal texts and wildcards, and use the cheapest equivalent test."""
    parts: list[tuple[bool, str]] = []  # (is a wildcard, text)
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            following = next(chars, "")
            if following not in ("%", "_", escape) or not following:
                raise Refused("LIKE escapes only `%`, `_` and the escape itself; Spark raises", BOOLEAN)
            parts.append((False, following))
        else:
            parts.append((char in "%_", char))
    wild = [i for i, (is_wild, _) in enumerate(parts) if is_wild]
    plain = "".join(t for is_wild, t in parts if not is_wild)
    only_percent = all(parts[i][1] == "%" for i in wild)
    if not wild:
        return lambda x: pc.equal(x, plain)
    if only_percent and wild == [len(parts) - 1]:
        return lambda x: pc.starts_with(x, plain)
    if only_percent and wild == [0]:
        return lambda x: pc.ends_with(x, plain)
    if only_percent and wild == [0, len(parts) - 1]:
        return lambda x: pc.match_substring(x, plain)
    regex = "".join({"%": ".*", "_": "."}[t] if is_wild else re2_quote(t) for is_wild, t in parts)
    return lambda x: pc.match_substring_regex(x, f"(?s)\\A{regex}\\z")


def re2_quote(char: str) -> str:
    """One character, quoted for RE2."""
    if char == "\0":
        return "\\x00"
    return re.escape(char) if char.isascii() and not char.isalnum() else char


@function("ilike")
def ilike(args: tuple[Expr, ...]) -> Expr:
    """As in Spark: both sides in lower case, then LIKE."""
    arity("ilike", args, 2, 3)
    known_text(args[1], "the pattern of ILIKE")
    found = like((apply("lower", args[0]), apply("lower", args[1]), *args[2:]))
    if not isinstance(found, Call):
        raise Refused("ILIKE of constants is folded by Spark", BOOLEAN)
    return found
