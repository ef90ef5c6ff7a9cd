"""A snapshot of an operator's state: Arrow tables by name, and a few numbers.

Law: a snapshot is complete. An operator restored from it goes on as if it had never stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from rove.model.errors import StateError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one operator: `kind` names the operator, `facts` are numbers, `tables` are rows."""

    kind: str
    facts: dict[str, int] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def expect(self, kind: str) -> None:
        """Refuse a snapshot of another operator."""
        if self.kind != kind:
            raise StateError(
                f"this is a snapshot of {self.kind}, not of {kind}; restore it into the operator it is from"
            )


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as Arrow IPC streams, one after the other, each with its length before it."""
    parts = [msgspec.msgpack.encode((snapshot.kind, snapshot.facts, list(snapshot.tables)))]
    for table in snapshot.tables.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        parts.append(sink.getvalue().to_pybytes())
    return msgspec.msgpack.encode(parts)


def decode(data: bytes) -> Snapshot:
    """The inverse of `encode`."""
    try:
        head, *bodies = msgspec.msgpack.decode(data, type=list[bytes])
        kind, facts, names = msgspec.msgpack.decode(head, type=tuple[str, dict[str, int], list[str]])
        tables = {n: pa.ipc.open_stream(b).read_all() for n, b in zip(names, bodies, strict=True)}
    except (msgspec.DecodeError, pa.ArrowInvalid, ValueError) as error:
        raise StateError(f"these bytes are not a snapshot: {error}") from error
    return Snapshot(kind, facts, tables)
