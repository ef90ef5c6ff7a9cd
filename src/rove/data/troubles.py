"""The troubles of a node, for its log and its reports to the coordinator.

Law: a trouble is a sentence that says what to do. Its words stay the same while it lasts, so that it is logged once and
its beginning is known.
"""

from __future__ import annotations

from msgspec.structs import replace

from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.deployment.opening import Openings
from rove.data.fragment.deployment.replay import Replay
from rove.data.link.neighbours import Neighbours
from rove.data.log.folders import Folders
from rove.data.store.retention import Retention
from rove.model.ids import QueryId
from rove.model.messages import TroubleHere
from rove.model.spans import text_of

FREE_IT = "what it should take is not acknowledged, and its senders keep it. Free the disk, or mend it"

BRING_IT = "start the node that has them if it is away. If a disk has lost them, they cannot come: start the query anew"


def of_queries(
    output: Output,
    input_log: InputLog,
    retention: Retention,
    fragments: Fragments,
    openings: Openings,
    neighbours: Neighbours,
    now: int,
) -> dict[QueryId, tuple[TroubleHere, ...]]:
    """By query, what is wrong with it. O(queries with trouble, folders, links that stand still, operators, and batches
    that are held)."""
    found: dict[QueryId, list[TroubleHere]] = {}
    for damage in (output.damage(), input_log.damage()):
        for query, text in damage.items():
            found.setdefault(query, []).append(TroubleHere(text))
    for query, text in retention.damage().items():
        lost = f"batches that waited on the disk are damaged, and their rows are lost: {text}"
        found.setdefault(query, []).append(TroubleHere(lost))
    for book in (output.unwritten(), input_log.unwritten()):
        for query, text in book.items():
            found.setdefault(query, []).append(TroubleHere(f"{text}; {FREE_IT}", holds=True))
    for query, text in openings.troubles().items():
        found.setdefault(query, []).append(TroubleHere(text, holds=True))
    for query, running in fragments.running.items():
        if running.pipeline.fault:
            text = f"rows that cannot be computed go to the fault table; the first: {running.pipeline.fault}"
            found.setdefault(query, []).append(TroubleHere(text, fault=True))
        if running.fault:
            text = f"rows that could not be computed were lost: {running.fault}"
            found.setdefault(query, []).append(TroubleHere(text, fault=True))
    for query, origin, first, last in fragments.gaps.lasting(fragments.running, now):
        text = f"batches {text_of((first, last + 1))} of `{origin}` have not come, and later ones wait for them"
        found.setdefault(query, []).append(TroubleHere(f"{text}; {BRING_IT}"))
    for _, name, text in neighbours.strangers(now):
        if QueryId(name) in fragments.running:
            found.setdefault(QueryId(name), []).append(TroubleHere(text))
    for query, trouble in fragments.troubles.items():
        found.setdefault(query, []).append(replace(trouble, holds=query not in fragments.running))
    return {query: tuple(troubles) for query, troubles in sorted(found.items())}


def of_node(folders: Folders, replay: Replay, neighbours: Neighbours, retention: Retention, now: int) -> dict[str, str]:
    """What is wrong with the node's disk and links, by folder or part. O(folders + links)."""
    found = {f"folder {name}": text for name, text in folders.troubles().items()}
    found |= {f"damage in {name}": text for name, text in folders.damage().items()}
    found |= {f"reading {name}": text for name, text in replay.pending.troubles().items()}
    found |= {f"rows for {name}": link.trouble for name, link in neighbours.links.items() if link.trouble}
    found |= {f"batches of {name}": text for name, _, text in neighbours.strangers(now)}
    if retention.trouble:
        found["waiting rows on the disk"] = retention.trouble
    return found
