"""`IDENTIFIER('t.a')`: a name that is given as a text.

Law: the text is a constant, so the name is known when the statement is read.
"""

from __future__ import annotations

import re

from sqlglot import exp

from rove.model.errors import ParseError

BY_TEXT = "by text"  # the mark on a column; true if it has several parts, which Spark then shows in its name
_PART = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


def named_by_text(call: exp.Anonymous, text: str) -> exp.Expr:
    """The name that IDENTIFIER stands for: a column, or after FROM a stream or table."""
    if isinstance(call.parent, exp.Aliases):
        raise ParseError("IDENTIFIER cannot name a function here; write the name", text, _place(call))
    if isinstance(call.parent, exp.Dot):
        raise ParseError("put the field into the text: IDENTIFIER('struct.field')", text, _place(call))
    written = _constant(call.expressions[0]) if len(call.expressions) == 1 else None
    if written is None:
        raise ParseError("IDENTIFIER needs one constant text, such as IDENTIFIER('a')", text, _place(call))
    parts = _parts(written)
    if parts is None:
        raise ParseError(f"'{written}' is no name", text, _place(call))
    names = [exp.to_identifier(part, quoted=True) for part in parts]
    if place := _place(call):
        for name in names:
            name.meta.update(start=place[0], end=place[1] - 1)
    if isinstance(call.parent, exp.Table):
        if len(names) > 1:
            raise ParseError("streams have one name without dots", text, _place(call))
        return names[0]
    if len(names) > 4:
        raise ParseError(f"'{written}' has too many parts", text, _place(call))
    above = dict(zip(("this", "table", "db", "catalog"), reversed(names), strict=False))
    column = exp.Column(**above)
    column.meta[BY_TEXT] = len(names) > 1
    return column


def _place(call: exp.Expr) -> tuple[int, int] | None:
    places = [n.meta for n in call.walk() if "start" in n.meta]
    return (min(p["start"] for p in places), max(p["end"] for p in places) + 1) if places else None


def _constant(node: exp.Expr) -> str | None:
    """A text, or texts put together; None if it is no constant."""
    match node:
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.RawString():
            return str(node.this)
        case exp.Paren():
            return _constant(node.this)
        case exp.DPipe():
            both = [_constant(node.this), _constant(node.expression)]
        case exp.Concat() | exp.Anonymous() if isinstance(node, exp.Concat) or node.name.lower() == "concat":
            both = [_constant(each) for each in node.expressions]
        case _:
            return None
    return None if None in both else "".join(each for each in both if each is not None)


def _parts(written: str) -> list[str] | None:
    """The parts of a dotted name, without backticks; None if it is no name."""
    found: list[str] = []
    place = 0
    while part := _PART.match(written, place):
        found.append(part[1].replace("``", "`") if part[1] else part[2])
        if part.end() == len(written):
            return found
        if written[part.end()] != ".":
            return None
        place = part.end() + 1
    return None
