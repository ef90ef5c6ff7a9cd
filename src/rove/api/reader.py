"""`session.read`: a table that Spark reads, to join streams with.

Law: the plan carries the settings of Spark's reader, and Spark opens the table where the query runs. This module opens
the table only to find its columns, if the user gives no schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.dataset import dataset

from rove.api.arguments import checks_arguments
from rove.api.stream import Stream
from rove.model.errors import PlanError
from rove.model.schema import parse_schema, schema_text
from rove.plan.operators import BY_NAME, Table

if TYPE_CHECKING:
    from rove.api.session import Session

PARQUET = "parquet"


@checks_arguments
class TableReader:
    """PySpark's reader. Every step returns the reader; the last step returns a table with the verbs of a stream.

    >>> import rove
    >>> s = rove.Session.local()
    >>> trains = s.stream("trains", schema="train string, stop int, boarding int")
    >>> stops = s.read.schema("stop int, name string").parquet("/data/stops.parquet")
    >>> trains.join(stops, "stop").select("train", "name").columns
    ['train', 'name']
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._format = PARQUET
        self._columns: pa.Schema | None = None
        self._options: dict[str, str] = {}

    def schema(self, schema: str | pa.Schema) -> TableReader:
        """The columns to be read, such as `stop int, name string`."""
        self._columns = parse_schema(schema) if isinstance(schema, str) else schema
        return self

    def format(self, source: str) -> TableReader:
        """A format that the query's Spark can read. The default is `parquet`."""
        self._format = source
        return self

    def option(self, key: str, value: Any) -> TableReader:
        """An option of Spark's reader."""
        self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> TableReader:
        for key, value in options.items():
            self.option(key, value)
        return self

    def load(self, path: str = "") -> Stream:
        """A file or folder at a path that the query's Spark can read. Parquet that can also be read here needs no
        schema."""
        return self._table(path, self._format)

    def parquet(self, path: str) -> Stream:
        """A Parquet file, or a folder of them."""
        return self.format(PARQUET).load(path)

    def table(self, tableName: str) -> Stream:
        """A table in the catalog of the query's Spark."""
        return self._table(tableName, BY_NAME)

    def _table(self, path: str, form: str) -> Stream:
        columns = self._columns
        if columns is None and form == PARQUET and Path(path).exists():
            columns = parse_schema(schema_text(dataset(path, format=PARQUET).schema))
        if columns is None:
            raise PlanError(
                f"the columns of `{path}` cannot be found out here; name them: "
                f"session.read.schema('stop int, name string').{BY_NAME if form == BY_NAME else 'load'}(…)"
            )
        return Stream(self._session, Table(path, columns, form, tuple(self._options.items())))
