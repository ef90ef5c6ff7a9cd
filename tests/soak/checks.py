"""What must be true of the logs at the end, compared with the rows that the sources made.

Law: a row that is in no log is named: as evicted, late or lost in the accounts, or as damage of a query whose files
were damaged. No row is there twice, and none that no source made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine
from rove.data.log.segments.damage import Damaged
from rove.model.batch import HeaderKind
from rove.model.ids import Origin
from rove.runtime.disk.disk import open_reader
from tests.soak.queries import HURT, KEPT, STREAMS, WINDOW_US, WINDOWS, Made, Origins

SHOWN = 3


@dataclass(slots=True)
class Found:
    """What a log holds, and how much of it could not be read."""

    batches: list[pa.RecordBatch]
    names: list[tuple[Origin, int, int]]
    damaged: int = 0  # places of which it is not known how many rows they held
    damaged_rows: int = 0  # rows that the reader names as damaged


def read(folder: Path) -> Found:
    """The rows of a partition. Damage is counted and skipped."""
    found = Found([], [])
    if not folder.is_dir():
        return found
    reader = open_reader(folder)
    while True:
        try:
            entries = reader.entries()
        except Damaged:
            found.damaged += 1
            continue
        if not entries:
            break
        for entry in entries:
            if entry.header.kind is HeaderKind.BATCH:
                found.names.append((entry.header.origin, entry.header.seq, entry.header.through))
            try:
                batch = reader.read(entry)
            except Damaged:
                found.damaged_rows += entry.header.rows
                continue
            if batch is not None:
                found.batches.append(batch)
    found.damaged += len(reader.damage)
    return found


class Checks:
    """All checks at the end of a run."""

    def __init__(
        self, log: Path, origins: Origins, lines: list[AccountLine], troubles: dict[str, Counter[str]]
    ) -> None:
        self._log, self._origins, self._troubles = log, origins, troubles
        self._lines = [line for line in lines if line.origin.split("/")[0] in STREAMS]
        self.failures: list[str] = []
        self.summary: list[str] = []
        self.logs = {query: read(log / query / "out") for query in (*KEPT, *HURT)}

    def run(self, lines: list[AccountLine]) -> None:
        self._accounts(lines)
        for query in (*KEPT, *HURT):
            self._names(query)
        for query in ("plain", "hurt_plain"):
            self._plain(query)
        for query, stream in WINDOWS.items():
            self._windows(query, stream)
        self._joined()
        self._counted()

    def _fail(self, text: str) -> None:
        self.failures.append(text)

    def _delivered(self, query: str) -> int:
        return sum(line.delivered for line in self._lines if line.query == query)

    def _named(self, query: str) -> bool:
        """Whether damage of a query was named."""
        return query in HURT and query in self._troubles

    # Each kind of check

    def _accounts(self, lines: list[AccountLine]) -> None:
        for line in lines:
            unsettled = line.in_flight > line.open or line.missing
            if excess(line) or (unsettled and not self._named(line.query)):
                self._fail(f"the account is not settled: {line}")
        for query in (*KEPT, *HURT):
            whole = Counter[str]()
            for line in self._lines:
                if line.query == query:
                    for what in ("produced", "delivered", "evicted", "late", "lost", "in_flight", "duplicates"):
                        whole[what] += getattr(line, what)
            rows = sum(batch.num_rows for batch in self.logs[query].batches)
            damaged = self.logs[query].damaged_rows
            self.summary.append(f"{query:13} {dict(whole)}, {rows:,} rows in the log, {damaged:,} damaged")
            if whole["produced"] == 0:
                self._fail(f"{query}: nothing was produced")

    def _names(self, query: str) -> None:
        found = self.logs[query]
        found.names.sort()
        again = [b for a, b in pairwise(found.names) if a[0] == b[0] and b[1] <= a[2]]
        if again:
            self._fail(f"{query}: {len(again)} batches are in the log twice: {again[:SHOWN]}")
        if found.damaged and not self._named(query):
            self._fail(f"{query}: {found.damaged} places of the log cannot be read, and no trouble of it was told")

    def _rows(self, query: str, *columns: str) -> Iterator[tuple[int, ...]]:
        for batch in self.logs[query].batches:
            arrays = [batch.column(batch.schema.get_field_index(name)) for name in columns]
            plain = [a.cast(pa.int64()).to_pylist() if a.type != pa.int64() else a.to_pylist() for a in arrays]
            yield from zip(*plain, strict=True)

    def _made(self, query: str, ts: int, stream: str) -> Made | None:
        made = self._origins.made(ts)
        if made is None or made.stream != stream:
            self._fail(f"{query}: no source made a row of {stream} at {ts}")
            return None
        return made

    def _plain(self, query: str) -> None:
        seen: Counter[int] = Counter()
        by: Counter[tuple[str, int]] = Counter()
        for ts, level, twice in self._rows(query, "ts", "level", "twice"):
            seen[ts] += 1
            made = self._made(query, ts, "readings")
            if made is not None:
                by[made.device, made.begun_us] += 1
                if (made.level, 2 * made.value) != (level, twice):
                    self._fail(f"{query}: a row is wrong: {(ts, level, twice)}, made as {made}")
        self._twice(query, seen)
        self._complete(query, len(seen), self._delivered(query))

    def _twice(self, query: str, seen: Counter[int]) -> None:
        twice = [ts for ts, times in seen.items() if times > 1]
        if twice:
            self._fail(f"{query}: {len(twice)} rows are there twice: {twice[:SHOWN]}")

    def _complete(self, query: str, rows: int, delivered: int) -> None:
        rows += self.logs[query].damaged_rows if query in HURT else 0
        if rows != delivered and not self._named(query):
            self._fail(f"{query}: {rows:,} rows are in the log, and {delivered:,} were delivered")

    def _windows(self, query: str, stream: str) -> None:
        counts: Counter[tuple[int, int]] = Counter()
        for batch in self.logs[query].batches:
            starts = batch.column("window").field("start").cast(pa.int64()).to_pylist()
            levels, ns = batch.column("level").to_pylist(), batch.column("n").to_pylist()
            for start, level, n in zip(starts, levels, ns, strict=True):
                if (start, level) in counts:
                    self._fail(f"{query}: the window of {level} at {start} is there twice")
                counts[start, level] += n
        made = self._made_in_windows(stream)
        for key, n in counts.items():
            if n > made[key]:
                self._fail(f"{query}: {n} rows are in the window {key}, and {made[key]} were made")
        damaged = self.logs[query].damaged_rows if query in HURT else 0
        if damaged and counts.total() + damaged <= self._delivered(query):
            return  # the reader names the windows that it cannot read, and not how many rows were in them
        self._complete(query, counts.total(), self._delivered(query))

    def _made_in_windows(self, stream: str) -> Counter[tuple[int, int]]:
        """How many rows of a stream all starts can have made in each window of each level."""
        found: Counter[tuple[int, int]] = Counter()
        for made_by, ts, level in self._origins.all():
            if made_by == stream:
                found[ts // WINDOW_US * WINDOW_US, level] += 1
        return found

    def _joined(self) -> None:
        pairs: Counter[tuple[int, int]] = Counter()
        for left, right, level in self._rows("joined", "l", "r", "level"):
            pairs[left, right] += 1
            one, other = self._made("joined", left, "readings"), self._made("joined", right, "events")
            if one is None or other is None:
                continue
            if one.level != level or other.level != level or left // WINDOW_US != right // WINDOW_US:
                self._fail(f"joined: {left} and {right} do not belong together: {one}, {other}")
        twice = [pair for pair, times in pairs.items() if times > 1]
        if twice:
            self._fail(f"joined: {len(twice)} pairs are there twice: {twice[:SHOWN]}")
        self._pairs_missing(pairs)

    def _pairs_missing(self, pairs: Counter[tuple[int, int]]) -> None:
        """Pairs of rows that both reached the join must be there. Rows that `plain` delivered reached the join too, for
        devices of which neither query lost a row."""
        sums: dict[tuple[str, str], AccountLine] = {(line.query, line.origin): line for line in self._lines}
        rows = {ts for (ts,) in self._rows("plain", "ts")}
        lost = {(s, d) for s, d in _sources(sums) if any(_lossy(line, s, d) for line in self._lines)}
        left: dict[tuple[int, int], list[int]] = {}
        for ts in rows:
            made = self._origins.made(ts)
            if made is not None and ("readings", made.device) not in lost:
                left.setdefault((ts // WINDOW_US, made.level), []).append(ts)
        known = {right for _, right in pairs}  # a row of events that found one partner finds all of them
        missing = []
        for right in known:
            made = self._origins.made(right)
            if made is not None:
                found = left.get((right // WINDOW_US, made.level), ())
                missing += [(ts, right) for ts in found if (ts, right) not in pairs]
        self.summary.append(f"joined: {len(pairs):,} pairs")
        if missing:
            self._fail(f"joined: {len(missing)} pairs are missing: {missing[:SHOWN]}")

    def _counted(self) -> None:
        seen: Counter[int] = Counter()
        numbers: dict[int, list[int]] = {}
        for ts, level, n in self._rows("counted", "ts", "level", "n"):
            seen[ts] += 1
            numbers.setdefault(level, []).append(n)
            made = self._made("counted", ts, "readings")
            if made is not None and made.level != level:
                self._fail(f"counted: a row is wrong: {(ts, level)}, made as {made}")
        self._twice("counted", seen)
        for level, found in numbers.items():
            if sorted(found) != list(range(1, len(found) + 1)):
                self._fail(f"counted: the running count of {level} is not 1, 2, 3 …: {sorted(found)[:20]}")
        self._complete("counted", len(seen), self._delivered("counted"))


def _sources(sums: dict[tuple[str, str], AccountLine]) -> set[tuple[str, str]]:
    found = set()
    for _, origin in sums:
        stream, device = origin.split("~")[0].split("/")
        found.add((stream, device))
    return found


def _lossy(line: AccountLine, stream: str, device: str) -> bool:
    """Whether a source has rows that did not arrive at `joined` or `plain`."""
    mine = line.origin.startswith(f"{stream}/{device}~") and line.query in ("joined", "plain")
    return mine and line.produced != line.delivered
