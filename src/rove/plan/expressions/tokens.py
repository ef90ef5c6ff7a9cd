"""Tokens that Spark refuses: the parser silently drops an extra comma, a plus sign or a repeated word.

Law: what would be lost between the text and the tree is refused here, before the tree is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sqlglot.tokenizer_core import TokenType

from rove.model.errors import ParseError

_COMMA = "a comma with nothing on one side"
_STARTS = (TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.L_PAREN)
_JOINS = (
    TokenType.JOIN,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.NATURAL,
    TokenType.SEMI,
    TokenType.ANTI,
)
_ENDS = (
    TokenType.JOIN,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.R_PAREN,
    TokenType.COMMA,
)
_PAIRS: dict[tuple[TokenType, TokenType], str] = {
    **{(before, TokenType.COMMA): _COMMA for before in _STARTS},
    **{(TokenType.COMMA, after): _COMMA for after in _ENDS},
    **{(before, TokenType.ALIAS): "AS with nothing before it" for before in _STARTS[:3]},
    **{(twice, twice): "a word said twice" for twice in (TokenType.FROM, TokenType.ALL, TokenType.ALIAS)},
    **{(TokenType.ALIAS, after): "AS with no name after it" for after in (*_ENDS, TokenType.NUMBER)},
    **{(TokenType.STAR, after): "a star after a name" for after in (*_JOINS, *_ENDS[2:5])},
    (TokenType.NUMBER, TokenType.NUMBER): "two numbers side by side",
    (TokenType.ALIAS, TokenType.STRING): "an alias is a name, not a string; use backticks",
    (TokenType.NOT, TokenType.IS): "NOT before IS; write IS NOT",
}
_NAMES_WINDOW = [TokenType.ALIAS, TokenType.L_PAREN]  # what comes after the name in `WINDOW w AS (…)`
NO_OVER = "streaming Spark has no OVER; group by a window of event time, or use scan(…)"
_ENDS_VALUE = (TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN, TokenType.R_BRACKET)
# Words after which a value begins. Any other word can be a column: `date`, `timestamp` and `left` are words of SQL too.
_BEGINS_VALUE = frozenset(
    """
    all and any as between by case cross cube distinct div else escape except exists filter from having if ilike in
    is join lateral like not on or pivot regexp rlike rollup select set some then union unpivot using values when where
    with
    """.split()
)


def refuse_loose(tokens: Sequence[Any], text: str, offset: int, signs: bool) -> None:
    """Refuse words that the parser would drop. `offset` is how many characters are before `text` in what was parsed.
    With `signs` a plus sign before a value is refused too, because it changes the name of a column."""
    for n, token in enumerate(tokens):
        before = tokens[n - 1].token_type if n else None
        after = tokens[n + 1].token_type if n + 1 < len(tokens) else None
        why = _PAIRS.get((before, token.token_type)) if before is not None else None
        match token.token_type:
            case TokenType.COMMA if after is None:
                why = _COMMA
            case TokenType.EXCEPT if before == TokenType.STAR and after == TokenType.FROM:
                why = "EXCEPT needs names in parentheses"
            case TokenType.DISTINCT if after == TokenType.R_PAREN:
                why = "DISTINCT needs a value"
            case TokenType.PIPE_GT:
                raise _at(token, "`|>` is not read here; write the steps as subqueries", text, offset)
            case TokenType.COLON if _ends_value(tokens, n - 1) and not _in_fields(tokens[:n]):
                raise _at(token, "`:` is not read here; for a field of a variant write variant_get(…)", text, offset)
            case TokenType.WINDOW if [t.token_type for t in tokens[n + 2 : n + 4]] == _NAMES_WINDOW:
                raise _at(token, f"WINDOW cannot be used on a stream: {NO_OVER}", text, offset)
            case TokenType.USING if after != TokenType.L_PAREN:
                why = "USING needs names in parentheses"
            case TokenType.PLUS if signs and not _ends_value(tokens, n - 1):
                raise _at(token, "a plus sign before a value changes nothing; leave it out", text, offset)
            case TokenType.NULL if before == TokenType.NOT and _ends_value(tokens, n - 2):
                why = "NOT NULL after a value; write IS NOT NULL"
            case kind if kind in _JOINS[1:] and before == TokenType.STAR and after not in (*_JOINS, TokenType.OUTER):
                why = None  # it is a multiplication by a column or function of that name
        if why is not None:
            raise _at(tokens[n - 1] if before == TokenType.COMMA else token, f"not Spark SQL: {why}", text, offset)


def _in_fields(before: Sequence[Any]) -> bool:
    """Whether a colon after these tokens stands in a type: `struct<a: int>`."""
    pairs = pairwise(before)
    return any(a.token_type == TokenType.STRUCT and b.token_type == TokenType.LT for a, b in pairs)


def _ends_value(tokens: Sequence[Any], n: int) -> bool:
    """Whether a value can end with a token, so that a sign after it stands between two values."""
    if n < 0:
        return False
    kind, word = tokens[n].token_type, str(tokens[n].text).lower()
    if kind in _ENDS_VALUE:
        return True
    named = n > 0 and tokens[n - 1].token_type == TokenType.DOT and kind != TokenType.STAR
    return named or (word.replace("_", "a").isalnum() and word not in _BEGINS_VALUE)


def _at(token: Any, why: str, text: str, offset: int) -> ParseError:
    start = max(0, token.start - offset)
    return ParseError(why, text, (start, max(start, token.end + 1 - offset)))
