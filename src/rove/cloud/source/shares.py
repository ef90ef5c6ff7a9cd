"""Splits a micro-batch into shares, one for each task.

Law: shares hold all picked entries once, in order, with about the same number of rows each. A small batch is one share,
because a second task would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rove.cloud.source.admission import Pick
from rove.cloud.source.entries import places
from rove.cloud.source.rows import FolderRows, coalesced
from rove.cloud.source.shape import Shape
from rove.model.ids import Origin

ROWS_PER_SHARE_MIN = 8_192


class Part(NamedTuple):
    """Picked entries of one folder, and the names of their origins."""

    pick: Pick
    origins: dict[int, Origin]


class Share(InputPartition):
    """What one task reads: entries, the bounds for entries that are read in part, and the time of a heartbeat."""

    def __init__(self, parts: list[Part], above: int, upto: int, beat: int | None) -> None:
        self.parts, self.above, self.upto, self.beat = parts, above, upto, beat

    def read(self, shape: Shape, skip_damage: bool) -> Iterator[pa.RecordBatch]:
        """The rows of this share, as Spark expects them."""
        return coalesced(self._batches(shape, skip_damage))

    def _batches(self, shape: Shape, skip_damage: bool) -> Iterator[pa.RecordBatch]:
        for pick, origins in self.parts:
            rows = FolderRows(pick.folder, shape, origins, skip_damage)
            for place, above, upto in zip(places(pick.entries), pick.above.tolist(), pick.upto.tolist(), strict=True):
                batch = rows.read(place, self.above if above else None, self.upto if upto else None)
                if batch is not None:
                    yield batch
        if self.beat is not None:
            yield shape.beat(self.beat)


def shares(
    picks: Sequence[Pick],
    origins: Mapping[str, Sequence[Origin]],
    parallelism: int,
    bounds: tuple[int, int],
    beat: int | None = None,
) -> list[Share]:
    """Split picked entries evenly. A heartbeat goes with the last share."""
    total = sum(pick.rows for pick in picks)
    count = max(1, min(parallelism, total // ROWS_PER_SHARE_MIN))
    found: list[list[Part]] = [[] for _ in range(count)]
    before = 0
    for pick in picks:
        rows = np.cumsum(pick.entries["rows"])
        middles = before + rows - pick.entries["rows"] / 2
        whose = np.minimum(middles * count // max(total, 1), count - 1).astype(int)
        before += int(rows[-1])
        for number in np.unique(whose):
            chosen = whose == number
            part = Pick(pick.folder, pick.entries[chosen], pick.above[chosen], pick.upto[chosen])
            names = {n: origins[pick.folder][n] for n in np.unique(part.entries["origin"]).tolist()}
            found[number].append(Part(part, names))
    kept = [parts for parts in found if parts] or ([[]] if beat is not None else [])
    return [Share(parts, *bounds, beat if parts is kept[-1] else None) for parts in kept]
