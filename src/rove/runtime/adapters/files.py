"""Replays the rows of a file in batches, as if they were produced now.

Law: a file is read with the columns of its stream. Missing columns and wrong types raise an error that names them. Only
one batch is in memory at a time. Batch n has the rows from `n × rows` on, however the file is laid out inside; an Arrow
file keeps its own batches, and cuts those that are longer. So a source that starts again makes the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from rove.model.errors import SetupError, nearest

READERS = ("parquet", "csv", "arrow", "ipc", "jsonl", "ndjson")


def replayed(path: str, schema: pa.Schema, rows: int, batches: int = 0, first: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows of a file in batches of at most `rows`, from batch `first` on: all of them, or those before number
    `batches`."""
    parts = _parts(path, schema, rows)
    pieces: Iterator[pa.RecordBatch]
    if Path(path).suffix.lower() in (".arrow", ".ipc"):
        pieces = (part.slice(at, rows) for part in parts for at in range(0, part.num_rows, rows))
    else:
        pieces = _cut(parts, rows)
    for piece in islice(pieces, first, batches or None):
        yield _fitting(piece, schema, path)


def _cut(parts: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `rows`. Only a batch that spans two parts is copied."""
    pieces: list[pa.RecordBatch] = []
    lacks = rows
    for part in parts:
        while part.num_rows:
            piece, part = part.slice(0, lacks), part.slice(min(lacks, part.num_rows))
            pieces.append(piece)
            lacks -= piece.num_rows
            if not lacks:
                yield pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
                pieces, lacks = [], rows
    if pieces:
        yield pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def _parts(path: str, schema: pa.Schema, rows: int) -> Iterable[pa.RecordBatch]:
    kind = Path(path).suffix.lower().lstrip(".")
    try:
        match kind:
            case "parquet":
                import pyarrow.parquet

                return _guarded(path, pyarrow.parquet.ParquetFile(path).iter_batches(rows, columns=schema.names))
            case "csv":
                import pyarrow.csv

                convert = pyarrow.csv.ConvertOptions(column_types=schema, include_columns=schema.names)
                return _guarded(path, pyarrow.csv.open_csv(path, convert_options=convert))
            case "arrow" | "ipc":
                reader = pa.ipc.open_file(path)
                return _guarded(path, (reader.get_batch(n) for n in range(reader.num_record_batches)))
            case "jsonl" | "ndjson":
                import pyarrow.json

                parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
                return _guarded(path, pyarrow.json.open_json(path, parse_options=parse))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise _unreadable(path, error) from error
    raise SetupError(f"{path} cannot be read as `{kind}`; {nearest(kind, READERS)}")


def _guarded(path: str, parts: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    try:
        yield from parts
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _fitting(batch: pa.RecordBatch, schema: pa.Schema, path: str) -> pa.RecordBatch:
    try:
        return batch.select(schema.names).cast(schema)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> SetupError:
    return SetupError(f"{path} cannot be replayed: {error}; correct the file or the columns of its stream")
