"""Parses Spark SQL text to sqlglot's syntax tree.

Law: a function keeps the name the user wrote. sqlglot's renaming of functions between dialects is switched off, because
the binder's table uses Spark's names only.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from rove.model.errors import ParseError
from rove.plan.expressions.tokens import refuse_loose

TEXT_CHARS_MAX = 100_000


SHOWN = "shown"  # the mark on a node that stands for another: how the name or call was written
SPELLED = "spelled"  # the mark on a call with the name under which it was written
TYPED = "typed"  # the mark on a constant such as `DATE '2020-01-01'`, which must be a value; a cast need not


def _spelled(call: exp.Expression, name: str) -> exp.Expression:
    """A call that remembers under which of two names it was written."""
    call.meta[SPELLED] = name
    return call


def _word_kept(parser: Any) -> exp.Expression:
    """EXTRACT, which remembers how its field was written."""
    word = parser._curr.text if parser._curr else ""
    return _spelled(parser._parse_extract(), word)


def _typed(value: exp.Expression, dtype: exp.DataType) -> exp.Cast:
    """A constant with its type before it."""
    found = exp.Cast(this=value, to=dtype)
    found.meta[TYPED] = True
    return found


class RoveSpark(Spark):
    """Spark's dialect, with function names left as they are written."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        STRICT_CAST = True
        # `window(…)` is a function here. The WINDOW clause is switched off: streams cannot have it, and it would hide
        # the function.
        QUERY_MODIFIER_PARSERS: ClassVar = {
            k: v for k, v in Spark.Parser.QUERY_MODIFIER_PARSERS.items() if k != TokenType.WINDOW
        }
        QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # `array(a, b)[0]` is an element of a call's result
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            k: v for k, v in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if k in ("CASE", "IF")
        }
        TYPE_LITERAL_PARSERS: ClassVar = dict.fromkeys(
            (
                exp.DType.DATE,
                exp.DType.TIME,
                exp.DType.TIMESTAMP,
                exp.DType.TIMESTAMPTZ,
                exp.DType.TIMESTAMPLTZ,
                exp.DType.TIMESTAMPNTZ,
            ),
            lambda _, value, dtype: _typed(value, dtype),
        )
        FUNCTION_PARSERS: ClassVar = {
            k: v
            for k, v in Spark.Parser.FUNCTION_PARSERS.items()
            if k in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "OVERLAY")
        } | {
            "SUBSTR": lambda self: _spelled(self._parse_substring(), "substr"),
            "EXTRACT": lambda self: _word_kept(self),
        }


_DIALECT = RoveSpark()
_BEFORE = "SELECT "  # makes a statement of an expression
_BEGINS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)  # how a query begins
_AS = re.compile(r"\bas$", re.IGNORECASE)
_TOKEN = re.compile(r"<Token .*?text: (.*?), line: .*?>(?!\w)", re.DOTALL)  # how the parser shows a word
_QUANTIFIERS = (TokenType.ALL, TokenType.DISTINCT)  # after SELECT the parser takes these for its own

# Functions that may stand without parentheses, as the standard of SQL writes them.
_WITHOUT_PARENTHESES: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentUser: "current_user",
}


def parse_expression(text: str) -> exp.Expression:
    """The syntax tree of one scalar expression, with an optional alias."""
    node = _parse(f"{_BEFORE}{text}", text)
    if not isinstance(node, exp.Select) or len(node.expressions) != 1 or set(given(node)) - {"expressions"}:
        raise ParseError("this is not one expression", text)
    found: exp.Expression = node.expressions[0]
    found.pop()
    for part in found.walk():
        if "start" in part.meta:
            part.meta["start"] -= len(_BEFORE)
            part.meta["end"] -= len(_BEFORE)
    return found


def without_alias(text: str) -> str:
    """An expression for use inside a larger one, where a name means nothing. What is no expression stays as it is, and
    is refused when the larger one is read."""
    try:
        node = parse_expression(text)
    except ParseError:
        return text
    if not isinstance(node, exp.Alias) or "start" not in (name := node.args["alias"]).meta:
        return text
    return _AS.sub("", text[: name.meta["start"]].rstrip()).rstrip()


