"""Compares the rows that arrived with those of one run of the whole plan in one place.

Law: a row is compared unless rows of a doubtful node may be in it. A node is doubtful for a query if rows of it were
evicted, late, or lost with its process: which of them came is not known from outside, so that a result in which one of
them may be is left out. All other results must be equal, however much went wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.control.asks.requests import AccountLine
from rove.data.fragment.local import Arrival, LocalPipeline
from rove.data.log.segments.damage import Damaged, EntriesGone
from rove.data.log.segments.disk_work.reader import Reader
from rove.model.batch import Batch, HeaderKind, named
from rove.model.clock import MICROS_MIN
from rove.model.disk_folders import AsideFolder, OutputFolder
from rove.model.errors import RoveError
from rove.model.ids import SOURCE, NodeId, Origin, QueryId, read_origin
from rove.plan.operators import (
    Aggregate,
    CountWindow,
    Operator,
    Received,
    Scan,
    Source,
    Watermark,
    walk,
)
from rove.plan.rules.rewrite import with_inputs
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.stages import Stages, ordered, stateful
from rove.sim.checkers import BrokenLaw
from rove.sim.queries import START_US
from rove.sim.world import World

NEVER_LATE_US = 10 * 365 * 86_400 * 1_000_000
DOUBTFUL = "every result may have rows of doubtful nodes in it"
Made: TypeAlias = dict[str, dict[Origin, list[pa.RecordBatch]]]  # by stream and origin, the batches of sources


@dataclass(frozen=True, slots=True)
class Compared:
    """How many rows of a query arrived and were compared; if none were, why."""

    rows: int
    why: str = ""


def check_rows(world: World, query: QueryId) -> Compared:
    """Check that the rows that arrived equal those of one run in one place."""
    machine = world.coordinator.machine
    if machine is None:
        raise BrokenLaw("the coordinator is down after healing")
    deployed = machine.queries[query]
    if query in world.stopped:
        return Compared(0, "it was stopped")
    if deployed.deployment is None:
        if any(query in source.fed and source.made for node in world.nodes.values() for source in node.sources):
            raise BrokenLaw(f"`{query}` was never placed: {deployed.waits_for}")
        return Compared(0, "no source has its streams")
    lower, upper = machine.deployments.parts(deployed)
    (_, last), *_ = deployed.stages.outputs
    plan = merge_aggregates(deployed.stages.operators[last])
    arrived = {name: delivered(world, query, name) for name, _ in lower.outputs}
    if query not in world.hurt:
        if query not in world.forgot:
            for name, found in arrived.items():
                check_names(world, query, name, found)
        return _check(world, query, plan, lower, upper, arrived)
    try:
        return _check(world, query, plan, lower, upper, arrived)
    except RoveError as broken:
        if not named_as_lost(world, query):
            raise BrokenLaw(f"a disk lost something, and it is not named: {broken}") from broken
        return Compared(0, "a disk lost some of its rows, which are named")


def named_as_lost(world: World, query: QueryId) -> bool:
    """Whether users are told that rows of a query are gone: by its account, its troubles, or whoever reads its log."""
    machine = world.coordinator.machine
    if machine is None:
        return False
    told = any(line.missing or line.lost for line in _accounts(world, query))
    troubles = (
        line.troubles for line in machine.snapshot(world.now, START_US + world.now).queries if line.query == query
    )
    return told or any(troubles) or query in world.unreadable


def _check(
    world: World,
    query: QueryId,
    plan: Operator,
    lower: Stages,
    upper: Operator | None,
    arrived: dict[str, dict[Origin, list[Batch]]],
) -> Compared:
    if upper is None:
        batches = [b for found in arrived.values() for each in found.values() for b in each]
    else:
        batches = _finish(upper, _without_gaps(world, query, arrived))
    known = query not in world.thinned and not any(map(ordered, walk(plan)))  # what an eviction costs, by its name
    doubtful = doubtful_nodes(world, query, plan, lower, known)
    if doubtful is None:
        return Compared(0, "rows of an operator that merges all nodes were evicted, or its state is gone")
    return _compare(query, plan, made_for(world, query, known), doubtful, batches)


def _compare(query: QueryId, plan: Operator, made: Made, doubtful: set[str], arrived: list[Batch]) -> Compared:
    """Compare results in which no row of a doubtful node may be. Of operators that give more rows for more input, the
    rows that arrived lie between those without and those with the doubtful nodes."""
    sure = {stream: {o: b for o, b in found.items() if o.node not in doubtful} for stream, found in made.items()}
    actual = table_of(plan, arrived)
    if sum(map(len, sure.values())) == sum(map(len, made.values())):
        return _equal(query, table_of(plan, run(plan, made)), actual, "it has no result")
    top = next((op for op in walk(plan) if stateful(op)), None)
    if isinstance(top, Aggregate | Scan | CountWindow):
        unsure = {s: {o: b for o, b in found.items() if o.node in doubtful} for s, found in made.items()}
        touched = _touched(top, unsure)
        return _equal(query, _without(table_of(plan, run(plan, made)), touched), _without(actual, touched), DOUBTFUL)
    least, most = table_of(plan, run(plan, sure)), table_of(plan, run(never_late(plan), made))
    _refuse(query, beyond(least, actual), beyond(actual, most))
    return Compared(least.num_rows, "" if least.num_rows else DOUBTFUL if most.num_rows else "it has no result")


def _equal(query: QueryId, expected: pa.Table, actual: pa.Table, nothing: str) -> Compared:
    _refuse(query, beyond(expected, actual), beyond(actual, expected))
    return Compared(actual.num_rows, "" if actual.num_rows else nothing)


def _refuse(query: QueryId, missing: pa.Table, extra: pa.Table) -> None:
    if missing.num_rows or extra.num_rows:
        some = [", ".join(map(repr, each.slice(0, 2).to_pylist())) for each in (missing, extra)]
        raise BrokenLaw(f"`{query}`: {missing.num_rows} rows missing {some[0]}, {extra.num_rows} extra {some[1]}")


def _touched(top: Aggregate | Scan | CountWindow, unsure: Made) -> pa.Table:
    """The windows and keys of results that may have rows of doubtful nodes in them."""
    if isinstance(top, Aggregate):
        plan: Operator = top
        names: tuple[str, ...] = (top.window_name, *(name for name, _ in top.keys))
    else:
        plan, names = top.input, top.keys
    found = pa.Table.from_batches((b.data for b in run(never_late(plan), unsure) if b.data is not None), plan.schema)
    return found.select(names).flatten()


def _without(results: pa.Table, touched: pa.Table) -> pa.Table:
    """The results that are of other windows and keys."""
    names = touched.column_names
    known = {repr(row) for row in touched.group_by(names).aggregate([]).to_pylist()}
    keep = [repr(row) not in known for row in results.select(names).to_pylist()]
    return results.filter(pa.array(keep, pa.bool_()))


def never_late(plan: Operator) -> Operator:
    """The same plan, in which no row is late. Whether a row is late may depend on rows that did not come."""
    rebuilt = with_inputs(plan, tuple(never_late(each) for each in plan.inputs))
    return Watermark(rebuilt.input, rebuilt.column, NEVER_LATE_US) if isinstance(rebuilt, Watermark) else rebuilt


# What arrived


def delivered(world: World, query: QueryId, output: str) -> dict[Origin, list[Batch]]:
    """The batches of an output in the log, by origin, in order, each once."""
    for node in world.nodes.values():
        folder = str(OutputFolder(query, output))
        if node.shelf is not None and folder in node.shelf.disks:
            return _read(world, query, Reader(node.shelf.disk(folder)), f"{node.name} {folder}")
    return {}


def _read(world: World, query: QueryId, reader: Reader, place: str) -> dict[Origin, list[Batch]]:
    found: dict[Origin, list[Batch]] = {}
    seen: set[tuple[Origin, int]] = set()
    low = MICROS_MIN
    for entry in reader.rest():
        header = entry.header
        if entry.low < low and header.kind is HeaderKind.LOW_WATERMARK:
            raise BrokenLaw(f"{place}: the low watermark falls from {low} to {entry.low}")
        low = max(low, entry.low)
        if header.kind is HeaderKind.LOW_WATERMARK or header.origin.node in world.liars:
            continue
        for seq in (header.seq, header.through):
            if (header.origin, seq) in seen and header.seq == header.through:
                raise BrokenLaw(f"{place} holds `{header.origin}` {seq} twice")
        seen |= {(header.origin, header.seq), (header.origin, header.through)}
        try:
            found.setdefault(header.origin, []).append(Batch(header, reader.read(entry)))
        except (Damaged, EntriesGone):
            reader.damage.append(Damaged("rows", file=place))
    if reader.damage:
        if query not in world.hurt:
            raise BrokenLaw(f"{place} cannot be read: {reader.damage[0]}")
        world.unreadable.add(query)
    for batches in found.values():
        batches.sort(key=lambda b: b.header.seq)
    return found


def check_names(world: World, query: QueryId, output: str, arrived: dict[Origin, list[Batch]]) -> None:
    """The numbers of each origin in an output have no gap and no overlap, and those of a source are all there. What
    ended with its process may have gaps: its last batches are nowhere."""
    ended = _ended(world)
    for origin, batches in arrived.items():
        for before, after in pairwise(each.header for each in batches):
            gap = after.seq > before.through + 1 and not _may_have_gaps(world, origin)
            if gap or after.seq <= before.through:
                raise BrokenLaw(
                    f"{output} of `{query}` has `{origin}` {before.seq} to {before.through}, then {after.seq}"
                )
    for source in (source for node in world.nodes.values() for source in node.sources if query in source.fed):
        found = [batch.header for origin, each in arrived.items() if origin.unsided == source.origin for batch in each]
        if found and source.origin.node not in ended:
            first, last = min(h.seq for h in found), max(h.through for h in found)
            if first > source.fed[query] or last < len(source.made) - 1:
                made = f"{source.fed[query]} to {len(source.made) - 1}"
                raise BrokenLaw(f"`{source.origin}` made {made} for `{query}`; {output} has {first} to {last}")


def _ended(world: World) -> set[str]:
    """The nodes of which a source ended with its process."""
    return {node.name for node in world.nodes.values() if any(source.dead for source in node.sources)} | world.twins


def _may_have_gaps(world: World, origin: Origin) -> bool:
    """Whether batches of an origin may be nowhere: it ended with its process, which had not passed all of them on."""
    return origin.node in _ended(world) or any(origin == maker for _, maker, _ in world.unsaved)


def _without_gaps(
    world: World, query: QueryId, arrived: dict[str, dict[Origin, list[Batch]]]
) -> dict[str, dict[Origin, list[Batch]]]:
    """The same batches, numbered anew for origins that may have gaps: no operator waits for batches that were lost
    with a process or a disk. If these had rows, the rows are missing in the results."""
    return {
        output: {
            origin: [Batch(replace(b.header, seq=n, through=n), b.data) if gaps else b for n, b in enumerate(batches)]
            for origin, batches in found.items()
            for gaps in (query in world.hurt or _may_have_gaps(world, origin),)
        }
        for output, found in arrived.items()
    }


# What should arrive


def doubtful_nodes(world: World, query: QueryId, plan: Operator, lower: Stages, known: bool) -> set[str] | None:
    """The nodes whose rows may be in results or not: rows of them were late, or lost with their process, or evicted,
    unless it is `known` what that costs. None if an operator of all nodes lost rows."""
    sources = [source for node in world.nodes.values() for source in node.sources if query in source.fed]
    found = {source.origin.node for source in sources if source.dead} | world.twins
    # Rows that were evicted may be made again after a restart, and arrive.
    found |= {s.origin.node for s in sources if s.died and any(e[:2] == (query, s.origin) for e in world.evicted)}
    if not known:
        found |= {origin.node for name, origin, _ in world.evicted if name == query}
    found |= {_maker(world, origin) for origin in late_origins(world, query, plan, lower)}
    if query in world.forgot:
        windowed = all(isinstance(op, Aggregate) for op in lower.operators if stateful(op))
        lost = named_nodes(world, query)
        # A node that has forgotten the watermark of an origin lets in rows that are late for it.
        found |= {origin.node for origin, _ in late_for_themselves(world, query, plan)}
        return None if lost is None or not windowed or "" in found else found | lost
    return None if "" in found else found


def _maker(world: World, origin: Origin) -> str:
    """The node with the source of a batch; empty if an operator above several sources made it."""
    node = world.nodes.get(NodeId(origin.node))
    return origin.node if node is not None and node.settings.kind == "device" else ""


def named_nodes(world: World, query: QueryId) -> set[str] | None:
    """The nodes with sources of which rows are named as missing or lost. None if rows of operators are."""
    found: set[str] = set()
    for line in _accounts(world, query):
        if line.missing or line.lost:
            origin = read_origin(line.origin)
            if origin.stage != SOURCE:
                return None
            found.add(origin.node)
    return found


def _accounts(world: World, query: QueryId) -> list[AccountLine]:
    machine = world.coordinator.machine
    lines = () if machine is None else machine.snapshot(world.now, START_US + world.now).accounts
    return [line for line in lines if line.query == query]


def _is_over(world: World, origin: Origin) -> bool:
    """Whether an origin has ended with its process: a source, or an operator on a device that was not on a disk."""
    node = world.nodes.get(NodeId(origin.node))
    if origin.stage == SOURCE or node is None or node.shelf is not None:
        return origin in world.dead
    return 0 < origin.start < node.start_number and any(source.dead for source in node.sources)


def late_origins(world: World, query: QueryId, plan: Operator, lower: Stages) -> set[Origin]:
    """The origins with rows in the late tables. A device joined after the windows of its rows had closed, or was away
    for longer than its query waits. Rows of other devices must not be late there, unless they are late for the
    watermark of their own origin, and a node without a disk had forgotten that watermark; or they were led to an
    operator on another node, because that on theirs has died. Results of an operator above
    several devices may hold rows of one that joined."""
    stages = [n for n, op in enumerate(lower.operators) if stateful(op)]
    folders = {str(AsideFolder(query, str(n), folded=folded)) for n in stages for folded in (False, True)}
    folders |= {str(AsideFolder(query, name)) for name, _ in lower.outputs}
    shelves = [node.shelf for node in world.nodes.values() if node.shelf is not None]
    entries = [
        entry.header
        for shelf in shelves
        for folder in sorted(folders & shelf.disks.keys())
        for entry in Reader(shelf.disk(folder)).entries()
    ]
    late = {header.origin.unsided for header in entries}
    known = {origin for origin in late & world.first[query] if not _is_over(world, origin)}
    if known:
        own = late_for_themselves(world, query, plan)
        known &= {h.origin.unsided for h in entries if max(h.born, h.rows) > own.get((h.origin.unsided, h.seq), 0)}
    if _joined(world, query):
        known = {origin for origin in known if _maker(world, origin)}
    may_be_late = query in world.impatient or query in world.replaced  # windows may be closed on the other node
    if not may_be_late and (wrong := sorted(o for o in known if o.node not in world.twins)):
        raise BrokenLaw(f"`{query}`: rows of {wrong[:3]} were in time and became late on the way")
    return late


def late_for_themselves(world: World, query: QueryId, plan: Operator) -> dict[tuple[Origin, int], int]:
    """How many rows of which batches are late in one place, where each origin gives all its rows without a pause."""
    sources = [source for node in world.nodes.values() for source in node.sources if query in source.fed]
    begins = {_of(source.stream, source.origin): (source.origin, source.fed[query]) for source in sources}
    found: dict[tuple[Origin, int], int] = {}
    for each in _arrivals(plan, _data(plan, made_for(world, query, known=False))):
        if each.late:
            origin, first = begins[each.batch.header.origin.unsided]
            name = (origin, first + each.batch.header.seq)
            found[name] = found.get(name, 0) + each.batch.rows
    return found


def _joined(world: World, query: QueryId) -> bool:
    """Whether a source came to a query after it had begun."""
    sources = [source for node in world.nodes.values() for source in node.sources if query in source.fed]
    return any(source.origin not in world.first[query] for source in sources)


def made_for(world: World, query: QueryId, known: bool) -> Made:
    """The rows that sources made since the query began; without evicted ones, if it is `known` what that costs. Rows
    evicted by a device that died may have arrived before its next start found them again. A source that reads a file
    makes them again after the start."""
    found: Made = {}
    for node in world.nodes.values():
        for source in (source for source in node.sources if query in source.fed):
            first = source.fed[query]
            found.setdefault(source.stream, {})[source.origin] = [
                made.slice(0, 0) if known and not source.died and (query, source.origin, seq) in world.evicted else made
                for seq, made in enumerate(source.made[first:], first)
            ]
    return found


def run(plan: Operator, made: Made) -> list[Batch]:
    """The whole plan in one place."""
    return _finish(plan, _data(plan, made))


def _data(plan: Operator, made: Made) -> dict[str, dict[Origin, list[Batch]]]:
    """The batches of the streams that a plan reads, numbered from 0 by origin."""
    streams = sorted({s.stream for s in walk(plan) if isinstance(s, Source | Received)})
    return {s: {o: _named(o, found) for o, found in made.get(s, {}).items()} for s in streams}


def _named(origin: Origin, made: list[pa.RecordBatch]) -> list[Batch]:
    return [named(origin, n, batch) for n, batch in enumerate(made)]


def _finish(plan: Operator, data: dict[str, dict[Origin, list[Batch]]]) -> list[Batch]:
    return [a.batch for a in _arrivals(plan, data) if not a.late]


def _arrivals(plan: Operator, data: dict[str, dict[Origin, list[Batch]]]) -> list[Arrival]:
    # Several outputs of a cut may have the same origins; here each output is a stream with origins of its own.
    pipeline = LocalPipeline({"out": plan}, {s: [_of(s, origin) for origin in found] for s, found in data.items()})
    arrivals: list[Arrival] = []
    for stream, found in data.items():
        for batches in found.values():
            for header, rows in ((b.header, b.data) for b in batches):
                renamed = replace(header, origin=_of(stream, header.origin))
                arrivals += pipeline.process(stream, Batch(renamed, rows))
    arrivals += pipeline.finish()
    for each in arrivals:
        if each.fault is not None:
            raise each.fault
    return arrivals


def _of(output: str, origin: Origin) -> Origin:
    return replace(origin, name=f"{output}.{origin.name}")


def table_of(plan: Operator, batches: Iterable[Batch]) -> pa.Table:
    """The rows of all batches, with a column for each field of a window."""
    return pa.Table.from_batches((b.data for b in batches if b.data is not None), plan.schema).flatten()


def beyond(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that are there more often than among the others, each once."""
    names, weight = rows.column_names, "times"
    both = pa.concat_tables(
        table.append_column(weight, pa.array([sign] * table.num_rows, pa.int64()))
        for table, sign in ((rows, 1), (others, -1))
    )
    found = both.group_by(names).aggregate([(weight, "sum")])
    return found.filter(pc.greater(found[f"{weight}_sum"], 0)).select(names)
