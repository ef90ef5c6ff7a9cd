"""Functions of text.

Law: a position counts code points, as in Spark. Searching and cutting take literal arguments at the edge;
where one is a column the call is left to Spark, since Arrow's kernels take their patterns once for all rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import TypeMismatch
from rove.model.schema import BINARY, INT, STRING, VOID, type_name
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.functions.letters import lower, upper
from rove.plan.expressions.functions.masks import as_array
from rove.plan.expressions.functions.registry import arity, coerce, constant, function, simple
from rove.plan.expressions.tree import Call, Datum, Expr, literal
from rove.plan.expressions.types import Refused

PADDED_CHARS_MAX = 10_000
INT_MAX = 2**31 - 1
Kernel = Callable[..., Datum]


def text(expr: Expr, what: str) -> Expr:
    """The argument as a string, as Spark casts it implicitly."""
    if expr.dtype in (STRING, VOID):
        return coerce(expr, STRING)
    if pt.is_nested(expr.dtype):
        raise TypeMismatch(f"{what} needs a string, got {type_name(expr.dtype)}")
    if expr.dtype == BINARY:
        raise Refused(f"{what} of binary is left to Spark")
    return cast(expr, STRING)


def known_text(expr: Expr, what: str) -> str:
    """A string that must be a literal; a null literal is left to Spark, which folds it."""
    if expr.dtype != STRING:
        raise Refused(f"{what} must be a string literal at the edge")
    value = constant(expr, what)
    if not isinstance(value, str):
        raise Refused(f"{what} is null, which Spark folds")
    return value


def known_int(expr: Expr, what: str) -> int:
    """An int that must be a literal."""
    value = constant(coerce(expr, INT), what)
    if not isinstance(value, int):
        raise Refused(f"{what} is null, which Spark folds")
    return value


def _of_text(names: str, result: pa.DataType, kernel: Kernel) -> None:
    first, *_ = split = names.split()

    @function(*split)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(first, args, 1)
        return Call(result, first, (text(args[0], first),), kernel)


_of_text("upper ucase", STRING, upper)
_of_text("lower lcase", STRING, lower)


@function("reverse")
def reverse(args: tuple[Expr, ...]) -> Expr:
    arity("reverse", args, 1)
    if pt.is_nested(args[0].dtype):
        raise Refused("reverse of an array is left to Spark", args[0].dtype)
    return Call(STRING, "reverse", (text(args[0], "reverse"),), pc.utf8_reverse)


def _measure(names: str, of_text: Kernel, of_bytes: Kernel) -> None:
    first, *_ = split = names.split()

    @function(*split)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(first, args, 1)
        if args[0].dtype == BINARY:
            return Call(INT, first, args, of_bytes)
        return Call(INT, first, (text(args[0], first),), of_text)


def _bits(x: Datum) -> Datum:
    return pc.multiply(pc.binary_length(x), pa.scalar(8, INT))


_measure("length char_length character_length len", pc.utf8_length, pc.binary_length)
_measure("octet_length", pc.binary_length, pc.binary_length)
_measure("bit_length", _bits, _bits)


@function("concat")
def concat(args: tuple[Expr, ...]) -> Expr:
    if not args:
        return literal("", STRING)
    if any(pt.is_list(a.dtype) for a in args):
        raise Refused("concat of arrays is left to Spark")
    if all(a.dtype == BINARY for a in args):
        return Call(BINARY, "concat", args, lambda *xs: pc.binary_join_element_wise(*xs, pa.scalar(b"", BINARY)))
    values = tuple(text(a, "concat") for a in args)
    return Call(STRING, "concat", values, lambda *xs: pc.binary_join_element_wise(*xs, ""))


@function("concat_ws")
def concat_ws(args: tuple[Expr, ...]) -> Expr:
    """Nulls are left out."""
    if not args:
        raise TypeMismatch("concat_ws takes at least 1 argument")
    if any(pt.is_nested(a.dtype) for a in args):
        raise Refused("concat_ws of arrays is left to Spark", STRING)
    separator = known_text(args[0], "the separator of concat_ws")
    values = tuple(text(a, "concat_ws") for a in args[1:])
    if not values:
        return literal("", STRING)

    def kernel(_: Datum, *xs: Datum) -> Datum:
        # Arrow gives null for a row whose values are all null, so an empty text is put first and removed again.
        joined = pc.binary_join_element_wise("", *xs, separator, null_handling="skip")
        return pc.utf8_slice_codeunits(joined, len(separator))

    return Call(STRING, "concat_ws", (args[0], *values), kernel)


def slice_text(x: Datum, position: int, length: int) -> Datum:
    """SQL's substring: positions from 1, negative ones from the end, 0 means 1."""
    start = position - 1 if position > 0 else position
    stop: int | None = min(start + length, INT_MAX)
    if length <= 0:
        stop = start
    elif position < 0 and stop is not None and stop >= 0:
        stop = None  # runs past the end
    if stop is not None and stop == start:
        return pc.utf8_slice_codeunits(x, 0, 0)
    return pc.utf8_slice_codeunits(x, start, stop)


@function("substring", "substr")
def substring(args: tuple[Expr, ...]) -> Expr:
    arity("substring", args, 2, 3)
    if args[0].dtype == BINARY:
        raise Refused("substring of binary is left to Spark", BINARY)
    position = known_int(args[1], "the position of substring")
    length = known_int(args[2], "the length of substring") if len(args) == 3 else INT_MAX
    value = text(args[0], "substring")
    return Call(STRING, "substring", (value, *args[1:]), lambda x, *_: slice_text(x, position, length))


