"""A user's Python function over record batches.

Law: whatever the function does, the process goes on: an exception or a wrong result becomes a `UdfError` that names the
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from rove.model.batch import one_batch
from rove.model.errors import RAISED_BY_USERS, RoveError, SchemaMismatch, UdfError
from rove.model.schema import check_batch


@dataclass(frozen=True, slots=True)
class MapConfig:
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    schema: pa.Schema

    def build(self) -> MapLogic:
        return MapLogic(self)


class MapLogic:
    """Calls the function with one batch. Everything it yields becomes one batch, because batches are never split."""

    def __init__(self, config: MapConfig) -> None:
        self._function, self._schema = config.function, config.schema
        self._name = getattr(config.function, "__name__", repr(config.function))

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        try:
            results = list(self._function(iter((data,))))
        except RoveError:
            raise
        except RAISED_BY_USERS as error:
            raise UdfError(f"mapInArrow function `{self._name}` raised {type(error).__name__}: {error}") from error
        for each in results:
            self._check(each)
        if len(results) == 1:
            return results[0].cast(self._schema)
        return one_batch(
            pa.Table.from_batches(results, results[0].schema if results else self._schema).cast(self._schema)
        )

    def _check(self, result: object) -> None:
        if not isinstance(result, pa.RecordBatch):
            raise UdfError(
                f"mapInArrow function `{self._name}` yielded a {type(result).__name__}; it must yield "
                "pyarrow.RecordBatch objects"
            )
        try:
            check_batch(result, self._schema, f"mapInArrow function `{self._name}`")
        except SchemaMismatch as error:
            raise UdfError(str(error)) from error
