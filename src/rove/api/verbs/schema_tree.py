"""A schema as `printSchema` shows it in PySpark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from rove.api.arguments import checks_arguments
from rove.model.schema import type_name

_LONG = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}


@checks_arguments
class Printed:
    """Something with a schema that can be printed."""

    schema: pa.Schema

    def printSchema(self) -> None:
        """Print the columns as a tree."""
        print(tree(self.schema))


def tree(schema: pa.Schema) -> str:
    """The columns, one a line, with the parts of nested ones below them.

    >>> print(tree(pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string()))])))
    root
     |-- a: integer (nullable = true)
     |-- b: array (nullable = true)
     |    |-- element: string (containsNull = true)
    """
    return "\n".join(["root", *(line for f in schema for line in _lines(f.name, f.type, "nullable = true", " "))])


def _lines(name: str, dtype: pa.DataType, said: str, before: str) -> list[str]:
    below: list[str] = []
    inner = f"{before}|    "
    if pt.is_struct(dtype):
        word = "struct"
        below = [line for f in dtype.fields for line in _lines(f.name, f.type, "nullable = true", inner)]
    elif pt.is_map(dtype):
        word = "map"
        below = _lines("key", dtype.key_type, "", inner)
        below += _lines("value", dtype.item_type, "valueContainsNull = true", inner)
    elif pt.is_list(dtype):
        word = "array"
        below = _lines("element", dtype.value_type, "containsNull = true", inner)
    else:
        word = _LONG.get(type_name(dtype), type_name(dtype))
    return [f"{before}|-- {name}: {word}{f' ({said})' if said else ''}", *below]