@function("left")
def left(args: tuple[Expr, ...]) -> Expr:
    arity("left", args, 2)
    count = max(0, known_int(args[1], "the length of left"))
    return Call(STRING, "left", (text(args[0], "left"), args[1]), lambda x, _: pc.utf8_slice_codeunits(x, 0, count))


@function("right")
def right(args: tuple[Expr, ...]) -> Expr:
    arity("right", args, 2)
    count = known_int(args[1], "the length of right")
    value = text(args[0], "right")
    if count <= 0:
        return Call(STRING, "right", (value, args[1]), lambda x, _: pc.utf8_slice_codeunits(x, 0, 0))
    return Call(STRING, "right", (value, args[1]), lambda x, _: pc.utf8_slice_codeunits(x, -count))


@function("overlay")
def overlay(args: tuple[Expr, ...]) -> Expr:
    arity("overlay", args, 3, 4)
    value, patch = text(args[0], "overlay"), known_text(args[1], "the replacement of overlay")
    position = known_int(args[2], "the position of overlay")
    length = known_int(args[3], "the length of overlay") if len(args) == 4 else -1
    if position < 1:
        raise Refused("overlay before the first character is left to Spark", STRING)
    skipped = length if length >= 0 else len(patch)

    def kernel(x: Datum, *_: Datum) -> Datum:
        head, tail = slice_text(x, 1, position - 1), slice_text(x, position + skipped, INT_MAX)
        return pc.binary_join_element_wise(head, patch, tail, "")

    return Call(STRING, "overlay", (value, *args[1:]), kernel)


def _trimming(name: str, kernel: Kernel, chars_first: bool) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        """Trim spaces, or the given characters: `btrim(s, chars)`, but `trim(chars, s)`, as in Spark."""
        arity(name, args, 1, 2)
        if len(args) == 1:
            return Call(STRING, name, (text(args[0], name),), lambda x: kernel(x, " "))
        chars, value = args if chars_first else reversed(args)
        known = known_text(chars, f"the characters of {name}")
        keyword = {"ltrim": "LEADING", "rtrim": "TRAILING"}.get(name, "BOTH")
        template = f"trim({keyword} {{1}} FROM {{0}})"
        run = (lambda x, _: kernel(x, known)) if known else (lambda x, _: x)
        return Call(STRING, f"trim {keyword.lower()}", (text(value, name), chars), run, template=template)


_trimming("trim", pc.utf8_trim, chars_first=True)
_trimming("btrim", pc.utf8_trim, chars_first=False)
_trimming("ltrim", pc.utf8_ltrim, chars_first=True)
_trimming("rtrim", pc.utf8_rtrim, chars_first=True)


def _padding(name: str, left_side: bool) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        """Pad or cut to a length. The paddings of all lengths are prepared once, and each row picks one."""
        arity(name, args, 2, 3)
        if args[0].dtype == BINARY:
            raise Refused(f"{name} of binary is left to Spark", BINARY)
        width = max(0, known_int(args[1], f"the length of {name}"))
        filler = known_text(args[2], f"the padding of {name}") if len(args) == 3 else " "
        if width > PADDED_CHARS_MAX:
            raise Refused(f"{name} goes to {PADDED_CHARS_MAX} characters at the edge", STRING)
        repeated = filler * (width // max(1, len(filler)) + 1)
        paddings = pa.array([repeated[:n] for n in range(width + 1)], STRING)

        def kernel(x: Datum, *_: Datum) -> Datum:
            cut = pc.utf8_slice_codeunits(x, 0, width)
            fill = paddings.take(pc.subtract(pa.scalar(width, INT), pc.utf8_length(cut)))
            return pc.binary_join_element_wise(*((fill, cut) if left_side else (cut, fill)), "")

        return Call(STRING, name, (text(args[0], name), *args[1:]), kernel)


_padding("lpad", True)
_padding("rpad", False)


@function("repeat")
def repeat(args: tuple[Expr, ...]) -> Expr:
    arity("repeat", args, 2)
    value, count = text(args[0], "repeat"), coerce(args[1], INT)
    return Call(STRING, "repeat", (value, count), lambda x, n: pc.binary_repeat(x, _at_least_zero(n)))


def _at_least_zero(n: Datum) -> Datum:
    return pc.max_element_wise(n, pa.scalar(0, INT), skip_nulls=False)


simple("space", (INT,), STRING, lambda n: pc.binary_repeat(as_array(pa.scalar(" "), len(n)), _at_least_zero(n)))

_CHARACTERS = pa.array([chr(n) for n in range(256)], STRING)
_LOW_BYTE = pa.scalar(255, pa.int64())


def _character(n: Datum) -> Datum:
    found = _CHARACTERS.take(pc.bit_wise_and(n, _LOW_BYTE))
    return pc.if_else(pc.less(n, 0), "", found)


simple("chr char", (pa.int64(),), STRING, _character)


@function("ascii")
def ascii_rule(args: tuple[Expr, ...]) -> Expr:
    """The code point of the first character, 0 for an empty text. Each distinct character is looked up once."""
    arity("ascii", args, 1)

    def kernel(x: Datum) -> Datum:
        first = pc.dictionary_encode(pc.utf8_slice_codeunits(x, 0, 1))
        codes = pa.array([ord(c) if c else 0 for c in first.dictionary.to_pylist()], INT)
        return codes.take(first.indices)

    return Call(INT, "ascii", (text(args[0], "ascii"),), kernel)
