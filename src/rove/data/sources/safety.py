"""Which batches of a node's own sources would be gone if its process died now.

Law: a batch is safe when another node has acked it, or when it is in a log on the disk. One that waits in the store is
taken for unsafe even if its rows are on the disk: the next start finds it there, and does not make it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.fragment.deployment.opening import Openings
from rove.data.store.store import Store
from rove.model.ids import Origin


def first_unsafe(
    store: Store, output: Output, input_log: InputLog, openings: Openings, replays: Callable[[Origin], bool]
) -> dict[tuple[str, Origin], int]:
    """By query and origin, the first batch that may not be safe, of sources that can make it again. O(lines of the
    store, batches that wait for the disk or for their folders)."""
    found: dict[tuple[str, Origin], int] = {}
    for query, origin, number in _unsafe(store, output, input_log, openings):
        key = (query, origin.unsided)
        if replays(key[1]) and number < found.get(key, number + 1):
            found[key] = number
    return found


def _unsafe(store: Store, output: Output, input_log: InputLog, openings: Openings) -> Iterator[tuple[str, Origin, int]]:
    for names in (store.names(), store.late_names()):
        yield from ((query, origin, covered.first) for (query, origin), covered in names.items())
    for header in (*output.waiting(), *input_log.waiting()):
        yield header.query, header.origin, header.seq
    for query, batch in openings.early():
        yield query, batch.header.origin, batch.header.seq
