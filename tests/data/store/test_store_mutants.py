"""Would the twin notice? Stores that are broken in one line each are caught by the state machine of `test_store`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rove.data.store import store
from rove.data.store.eviction import Candidates, Fifo, Priority, QueryAware
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.pack_queue import PackQueue
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from tests.data.store.test_store import StoreMachine

SEARCH = settings(
    max_examples=5_000,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


class Mutant(NamedTuple):
    """One function with one line that says something else."""

    holder: Any
    name: str
    line: str
    instead: str


MUTANTS = {
    "senders are never told": Mutant(Store, "drop", "entry.receipt.release()", "pass"),
    "copies outlive what they are copies of": Mutant(Store, "drop", "self.drop(copy)", "pass"),
    "what goes leaves its bytes behind": Mutant(Store, "drop", "self._account(entry, -1)", "pass"),
    "shared rows count twice": Mutant(Store, "share", "entry.payload, KEPT_BYTES_MIN,", "entry.payload, other.bytes,"),
    "nobody inherits the bytes of shared rows": Mutant(Store, "_unshare", "heir.bytes = entry.bytes", "pass"),
    "bytes that an heir takes to the disk count as staying": Mutant(Store, "_unshare", "if heir.stored:", "if False:"),
    "the second of those who share inherits from the last": Mutant(Store, "_unshare", "sharers[0] is entry", "True"),
    "what was copied may still go": Mutant(Store, "copy", "self.sent(entry)", "pass"),
    "a copy counts the bytes of its rows": Mutant(
        Store, "copy", "entry, KEPT_BYTES_MIN, entry.since", "entry, entry.bytes, entry.since"
    ),
    "rows of copies count": Mutant(Store, "_account", "entry.original is not None", "False"),
    "what was sent may still go from the disk": Mutant(Store, "sent", "self.on_disk.remove(entry)", "pass"),
    "rows that go are not counted": Mutant(
        Store, "evict", "evicted=header.evicted + header.born", "evicted=header.born"
    ),
    "late rows leave a header": Mutant(Store, "evict", "if header.late:", "if False:"),
    "headers do not become one when rows go": Mutant(Store, "evict", "self._fold(entry)", "pass"),
    "headers do not become one when they come": Mutant(Store, "put", "self._fold(entry)", "pass"),
    "late rows stand between headers": Mutant(Store, "put", "if not header.late:  # late", "if True:  # late"),
    "late rows are written": Mutant(Store, "put", "if not header.late:\n", "if True:\n"),
    "a header forgets what its neighbour lost": Mutant(Store, "_absorb", "lost=a.lost + b.lost", "lost=a.lost"),
    "a header forgets what its neighbour had evicted": Mutant(
        Store, "_absorb", "evicted=a.evicted + b.evicted", "evicted=a.evicted"
    ),
    "a header keeps the older promise": Mutant(Store, "_absorb", "max(a.watermark", "min(a.watermark"),
    "a header swallows a gap": Mutant(store, "_neighbours", "a.through + 1 == b.seq and", "a.through < b.seq and"),
    "a header swallows another epoch": Mutant(store, "_neighbours", "(a.stage, a.epoch) == (b.stage, b.epoch)", "True"),
    "the chain breaks where a header goes": Mutant(Store, "_unlink", "entry.before.after = entry.after", "pass"),
    "the last of a chain is forgotten": Mutant(
        Store, "_unlink", "self._last[key] = entry.before", "del self._last[key]"
    ),
    "what was sent before, alone, becomes one with others": Mutant(KeptBatch, "folds", "not self.alone or", "True or"),
    "what came from a peer becomes one with others": Mutant(KeptBatch, "untouched", " and self.receipt is None", ""),
    "rows on their way to the disk take room": Mutant(
        Store, "leaves", "self.leaving_bytes += entry.leaving_bytes", "pass"
    ),
    "rows on their way to the disk may go": Mutant(Store, "leaves", "self.in_memory.remove(entry)", "pass"),
    "what has left is leaving for ever": Mutant(Store, "_stays", "self.leaving_bytes -= entry.leaving_bytes", "pass"),
    "copies keep rows that are on the disk": Mutant(Store, "spilled", "copy.payload = rows", "pass"),
    "what is on the disk may not go": Mutant(Store, "spilled", "self.on_disk.add(entry)", "pass"),
    "rows on the disk count in memory": Mutant(Store, "spilled", "KEPT_BYTES_MIN, len(rows)", "entry.bytes, len(rows)"),
    "rows that cannot be read are not counted": Mutant(
        Store, "unreadable", "without_rows(entry.header)", "replace(without_rows(entry.header), lost=entry.header.lost)"
    ),
    "rows become small for one of those who share them": Mutant(
        Store, "shrink", "entry.sharers or (entry,)", "(entry,)"
    ),
    "rows become small for all, and count for all": Mutant(
        Store, "shrink", "if each.bytes > KEPT_BYTES_MIN:", "if True:"
    ),
    "rows become small after they were sent": Mutant(KeptBatch, "whole", " and not self.number", ""),
    "rows become small on their way to the disk": Mutant(KeptBatch, "whole", " and not self.stored", ""),
    "rows that were thinned become what they were": Mutant(PackQueue, "packed", "entry.payload is plain and ", ""),
    "the oldest is a header": Mutant(Store, "held", " if e.payload is not None", ""),
    "the newest goes": Mutant(Candidates, "oldest", "next(iter(", "next(reversed("),
    "the oldest of the first query goes": Mutant(
        Fifo, "victim", "key=lambda entry: entry.order", "key=lambda entry: entry.header.query"
    ),
    "a query gives up what has just come": Mutant(
        QueryAware, "victim", "candidates.batches(query) > 1", "candidates.batches(query) > 0"
    ),
    "weights are not looked at": Mutant(Priority, "victim", "self._weights.get(query, 1.0), query", "1.0, query"),
    "rows that are shared go for one query": Mutant(Retention, "make_room", "victim.sharers or (victim,)", "(victim,)"),
    "one batch too few goes": Mutant(Retention, "make_room", "self._store.room < 0", "self._store.room < -1_000"),
}


@pytest.fixture(autouse=True)
def made_machines_are_valid() -> None:
    """Stores that are broken on purpose are not asked for their laws."""


def broken(mutant: Mutant) -> Any:
    """The function with its other line."""
    found = inspect.getattr_static(mutant.holder, mutant.name)
    is_property = isinstance(found, property)
    function: Callable[..., Any] = found.fget if is_property else found  # type: ignore[assignment]
    source = dedent(inspect.getsource(function))
    assert source.count(mutant.line) == 1, f"`{mutant.line}` is not there once; write this mutant anew:\n{source}"
    made: dict[str, Any] = {}
    text = "from __future__ import annotations\n" + source.replace(mutant.line, mutant.instead).replace(
        "@property\n", ""
    )
    exec(text, vars(sys.modules[function.__module__]), made)
    return property(made[mutant.name]) if is_property else made[mutant.name]


QUICK = {  # those that a few examples catch; the others are looked for with --slow
    "a copy counts the bytes of its rows",
    "headers do not become one when they come",
    "rows of copies count",
    "rows on the disk count in memory",
    "rows on their way to the disk take room",
    "senders are never told",
    "shared rows count twice",
    "the newest goes",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MUTANTS]
)
def test_a_broken_store_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    monkeypatch.setattr(mutant.holder, mutant.name, broken(mutant))
    with pytest.raises((AssertionError, KeyError, ValueError)):
        run_state_machine_as_test(StoreMachine, settings=SEARCH)
