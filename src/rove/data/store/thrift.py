"""Reads Thrift's compact protocol, as far as Parquet files use it.

Law: every byte is read within bounds, nesting and lists are bounded, and a field comes once. Anything else raises
ValueError. Texts are passed over.
"""

from __future__ import annotations

from typing import Any, TypeAlias

DEPTH_MAX = 16
ITEMS_MAX = 100_000  # in all lists of one struct
STOP, TRUE, FALSE, BYTE = 0, 1, 2, 3  # kinds of fields
NUMBERS = (4, 5, 6)
DOUBLE, TEXT, LIST, SET, STRUCT = 7, 8, 9, 10, 12
Fields: TypeAlias = dict[int, Any]


def read_struct(data: memoryview, at: int) -> tuple[Fields, int]:
    """The fields of a struct by their numbers, and where it ends. O(its bytes)."""
    return _Reader(data).struct(at, 0)


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data, self._items = data, 0

    def struct(self, at: int, depth: int) -> tuple[Fields, int]:
        found: Fields = {}
        field = 0
        while True:
            first = self._byte(at)
            kind, at = first & 15, at + 1
            if kind == STOP:
                return found, at
            if first >> 4:
                field += first >> 4
            else:
                field, at = self._number(at)
            if field in found:
                raise ValueError("a field comes twice in it")
            if kind in (TRUE, FALSE):
                found[field] = kind == TRUE
            else:
                found[field], at = self._value(at, kind, depth)

    def _value(self, at: int, kind: int, depth: int) -> tuple[Any, int]:
        if depth > DEPTH_MAX:
            raise ValueError("it is nested too deeply")
        if kind in NUMBERS:
            return self._number(at)
        if kind == STRUCT:
            return self.struct(at, depth + 1)
        if kind in (LIST, SET):
            return self._list(at, depth + 1)
        if kind == TEXT:
            length, at = self._varint(at)
            return None, at + length
        if kind in (BYTE, DOUBLE):
            return None, at + (1 if kind == BYTE else 8)
        raise ValueError("it has a field of an unknown kind")

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        first = self._byte(at)
        count, kind, at = first >> 4, first & 15, at + 1
        if count == 15:
            count, at = self._varint(at)
        self._items += count
        if self._items > ITEMS_MAX:
            raise ValueError("its lists are too long")
        found = []
        for _ in range(count):
            if kind in (TRUE, FALSE):  # in a list a truth value is a byte
                value, at = self._byte(at) == TRUE, at + 1
            else:
                value, at = self._value(at, kind, depth)
            found.append(value)
        return found, at

    def _number(self, at: int) -> tuple[int, int]:
        value, at = self._varint(at)
        return (value >> 1) ^ -(value & 1), at

    def _varint(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while shift < 70:
            byte = self._byte(at)
            at += 1
            value |= (byte & 127) << shift
            if not byte & 128:
                return value, at
            shift += 7
        raise ValueError("a number in it is too long")

    def _byte(self, at: int) -> int:
        if not 0 <= at < len(self._data):
            raise ValueError("it is cut off")
        return self._data[at]
