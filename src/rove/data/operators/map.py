"""A user's Python function over record batches.

Law: whatever the function does, the process goes on: an exception or a wrong result becomes a `UdfError` that names the
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rove.model.batch import one_batch
from rove.model.errors import RAISED_BY_USERS, SchemaMismatch, UdfError
from rove.model.schema import check_batch

BatchFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class MapConfig:
    function: BatchFunction
    schema: pa.Schema

    def build(self) -> MapLogic:
        return MapLogic(self)


class MapLogic:
    """Calls the function with one batch. Everything it yields becomes one batch, because batches are never split."""

    def __init__(self, config: MapConfig) -> None:
        self._function, self._schema = config.function, config.schema

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        results = called(self._function, data)
        for each in results:
            self._check(each)
        if len(results) == 1:
            return results[0].cast(self._schema)
        return one_batch(
            pa.Table.from_batches(results, results[0].schema if results else self._schema).cast(self._schema)
        )

    def _check(self, result: pa.RecordBatch) -> None:
        try:
            check_batch(result, self._schema, f"mapInArrow function `{name_of(self._function)}`")
        except SchemaMismatch as error:
            raise UdfError(str(error)) from error


def called(function: BatchFunction, data: pa.RecordBatch) -> list[pa.RecordBatch]:
    """What a function yields for a batch. Its faults are a `UdfError`."""
    try:
        results = list(function(iter((data,))))
    except UdfError:  # a function that runs in another process
        raise
    except RAISED_BY_USERS as error:
        raise UdfError(f"mapInArrow function `{name_of(function)}` raised {type(error).__name__}: {error}") from error
    for each in results:
        if not isinstance(each, pa.RecordBatch):
            raise UdfError(
                f"mapInArrow function `{name_of(function)}` yielded a {type(each).__name__}; it must yield "
                "pyarrow.RecordBatch objects"
            )
    return results


def name_of(function: BatchFunction) -> str:
    """The name under which a function is known to its user."""
    return getattr(function, "__name__", repr(function))
