"""Protocols as people read them: coordinator and workers together. `--rewrite-docs` writes the transcripts anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rove.control.deployment.dead.decision import Patience
from rove.model.ids import Stage
from rove.model.messages import Sink
from rove.model.schema import parse_schema
from rove.plan import build
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import Operator, Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, merges, stateful
from rove.sim.draws.asides import on_edges
from rove.sim.queries import COLUMNS
from tests.simulation.story import Story

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
LOG = Sink(kind="log")


def plain() -> Stages:
    """Rows as they are, less those that nobody wants."""
    return _of(build.filtered(_source(), parse_expression("level >= 0"), "level >= 0"))


def counts(condition: str = "") -> Stages:
    """Rows counted by windows of ten seconds: all, or those of a condition."""
    rows = build.filtered(_source(), parse_expression(condition), condition) if condition else _source()
    timed = Watermark(rows, "ts", 1_000_000)
    return _of(build.grouped(timed, [build.item("window(ts, '10 seconds')")], [build.item("count(*) AS n")]))


def _source() -> Operator:
    return Source("readings", parse_schema(COLUMNS))


def _of(plan: Operator) -> Stages:
    return Stages.of({"out": optimize(plan)})


def join_and_leave(story: Story) -> None:
    story.comment("A gateway and an edge join. The coordinator keeps each before it answers, and tells of the peers.")
    story.coordinator()
    story.node("gateway", "gateway", durable=True)
    story.node("edge", "edge", "gateway")
    story.passes(2)
    with story.quietly():
        story.node("d1", "device", "edge", stream="readings")
        story.passes(2)
        story.submit("q", plain(), LOG)
        story.passes(4)
    story.comment("A query runs by now, on a device d1 and above it. A second device joins: it is led into the query.")
    story.node("d2", "device", "edge", stream="readings")
    story.passes(3)
    story.makes("d2")
    story.passes(1)
    story.comment("It leaves for good. Nobody waits for its rows any more; those that it has sent stay.")
    story.leaves("d2")
    story.passes(3)


def rollout(story: Story) -> None:
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("edge", "edge", "gateway")
        story.node("device", "device", "edge", stream="readings")
        story.passes(3)
    story.comment("A query is submitted. Its part at the end begins first; a node begins when all above it run theirs.")
    story.submit("q", counts(), LOG)
    story.passes(3)
    story.comment("The first rows. The device counts them in windows, and only event time goes on.")
    story.makes("device")
    story.passes(2)
    story.comment("The query is stopped: all are told at once.")
    story.stop("q")
    story.passes(2)


def move(story: Story) -> None:
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("west", "edge", "gateway")
        story.node("east", "edge", "gateway")
        story.cut("device", "east")
        story.node("device", "device", "west", "east", stream="readings")
        story.passes(2)
        story.submit("q", plain(), LOG)
        story.passes(4)
    story.comment("The device reaches west alone. Rows go there, and are acked once the gateway's disk has them.")
    story.makes("device")
    story.passes(1)
    story.comment("It drives out of reach. The next batch is sent, and nobody hears it.")
    story.cut("device", "west")
    story.makes("device")
    story.passes(4)
    story.comment("It knows by now that nobody hears it, and keeps what it makes.")
    story.makes("device")
    story.passes(1)
    story.comment(
        "It comes into reach of east, and says so. The coordinator leads the query there, and what was not acked goes "
        "that way. West leaves the query when the device has said that it sends elsewhere."
    )
    story.mend("device", "east")
    story.passes(4)
    story.counts("gateway", "q")


def crash_with_replay(story: Story) -> None:
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("edge", "edge", "gateway")
        story.node("device", "device", "edge", stream="readings")
        story.passes(2)
        story.submit("q", plain(), LOG)
        story.passes(4)
    story.comment("The gateway's disk has a batch. The edge dies before it hears of it, so the device does not either.")
    story.makes("device")
    story.passes(0.0045)
    story.kill("edge")
    story.passes(1)
    story.comment("The device makes another batch, and sends it to nobody. Then the gateway dies, and its power goes.")
    story.makes("device")
    story.passes(0.01)
    story.kill("gateway", power=True)
    story.passes(4)
    story.comment("The gateway starts again. It remembers what it ran, and its disk tells it which batches it has.")
    story.start("gateway")
    story.passes(2)
    story.comment(
        "The edge starts again, without any memory, and is told what to run. The device sends again what was not "
        "acked. The gateway has the first batch already: it acks it, and writes only the second."
    )
    story.start("edge")
    story.passes(2)
    story.counts("gateway", "q")


def with_windows_on(story: Story, *edges: str, condition: str = "") -> None:
    """Two devices without room for operators, below a chain of edges; windows are open on the lowest edge."""
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for name, above in zip(edges, ("gateway", *edges), strict=False):
            story.node(name, "edge", above)
        for name in ("d1", "d2"):
            story.node(name, "device", edges[-1], stream="readings", slots=0)
        story.passes(3)
        story.submit("q", counts(condition), LOG)
        story.passes(4)
        for name in ("d1", "d2"):
            story.makes(name)
        story.passes(2)


def drain(story: Story) -> None:
    with_windows_on(story, "mast")
    story.comment(
        "The mast runs windows of two devices, and holds rows of an open one. It is drained: the windows move to the "
        "gateway. The gateway is told first to wait for their state, then the mast to send it."
    )
    story.drain("mast")
    story.passes(0.5)
    story.comment("Rows pass the mast now. The gateway takes them: they come after the frontier.")
    story.makes("d1")
    story.passes(1)
    story.comment("Both have said that the state has moved. The mast is told to forget it, and only passes rows on.")
    story.passes(2)


def drain_with_a_crash(story: Story) -> None:
    with_windows_on(story, "hill", "mast")
    story.comment(
        "The windows move from the mast to the hill. The hill dies before it has said that their state has come, and "
        "has no disk. The mast still has the state, and sends it again, under another name."
    )
    story.drain("mast")
    story.passes(0.02)
    story.kill("hill")
    story.passes(0.5)
    story.start("hill")
    story.passes(4)


def with_windows_beside(story: Story) -> None:
    """Two devices that reach two edges beside each other; windows, wanted on an edge, are open on east."""
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for name in ("west", "east"):
            story.node(name, "edge", "gateway")
        for name in ("d1", "d2"):
            story.node(name, "device", "west", "east", stream="readings", slots=2)
        story.passes(3)
        story.submit("q", on_edges(counts()), LOG)
        story.passes(4)
        for name in ("d1", "d2"):
            story.makes(name)
        story.passes(2)


def drain_to_a_sibling(story: Story) -> None:
    with_windows_beside(story)
    story.comment(
        "East runs the partial windows of two devices. They are wanted on an edge, so no node above may run them. East "
        "is drained: they move to west, beside it. The gateway is told first to lead their state down to west, "
        "then west to wait for it, then the devices to send to west. When both devices have said that they do, no row "
        "comes to east behind its windows, and it is told to send the state."
    )
    story.drain("east")
    story.passes(0.5)
    story.comment("Rows go to west now.")
    story.makes("d1")
    story.passes(1)
    story.comment("Both edges have said that the state has moved. East leaves the query.")
    story.passes(2)


def migration_overtaken_by_a_second_move(story: Story) -> None:
    with_windows_beside(story)
    story.comment(
        "East is drained, and its windows move to west. Before their state has come, east is let back, and west is "
        "drained: the windows have to move again. West waits until it has them whole."
    )
    story.drain("east")
    story.passes(0.005)
    story.drain("east", back=True)
    story.drain("west")
    story.passes(0.9)
    story.comment("The state has arrived. Now west sends it to east, under another name.")
    story.passes(1)
    story.makes("d1")
    story.passes(1)


def share_of_one_device(story: Story) -> None:
    with_windows_beside(story)
    story.comment(
        "East runs the partial windows of two devices, and holds rows of an open window. It takes one more batch of "
        "d1, which drives out of reach of east before it hears the ack."
    )
    story.makes("d1")
    story.passes(0.0015)
    story.cut("d1", "east")
    story.passes(4)
    with story.quietly():
        story.passes(2)
    story.comment(
        "West was in reach all the time. The gateway was told first to take the rows of d1 batch by batch, but not "
        "where they begin; then d1 was told its new route, and east to let d1 go. East had taken one batch of d1, and "
        "passed the second one on, because it had not heard that d1 knew of its ack. d1 sent it again, over west. The "
        "gateway held it until east had said how far it came, and dropped the copy. Now the rows of d1 go over west."
    )
    story.makes("d1")
    story.passes(2)
    story.comment("d1 drives on, and comes back to east. This is a matter of its route alone.")
    story.cut("d1", "west")
    story.mend("d1", "east")
    story.makes("d1")
    story.passes(4)
    story.counts("gateway", "q")


def update(story: Story) -> None:
    with_windows_on(story, "mast", condition="value > 1")
    story.comment(
        "The mast runs windows of two devices, and holds rows of an open one. The query is updated: its condition "
        "changes. Every node is told its new version, those above first."
    )
    story.update("q", counts("value > 2"))
    story.passes(0.5)
    story.comment("A device makes rows. They are computed with the new condition, and go into the window that is open.")
    story.makes("d1")
    story.passes(1)


def edge_dies(story: Story) -> None:
    with story.quietly():
        story.coordinator()
        story.world.coordinator.be_patient(Patience(8_000_000, 8_000_000))
        story.node("gateway", "gateway", durable=True)
        for name in ("east", "west"):
            story.node(name, "edge", "gateway")
        story.node("device", "device", "east", "west", stream="readings")
        story.passes(3)
        partial = [n for n, op in enumerate(counts().operators) if stateful(op) and not merges(op)]
        story.submit("q", replace(counts(), hints=tuple((Stage(n), "edge") for n in partial)), LOG)
        story.passes(4)
        story.makes("device")
        story.passes(2)
    story.comment(
        "The east runs a window, and holds rows of it. It dies, and has no disk. The device makes rows meanwhile, and "
        "keeps them: the coordinator waits for the east for eight seconds."
    )
    story.kill("east")
    story.passes(4)
    story.makes("device")
    story.passes(3.4)
    story.comment(
        "It counts as dead. The window begins anew on the west, under another name, and the device sends there what "
        "was not acked. Nobody waits for what the east had acked."
    )
    story.passes(2)
    story.comment("The east starts again. It has no part in the query, and is told nothing of it.")
    story.start("east")
    story.passes(2)


SCENES = (
    join_and_leave,
    rollout,
    move,
    crash_with_replay,
    drain,
    drain_with_a_crash,
    drain_to_a_sibling,
    share_of_one_device,
    migration_overtaken_by_a_second_move,
    update,
    edge_dies,
)


@pytest.mark.parametrize("scene", SCENES)
def test_machines_say_what_their_transcript_says(
    scene: Callable[[Story], None], request: pytest.FixtureRequest
) -> None:
    story = Story()
    scene(story)
    path = FOLDER / f"{scene.__name__}.txt"
    text = "\n".join(story.lines).strip() + "\n"
    if request.config.getoption("--rewrite-docs"):
        path.write_text(text)
    assert path.read_text() == text
