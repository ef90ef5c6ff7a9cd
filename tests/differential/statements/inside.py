"""Finds names in messages that no user has written: of columns that Rove made, of classes, of packages of Java."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

INSIDE = re.compile(
    r"__\w|\b\w*(sqlglot|py4j|Exception)\w*\b|<\w+ |\b(org|java|scala)\.\w|Traceback|\b([A-Z][a-z]+){2,}\b"
)
# What the parser calls its nodes, as far as it is no word of SQL: `JSONEXTRACT`.
PARSERS = {name.upper() for name in vars(exp) if re.fullmatch(r"\w*[a-z]\w*[A-Z]\w*|[A-Z]{2,}[a-z]\w*", name)}
PARSERS -= {"ILIKE", "TABLESAMPLE"}


def made_inside(said: Mapping[str, str]) -> list[str]:
    """The messages with such names, by the statement they are about."""
    words = {statement: message.replace(statement, "") for statement, message in said.items()}
    return [
        f"{statement}\n    {said[statement]}"
        for statement, text in words.items()
        if INSIDE.search(text) or PARSERS & set(re.findall(r"[A-Z]+", text))
    ]
