"""Translates Java's regular expressions to RE2.

Law: an allow-list. A construct is translated only if both engines then match the same texts at the same places.
Anything else (lookaround, back-references, possessive quantifiers, flags, word boundaries, Unicode classes) is left to
Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.plan.expressions.types import Refused

REPEATS_MAX = 1000
_NOT_DOT = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
_SPACE = " \\t\\n\\x0b\\f\\r"
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[A-Za-z0-9_]",
    "W": "[^A-Za-z0-9_]",
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
}
_IN_CLASS = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f", "a": "\\x07", "e": "\\x1b"}
_META = "\\^$.|?*+()[]{}"


@dataclass(frozen=True, slots=True)
class Regex:
    """A translated pattern: `body` without a trailing `$`, `at_end` if there was one, and whether it can match the
    empty text."""

    body: str
    at_end: bool
    groups: int
    can_be_empty: bool


def translate(pattern: str) -> Regex:
    """The pattern for RE2. Raises `Refused` with the reason if it cannot be translated."""
    reader = _Reader(pattern)
    body, empty = reader.alternatives(top=True)
    if reader.place < len(pattern):
        raise Refused(f"the regular expression has `{pattern[reader.place]}` out of place")
    if reader.at_end and reader.had_alternatives:
        raise Refused("a regular expression with `$` in an alternative is left to Spark")
    found = Regex(body, reader.at_end, reader.groups, empty)
    try:
        pc.match_substring_regex(pa.array([""]), body)
    except pa.ArrowInvalid as error:
        raise Refused(f"the regular expression is not one that the edge runs: {error}") from None
    return found


class _Reader:
    """A recursive-descent parser. Every method returns RE2 text and whether it can match the empty text."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.place, self.groups = pattern, 0, 0
        self.at_end = self.had_alternatives = False

    def peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def next(self) -> str:
        char = self.peek()
        if not char:
            raise Refused("the regular expression ends too early")
        self.place += 1
        return char

    def alternatives(self, top: bool = False) -> tuple[str, bool]:
        found, empty = self.sequence(top)
        while self.peek() == "|":
            self.next()
            self.had_alternatives = self.had_alternatives or top
            other, other_empty = self.sequence(top)
            found, empty = f"{found}|{other}", empty or other_empty
        return found, empty

    def sequence(self, top: bool) -> tuple[str, bool]:
        parts: list[str] = []
        empty = True
        while (char := self.peek()) and char not in "|)":
            if char == "$":
                self.next()
                if not top or self.peek():
                    raise Refused("a regular expression with `$` before its end is left to Spark")
                self.at_end = True
                break
            if char == "^":
                self.next()
                if not top or parts:
                    raise Refused("a regular expression with `^` past its start is left to Spark")
                parts.append("\\A")
                if self.peek() in "*+?{" and self.peek():
                    raise Refused("a quantifier after `^` is left to Spark")
                continue
            atom, can_be_empty = self.atom()
            repeated, can_be_empty = self.quantified(atom, can_be_empty)
            parts.append(repeated)
            empty = empty and can_be_empty
        return "".join(parts), empty

    def quantified(self, atom: str, empty: bool) -> tuple[str, bool]:
        char = self.peek()
        if char not in ("*", "+", "?", "{"):
            return atom, empty
        if empty:
            raise Refused("a repeated group that can match nothing is left to Spark")
        quantifier = self.next()
        least = 0 if quantifier in "*?" else 1
        if quantifier == "{":
            closing = self.pattern.find("}", self.place)
            body = self.pattern[self.place : closing] if closing > 0 else ""
            low, comma, high = body.partition(",")
            bounded = low.isdigit() and (not comma or not high or high.isdigit())
            if not bounded or not low.isascii() or int(high or low) > REPEATS_MAX or int(low) > REPEATS_MAX:
                raise Refused(f"the repetition {{{body}}} is left to Spark")
            self.place, quantifier, least = closing + 1, f"{{{body}}}", int(low)
        if self.peek() == "+":
            raise Refused("possessive quantifiers are left to Spark")
        if self.peek() == "?":
            quantifier += self.next()
        if self.peek() in ("*", "+", "{"):
            raise Refused("a quantifier after a quantifier is left to Spark")
        return atom + quantifier, least == 0

    def atom(self) -> tuple[str, bool]:
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return self.char_class(), False
        if char == "\\":
            return self.escape(), False
        if char == ".":
            return f"[^{_NOT_DOT}]", False
        if char in "*+?{":
            raise Refused(f"`{char}` has nothing to repeat")
        if char in "]}":
            return "\\" + char, False
        return ("\\x00" if char == "\0" else char), False

    def group(self) -> tuple[str, bool]:
        opening = "("
        if self.peek() == "?":
            if not self.pattern.startswith("?:", self.place):
                raise Refused("lookaround, flags and named groups are left to Spark")
            self.place += 2
            opening = "(?:"
        else:
            self.groups += 1
            opening = f"(?P<g{self.groups}>"
        found, empty = self.alternatives()
        if self.next() != ")":
            raise Refused("a group of the regular expression is not closed")
        return f"{opening}{found})", empty

    def escape(self) -> str:
        char = self.next()
        if char in _CLASSES:
            return _CLASSES[char]
        return self.escaped_character(char)

    def escaped_character(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x" or char == "u":
            digits = self.pattern[self.place : self.place + (2 if char == "x" else 4)]
            try:
                code = int(digits, 16) if digits.isalnum() else -1
            except ValueError:
                code = -1
            if code < 0 or len(digits) < (2 if char == "x" else 4) or 0xD800 <= code < 0xE000:
                raise Refused(f"the escape `\\{char}` is left to Spark")
            self.place += len(digits)
            return f"\\x{{{code:x}}}"
        if char.isascii() and not char.isalnum():
            return "\\" + char if char in _META or not char.isspace() else char
        raise Refused(f"the escape `\\{char}` is left to Spark")

    def char_class(self) -> str:
        negated = self.peek() == "^"
        if negated:
            self.next()
        items: list[str] = []
        while True:
            char = self.next()
            if char == "]" and items:
                break
            if char == "[" or char == "]" or (char == "&" and self.peek() == "&"):
                raise Refused("nested and intersected character classes are left to Spark")
            if char == "\\":
                escaped = self.next()
                items.append(_IN_CLASS[escaped] if escaped in _IN_CLASS else self.escaped_character(escaped))
            elif char == "-" and (not items or self.peek() == "]"):
                items.append("\\-")
            elif char == "-":
                items.append("-")
            else:
                items.append("\\x00" if char == "\0" else "\\" + char if char in "^&" else char)
        return f"[{'^' if negated else ''}{''.join(items)}]"
