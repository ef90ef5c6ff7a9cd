"""Changes to tables that can be taken back.

Law: a deployment is changed in place, so that a change costs what it touches. Every write goes through the journal; if
the deployment that comes out is refused, `roll_back` leaves the tables as they were.
"""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MISSING = object()


class Journal:
    """What was written since the last `commit`, the newest last."""

    def __init__(self) -> None:
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Write one entry."""
        self._undo.append((table, key, table.get(key, _MISSING)))
        table[key] = value

    def pop(self, table: dict[K, V], key: K) -> None:
        """Take one entry out, if it is there."""
        if key in table:
            self._undo.append((table, key, table[key]))
            del table[key]

    @property
    def position(self) -> int:
        """Where the journal stands, to roll back to."""
        return len(self._undo)

    def before(self, table: dict[K, V], position: int = 0) -> dict[K, V | None]:
        """The entries of a table that were written since, as they were; None for those that are new. O(writes)."""
        found: dict[K, V | None] = {}
        for written, key, old in self._undo[position:]:
            if written is table:
                found.setdefault(key, None if old is _MISSING else old)
        return found

    def roll_back(self, position: int = 0) -> None:
        """Undo what was written since. O(writes)."""
        while len(self._undo) > position:
            table, key, before = self._undo.pop()
            if before is _MISSING:
                del table[key]
            else:
                table[key] = before

    def commit(self) -> None:
        """What was written stays."""
        self._undo.clear()
