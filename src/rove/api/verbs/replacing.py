"""The verb `replace` of streams.

Law: it takes the argument shapes of PySpark's `replace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rove.api.arguments import checks_arguments
from rove.plan.verbs.replacing import pairs_of, replaced

Value = bool | int | float | str


@checks_arguments
class Replacing:
    """A stream whose values can be replaced."""

    def replace(
        self,
        to_replace: Value | list[Value] | dict[Value, Value | None],
        value: Value | list[Value | None] | None = None,
        subset: str | Sequence[str] | None = None,
    ) -> Any:
        """Other values in the place of some: `replace(1, 2)`, `replace([1, 2], [3, 4])`, `replace({"x": None})`."""
        stream: Any = self
        names = [subset] if isinstance(subset, str) else subset
        return stream._with(replaced(stream._rows(), pairs_of(to_replace, value), names))
