"""Casts of numbers and booleans from text, and back.

Law: the grammar is Spark's, written as a regular expression. Arrow parses the texts that match, exactly. Forms that
only Java knows (`1.5d`, `0x1p3`, `Infinity`) are rewritten first, each distinct text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import BIGINT, BINARY, BOOLEAN, STRING
from rove.plan.expressions.functions.conversion import Conversion, between, only, plain, rewrite
from rove.plan.expressions.types import is_decimal, is_fractional, is_integral

BLANKS = "".join(map(chr, range(0x21)))  # the characters that Java's String.trim removes
WHITE = BLANKS + "\x7f"  # the characters that Spark's trimAll removes
DECIMAL_TEXT_DIGITS_MAX = 38
_EXACT = Context(prec=400)


_EDGES = {BLANKS: r"^[\x00-\x20]|[\x00-\x20]$", WHITE: r"^[\x00-\x20\x7f]|[\x00-\x20\x7f]$"}


def trim_all(x: pa.Array, characters: str = WHITE) -> pa.Array:
    """Text without surrounding blanks. A column without blanks, the common case, is not copied."""
    if not pc.match_substring_regex(x, _EDGES[characters]).true_count:
        return x
    return pc.utf8_trim(x, characters=characters)


def _to_integer(have: pa.DataType, want: pa.DataType) -> Conversion:
    low, high = (pa.scalar(b, BIGINT) for b in (-(2 ** (want.bit_width - 1)), 2 ** (want.bit_width - 1) - 1))

    def convert(x: pa.Array) -> pa.Array:
        if not pc.match_substring(x, "x", ignore_case=True).true_count:
            try:
                return pc.cast(x, want)  # Arrow reads the same texts as Spark, except that it also reads hexadecimal
            except pa.ArrowInvalid:
                pass
        text = trim_all(x)
        text = only(pc.match_substring_regex(text, r"^[+-]?[0-9]+$"), text)
        text = pc.replace_substring_regex(text, r"^(?:\+|(-))?0*([0-9])", r"\1\2")
        wide = pc.cast(_up_to_nineteen_digits(text), BIGINT)
        return pc.cast(wide if want == BIGINT else between(wide, low, high), want, safe=False)

    return Conversion(convert, True)


def _up_to_nineteen_digits(text: pa.Array) -> pa.Array:
    """Integers as text, null where they do not fit a bigint."""
    length = pc.binary_length(text)
    if (pc.max(length).as_py() or 0) <= 18:
        return text
    text = only(pc.less_equal(length, 20), text)
    value = pc.cast(text, pa.decimal128(20, 0))
    low, high = (pc.cast(pa.scalar(str(b)), pa.decimal128(20, 0)) for b in (-(2**63), 2**63 - 1))
    return only(pc.is_valid(between(value, low, high)), text)


def _to_fraction(have: pa.DataType, want: pa.DataType) -> Conversion:
    def convert(x: pa.Array) -> pa.Array:
        text = trim_all(x, BLANKS)
        ordinary = pc.match_substring_regex(text, r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$")
        odd = pc.fill_null(pc.invert(ordinary), False)
        return pc.cast(rewrite(text, odd, _java_number), want)

    return Conversion(convert, True)


_JAVA_SUFFIXED = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]", re.ASCII)
_JAVA_HEX = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+(?=[fFdD]?\Z)", re.ASCII
)
_WORDS = {
    "inf": "inf",
    "+inf": "inf",
    "infinity": "inf",
    "+infinity": "inf",
    "-inf": "-inf",
    "-infinity": "-inf",
}


def _java_number(text: str) -> str | None:
    """A spelling of a floating-point number that Java reads and Arrow does not, as one that Arrow reads."""
    if found := _JAVA_SUFFIXED.fullmatch(text):
        return found[1]
    if text.lower() == "nan" or text in ("+NaN", "-NaN"):
        return "nan"
    if word := _WORDS.get(text.lower()):
        return word
    if found := _JAVA_HEX.match(text):
        try:
            return repr(float.fromhex(found[0]))
        except OverflowError:
            return "-inf" if text.startswith("-") else "inf"
    return None


def _to_decimal(have: pa.DataType, want: pa.DataType) -> Conversion:
    wide = pa.decimal256(76, DECIMAL_TEXT_DIGITS_MAX)
    whole = want.precision - want.scale
    top = pc.cast(pa.scalar("1" + "0" * whole), wide) if whole < DECIMAL_TEXT_DIGITS_MAX else None
    rounded_type = pa.decimal256(39 + want.scale if want.scale < 37 else 76, want.scale)

    def convert(x: pa.Array) -> pa.Array:
        text = trim_all(x, BLANKS)
        plainly = pc.match_substring_regex(text, r"^[+-]?(?:[0-9]{1,38}\.?[0-9]{0,38}|\.[0-9]{1,38})$")
        odd = pc.fill_null(pc.invert(plainly), False)
        value = pc.cast(rewrite(text, odd, lambda t: _long_number(t, want)), wide)
        if want.scale < DECIMAL_TEXT_DIGITS_MAX:
            value = pc.round(value, want.scale, round_mode="half_towards_infinity")
        if top is not None:
            value = only(pc.less(pc.abs(value), top), value)
        return pc.cast(pc.cast(value, rounded_type), want)

    return Conversion(convert, True)


def _long_number(text: str, want: pa.DataType) -> str | None:
    """A number with an exponent, very many digits, or digits of another script, rounded and written in full. None if it
    is not a number or does not fit."""
    if not re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", text) or max(text) > "\uffff":
        return None
    value = Decimal(text)
    if (value and value.adjusted() > DECIMAL_TEXT_DIGITS_MAX) or len(text) > 300:
        return None
    if value.adjusted() < -want.scale - 2:
        return "0"
    rounded = value.quantize(Decimal(1).scaleb(-want.scale), ROUND_HALF_UP, context=_EXACT)
    return f"{rounded:f}" if abs(rounded) < Decimal(10) ** (want.precision - want.scale) else None


_TRUE, _FALSE = pa.array(["t", "true", "y", "yes", "1"]), pa.array(["f", "false", "n", "no", "0"])


def _to_boolean(have: pa.DataType, want: pa.DataType) -> Conversion:
    def convert(x: pa.Array) -> pa.Array:
        text = pc.ascii_lower(trim_all(x))
        yes, no = (pc.is_in(text, value_set=words) for words in (_TRUE, _FALSE))
        return only(pc.or_(yes, no), yes)

    return Conversion(convert, True)


def _decimal_to_text(have: pa.DataType, want: pa.DataType) -> Conversion:
    """All digits, as Java's toPlainString prints them. Arrow prints small values with exponents, so the digits are
    written here."""
    if not have.scale:
        return Conversion(plain(STRING))
    digits = pa.decimal128(have.precision, 0)

    def convert(x: pa.Array) -> pa.Array:
        unscaled = pc.cast(pa.Array.from_buffers(digits, len(x), x.buffers(), offset=x.offset), STRING)
        sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
        padded = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), have.scale + 1, "0")
        whole = pc.utf8_slice_codeunits(padded, 0, -have.scale)
        return pc.binary_join_element_wise(
            pc.binary_join_element_wise(sign, whole, ""), pc.utf8_slice_codeunits(padded, -have.scale), "."
        )

    return Conversion(convert)


def _plainly(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(plain(want))


Applies = Callable[[pa.DataType, pa.DataType], bool]
FAMILIES: tuple[tuple[Applies, Callable[[pa.DataType, pa.DataType], Conversion]], ...] = (
    (lambda a, b: a == STRING and is_integral(b), _to_integer),
    (lambda a, b: a == STRING and is_fractional(b), _to_fraction),
    (lambda a, b: a == STRING and is_decimal(b), _to_decimal),
    (lambda a, b: a == STRING and b == BOOLEAN, _to_boolean),
    (lambda a, b: is_decimal(a) and b == STRING, _decimal_to_text),
    (lambda a, b: a == STRING and b == BINARY, _plainly),
)
