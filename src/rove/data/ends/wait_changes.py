"""Words among the batches that operators with memory are fed from: whom they wait for, from here on.

Law: what operators compute follows from the batches and these words in their order, so a second run waits for the same
origins at the same moments, and computes the same. A word is the header of an empty batch whose origin begins with it.

    +3 trains/tram~7    wait for it, in what comes from stage 3         -3 trains/tram~7    wait no longer
    ?3 trains/tram~7    let it in, and wait for nothing of it           x trains/tram~7     it will not speak again
"""

from __future__ import annotations

from collections.abc import Iterator

from rove.data.fragment.frontier import Frontier
from rove.data.fragment.pipeline import Emitted
from rove.data.fragment.running_fragment import RunningFragment
from rove.model.batch import Header
from rove.model.ids import Stage

EXPECT, DISMISS, KNOW, GONE = "+", "-", "?", "x"


def is_word(origin: str) -> bool:
    """Whether an entry is a word; batches begin with the number of their stage."""
    return origin.startswith((EXPECT, DISMISS, KNOW, GONE))


def to_say(running: RunningFragment, said: Frontier) -> Iterator[Header]:
    """What has to be said for a fragment, after all that was said before. O(origins)."""
    wanted = {f"{stage} {origin}" for stage, origins in running.fragment.waits.items() for origin in origins}
    before = {name[1:] for name in said.table() if name.startswith(EXPECT)}
    for name in sorted(wanted | before):
        # Both words take turns, and each counts how often it was said.
        times, waits = said.next(f"{EXPECT}{name}"), said.next(f"{EXPECT}{name}") > said.next(f"{DISMISS}{name}")
        if waits != (name in wanted):
            yield _word(EXPECT, name, times) if name in wanted else _word(DISMISS, name, times - 1)
    known = {f"{stage} {origin}" for stage, origins in running.fragment.knows.items() for origin in origins}
    for name in sorted(known):
        if not said.next(f"{EXPECT}{name}") and not said.next(f"{KNOW}{name}"):
            yield _word(KNOW, name)
    for origin in sorted(running.unheard(name for name in said.table() if not name.startswith(GONE))):
        if not said.next(f"{GONE} {origin}"):
            yield _word(GONE, f" {origin}")


def heeded(running: RunningFragment, header: Header) -> list[Emitted]:
    """Do what a word says; what comes out because of it."""
    pipeline, stage, origin = running.pipeline, Stage(header.stage), header.origin.partition(" ")[2]
    match header.origin[0]:
        case "+":
            return pipeline.expect({stage: [origin]})
        case "-":
            return pipeline.leave(stage, [origin])
        case "?":
            pipeline.know({stage: [origin]})
            return []
        case _:
            return pipeline.gone({origin})


def _word(mark: str, name: str, times: int = 0) -> Header:
    stage = name.partition(" ")[0]
    return Header(origin=f"{mark}{name}", seq=times, through=times, stage=int(stage or 0))
