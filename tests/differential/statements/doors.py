"""The entries of the corpus's select lists, through every verb that takes text or a column.

Law: a verb reads an entry as PySpark's verb of that name does, or refuses it. No part of an entry is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from tests.differential.statements.lists import LISTS

Verb = Callable[[Any, Any, Any, Any], Any]  # of two frames, the functions, and the text or texts
_BY_LIST: dict[str, Verb] = {
    "selectExpr": lambda t, u, F, texts: t.selectExpr(*texts),
    "select": lambda t, u, F, texts: t.select(*(F.expr(each) for each in texts)),
}
_BY_ENTRY: dict[str, Verb] = {
    "withColumn": lambda t, u, F, text: t.withColumn("z", F.expr(text)),
    "withColumns": lambda t, u, F, text: t.withColumns({"z": F.expr(text), "b": F.lit(1)}),
    "alias": lambda t, u, F, text: t.select(F.expr(text).alias("z")),
    "filter": lambda t, u, F, text: t.filter(F.expr(text)),
    "where": lambda t, u, F, text: t.where(text),
    "groupBy": lambda t, u, F, text: t.groupBy(F.expr(text)).count(),
    "agg": lambda t, u, F, text: t.groupBy("a").agg(F.expr(text)),
    "join": lambda t, u, F, text: t.join(u.toDF("p", "q", "r", "v"), F.expr(text)),
    "inside": lambda t, u, F, text: t.select(F.coalesce(F.expr(text), F.lit(None)).alias("z")),
}
# What only verbs meet: names for several columns, stars with words after them, at places where one value belongs.
_MORE = """
    a AS (x, y)
    st AS (x, y)
    sum(b) AS (x, y)
    explode(arr) AS (x)
    explode(arr) AS (x, y)
    posexplode(arr) AS p
    st.* EXCEPT (x)
    st.* EXCEPT (x, y)
    st.* EXCEPT (nope)
    * EXCEPT (st.x)
    * EXCEPT (a, a)
    struct(* EXCEPT (a)) AS q
    struct(st.* EXCEPT (x)) AS q
    array(* EXCEPT (s, d, ts, st, arr)) AS q
    count(* EXCEPT (a)) AS n
    count(* EXCEPT (arr, st))
    upper(s AS x) AS q
    coalesce(*) AS q
    a + * AS q
    (*) AS q
    * AS q
    st.* AS q
    a > 1 AS q
    DISTINCT a
    ALL a
    a, b
    a ORDER BY a
    a FROM t
    x -> x + 1
    (a, b) AS q
    a => 1
""".strip().splitlines()


@dataclass(frozen=True, slots=True)
class Door:
    """One verb with the text it is given."""

    name: str
    given: str | tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.name}({self.given!r})"

    def of(self, frame: Callable[[str], Any], functions: Any) -> Any:
        verb = _BY_LIST.get(self.name) or _BY_ENTRY[self.name]
        return verb(frame("t"), frame("u"), functions, self.given)


def doors() -> list[Door]:
    """Every list through the verbs that take lists, every entry of them through the others."""
    lists = [tuple(_entries(c.text)) for c in LISTS if c.slot == "list" and "from" not in c.wants]
    lists += [(text.strip(),) for text in _MORE]
    lists = list(dict.fromkeys(lists))
    single = dict.fromkeys(entry for each in lists for entry in each)
    return [
        *(Door(name, each) for name in _BY_LIST for each in lists),
        *(Door(name, entry) for name in _BY_ENTRY for entry in single),
    ]


def _entries(text: str) -> list[str]:
    """The entries of a select list: what stands between the commas outside of parentheses."""
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:
        return [text]
    depth, cuts = 0, [-1]
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type == TokenType.COMMA and depth == 0:
            cuts.append(token.start)
    return [text[a + 1 : b].strip() for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]
