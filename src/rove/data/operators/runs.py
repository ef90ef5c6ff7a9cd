"""The states of one pane from one origin, merged as they grow.

Law: when states are merged depends on the origin's own rows only. So the sums of one origin are added in one order,
whatever else arrives in between, and floating-point results are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rove.data.operators.aggregate_states import States

FOLD_ROWS = 65_536  # fewer folds cost less time, and more memory: this many rows of states for each pane and origin
FAN_IN = 8


class Runs:
    """Pending rows, then folded runs by level: level n + 1 holds folds of `FAN_IN` runs of level n.

    A row is merged O(log(rows)) times in all. Memory is O(keys · log(rows) + FOLD_ROWS).
    """

    __slots__ = ("_states", "levels", "pending", "pending_rows")

    def __init__(self, states: States) -> None:
        self._states = states
        self.pending: list[pa.RecordBatch] = []
        self.pending_rows = 0
        self.levels: list[list[pa.RecordBatch]] = []

    def add(self, part: pa.RecordBatch) -> None:
        """Take lifted rows."""
        self.pending.append(part)
        self.pending_rows += part.num_rows
        if self.pending_rows >= FOLD_ROWS:
            run = self._states.merge(self.pending)
            self.pending, self.pending_rows = [], 0
            self._push(run)

    def parts(self) -> list[pa.RecordBatch]:
        """Everything, oldest first."""
        return [run for level in reversed(self.levels) for run in level] + self.pending

    def labelled(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Every part with its level, oldest first; pending rows have level -1."""
        for level in range(len(self.levels) - 1, -1, -1):
            for run in self.levels[level]:
                yield level, run
        for part in self.pending:
            yield -1, part

    def put(self, level: int, part: pa.RecordBatch) -> None:
        """Restore a part from a snapshot, in the order of `labelled`."""
        if level < 0:
            self.pending.append(part)
            self.pending_rows += part.num_rows
            return
        while len(self.levels) <= level:
            self.levels.append([])
        self.levels[level].append(part)

    def _push(self, run: pa.RecordBatch) -> None:
        level = 0
        while True:
            if len(self.levels) == level:
                self.levels.append([])
            self.levels[level].append(run)
            if len(self.levels[level]) < FAN_IN:
                return
            run = self._states.merge(self.levels[level])
            self.levels[level] = []
            level += 1