def parse_query(text: str) -> exp.Expression:
    """The syntax tree of a SELECT statement."""
    return _parse(text, text)


def span(node: exp.Expr) -> tuple[int, int] | None:
    """Where a node is in its text, from the positions of the names and constants in it."""
    places = [n.meta for n in node.walk() if "start" in n.meta]
    if not places:
        return None
    return min(p["start"] for p in places), max(p["end"] for p in places) + 1


_QUOTED = re.compile(
    r"""[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
_DOUBLED = {"'": re.compile(r"(\\.)|''", re.DOTALL), '"': re.compile(r'(\\.)|""', re.DOTALL)}


def doubled_quotes_escaped(text: str) -> str:
    """`'it''s'` as `'it\\'s'`, which has the same length. The parser would read two neighbouring strings."""

    def mend(found: re.Match[str]) -> str:
        token = found[0]
        quote = token[0]
        if quote not in _DOUBLED:
            return token
        inner = _DOUBLED[quote].sub(lambda m: m[1] or "\\" + quote, token[1:-1])
        return quote + inner + quote

    return _QUOTED.sub(mend, text)


def given(node: exp.Expr) -> list[str]:
    """The names of the arguments that a node has."""
    return [k for k, v in node.args.items() if v]


def _parse(statement: str, text: str) -> exp.Expression:
    if len(text) > TEXT_CHARS_MAX:
        raise ParseError(f"the text has {len(text)} characters; the most is {TEXT_CHARS_MAX}")
    try:
        tokens = _DIALECT.tokenize(doubled_quotes_escaped(statement))
        if statement == text and tokens and (first := tokens[0]).token_type not in _BEGINS:
            raise ParseError(f"expected a SELECT, got {first.text}", text, (first.start, first.end + 1))
        if statement != text and len(tokens) > 1 and (word := tokens[1]).token_type in _QUANTIFIERS:
            raise ParseError(f"`{word.text}` is no part of one expression", text, (0, len(word.text)))
        refuse_loose(tokens, text, len(statement) - len(text), signs=statement == text)
        nodes = _DIALECT.parser().parse(tokens, statement)
    except SqlglotError as error:
        raise _not_sql(error, statement, text) from error
    except RecursionError as error:
        raise ParseError("the expression is nested too deeply", text[:200]) from error
    if len(nodes) != 1 or nodes[0] is None:
        raise ParseError("expected one expression or statement", text)
    for each in list(nodes[0].find_all(*_WITHOUT_PARENTHESES)):
        each.replace(exp.Anonymous(this=_WITHOUT_PARENTHESES[type(each)]))
    for each in nodes[0].find_all(exp.Interval):
        _move_sign(each, text)
    return cast(exp.Expression, nodes[0])


def _move_sign(interval: exp.Interval, text: str) -> None:
    """`INTERVAL -'90' SECOND` as `INTERVAL '-90' SECOND`, which means the same."""
    value = interval.this
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and interval.args.get("unit"):
        written = value.this.name.strip()
        turned = written[1:] if written.startswith("-") else f"-{written.removeprefix('+')}"
        interval.set("this", exp.Literal.string(turned))
    elif not isinstance(value, exp.Literal):
        raise ParseError("the length of an interval is a constant, as in INTERVAL '5' MINUTES", text, span(interval))


def _not_sql(error: SqlglotError, statement: str, text: str) -> ParseError:
    """The parser's complaint, with the place in the user's text."""
    said = (getattr(error, "errors", None) or [{}])[0]
    what, word = said.get("description") or str(error).splitlines()[0], said.get("highlight") or ""
    if what.startswith("Required keyword"):
        what = "an expression is missing here"
    what = _TOKEN.sub(lambda found: "nothing" if found[1] == "SENTINEL" else f"`{found[1]}`", what)
    if not word or not said.get("line"):
        return ParseError(f"not Spark SQL: {what}", text)
    lines = statement.splitlines(keepends=True)
    start = sum(map(len, lines[: said["line"] - 1])) + said["col"] - len(word) - (len(statement) - len(text))
    return ParseError(f"not Spark SQL: {what}", text, (max(0, start), max(0, start) + len(word)))
