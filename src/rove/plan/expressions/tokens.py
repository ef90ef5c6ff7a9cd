"""Words that the parser lets pass and Spark does not: it drops a comma too many, a plus sign, a word said twice.

Law: what would be lost between the text and the tree is refused here, before the tree is made.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_VALUES = (
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.END,
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
            case TokenType.PIPE_GT:
                raise _at(token, "`|>` is not read here; write the steps as subqueries", text, offset)
            case TokenType.USING if after != TokenType.L_PAREN:
                why = "USING needs names in parentheses"
            case TokenType.PLUS if signs and before not in _VALUES:
                raise _at(token, "a plus sign before a value changes nothing; leave it out", text, offset)
            case TokenType.NULL if before == TokenType.NOT and n > 1 and tokens[n - 2].token_type in _VALUES:
                why = "NOT NULL after a value; write IS NOT NULL"
        if why is not None:
            raise _at(tokens[n - 1] if before == TokenType.COMMA else token, f"not Spark SQL: {why}", text, offset)


def _at(token: Any, why: str, text: str, offset: int) -> ParseError:
    start = max(0, token.start - offset)
    return ParseError(why, text, (start, max(start, token.end + 1 - offset)))
