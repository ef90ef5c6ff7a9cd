"""A journal of changes to tables, so that they can be undone.

Law: a deployment is changed in place, so that a change costs what it touches. Every write goes through the journal. If
the new deployment is refused, `roll_back` restores the tables.
"""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MISSING = object()


class Journal:
    """The writes since the last `commit`, the newest last."""

    def __init__(self) -> None:
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Write one entry."""
        self._undo.append((table, key, table.get(key, _MISSING)))
        table[key] = value

    def pop(self, table: dict[K, V], key: K) -> None:
        """Remove one entry, if it exists."""
        if key in table:
            self._undo.append((table, key, table[key]))
            del table[key]

    @property
    def position(self) -> int:
        """The present position, for a later `roll_back`."""
        return len(self._undo)

    def before(self, table: dict[K, V], position: int = 0) -> dict[K, V | None]:
        """The earlier values of entries that were written since; None for new entries. O(writes)."""
        found: dict[K, V | None] = {}
        for written, key, old in self._undo[position:]:
            if written is table:
                found.setdefault(key, None if old is _MISSING else old)
        return found

    def roll_back(self, position: int = 0) -> None:
        """Undo the writes since a position. O(writes)."""
        while len(self._undo) > position:
            table, key, before = self._undo.pop()
            if before is _MISSING:
                del table[key]
            else:
                table[key] = before

    def commit(self) -> None:
        """Make the writes final."""
        self._undo.clear()
