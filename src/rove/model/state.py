"""A snapshot of an operator's state: Arrow tables by name, and a few numbers.

Law: a snapshot is complete. An operator restored from it goes on as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from rove.model.errors import StateError
from rove.model.foreign.arrow_head import read_rows

_DECODER = msgspec.msgpack.Decoder(tuple[str, dict[str, int], dict[str, list[bytes]]])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one operator: `kind` names the operator, `facts` are numbers, `tables` are rows."""

    kind: str
    facts: dict[str, int] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of its tables."""
        return {name: table.schema for name, table in self.tables.items()}

    def expect(self, kind: str) -> None:
        """Refuse a snapshot of another operator."""
        if self.kind != kind:
            raise StateError(
                f"this is a snapshot of {self.kind}, not of {kind}; restore it into the operator it is from"
            )


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as bytes: its rows are Arrow messages without their schemas, which the operator knows."""
    tables = {name: [memoryview(b.serialize()) for b in table.to_batches()] for name, table in snapshot.tables.items()}
    return msgspec.msgpack.encode((snapshot.kind, snapshot.facts, tables))


def decode(data: bytes, schemas: Mapping[str, pa.Schema]) -> Snapshot:
    """The inverse of `encode`, for tables with these schemas. Bytes that are no such snapshot raise a StateError. A
    schema is never read from the bytes of others: Arrow does not survive all that it may be given. O(rows)."""
    try:
        kind, facts, tables = _DECODER.decode(data)
        found = {name: _table(batches, schemas[name]) for name, batches in tables.items()}
    except Exception as error:  # Arrow and Python each have their own errors for bad bytes
        raise StateError(f"these bytes are not a snapshot: {error!r}") from error
    return Snapshot(kind, facts, found)


def _table(batches: list[bytes], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([read_rows(message, schema) for message in batches], schema)
