"""Quotes names and texts for SQL: backticks around names that need them, escapes inside texts."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})
_RESERVED = frozenset(
    """
    all alter and anti any array as asc at between both by case cast check collate column constraint create cross
    cube current current_date current_time current_timestamp current_user delete desc distinct div drop else end
    escape except exists extract false fetch filter for foreign from full function global grant group grouping
    having if ilike in inner insert intersect interval into is join lateral leading left like limit map minus
    natural not null of offset on only or order outer overlaps partition pivot position primary qualify range
    references regexp rename right rlike row rows select semi session_user set some start struct substring table
    tablesample then time to trailing true try_cast union unique unpivot update user using values when where
    window with within
    """.split()
)


def quoted(name: str) -> str:
    """One name as SQL."""
    if _PLAIN.match(name) and name.lower() not in _RESERVED:
        return name
    return f"`{name.replace('`', '``')}`"


def quoted_text(value: str) -> str:
    """A text as a SQL literal."""
    return f"'{value.translate(_ESCAPES)}'"


_MARK = "\u2060"  # a letter without width, which nobody types
_MARKED = re.compile(f"`((?:[^`]|``)+?){_MARK}(\\d+){_MARK}`")


def marked(name: str, owner: int) -> str:
    """A name as SQL that remembers whose it is: `trains.id` is the column of `trains`."""
    return f"`{name.replace('`', '``')}{_MARK}{owner}{_MARK}`"


def unmarked(text: str) -> str:
    """SQL with the internal owner marks removed from names."""
    return _MARKED.sub(lambda found: quoted(found[1].replace("``", "`")), text)


def by_owner(text: str) -> str:
    """SQL in which the mark of a name stands before it, as the name of a relation."""
    return _MARKED.sub(lambda found: f"`{relation_of(int(found[2]))}`.`{found[1]}`", text)


def unowned(text: str) -> str:
    """SQL without the relations that marks stand for."""
    return re.sub(f"`?{_MARK}\\d+`?\\.", "", text)


def relation_of(owner: int) -> str:
    """The name of the relation that a mark stands for."""
    return f"{_MARK}{owner}"


def owner_of(relation: str) -> int:
    """The mark that the name of such a relation stands for."""
    return int(relation.removeprefix(_MARK))


def is_owner(relation: str) -> bool:
    """Whether the name of a relation is one that a mark stands for."""
    return relation.startswith(_MARK)
