"""What leaves the operators of a fragment."""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.batch import Batch
from rove.model.errors import DataError
from rove.model.ids import Stage


@dataclass(frozen=True, slots=True)
class Emitted:
    """A batch that left at a stage. `late` if its rows are set aside: they are late, or with a `fault` could not be
    computed. A `fault` of a batch without rows is that of a window which could not be computed. A batch that `passes`
    is of an origin that the operator here does not wait for: it is taken further up, or nowhere.
    """

    stage: Stage
    batch: Batch
    late: bool = False
    fault: DataError | None = None
    passes: bool = False
