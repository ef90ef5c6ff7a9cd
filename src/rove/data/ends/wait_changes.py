"""Changes of the origins that stateful operators wait for, and of their names, written among the batches of their input
log.

Law: the output of operators follows from the batches and these changes in their order. So a second run waits for the
same origins at the same places, and gives the same batches the same names. A change is a header without rows: its kind
says what changes for its origin, in the input from its stage.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rove.data.fragment.emitted import Emitted
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.segments.ledger import Lane
from rove.model.batch import Header, HeaderKind
from rove.model.errors import StateError
from rove.model.ids import Origin, Stage
from rove.model.messages import Begin, Fragment


def changes_of(running: RunningFragment, kept: Frontier[Lane]) -> Iterator[Header]:
    """The changes that a fragment needs, after all the changes that are written. O(origins)."""
    lanes = list(kept.table())
    fragment = running.fragment
    for sender, origin in sorted(fragment.sends.items()):
        # Operators send their state before other origins are waited for, and begin with one before that.
        if not kept.next(Lane(HeaderKind.SEND_STATE, sender, origin)):
            yield _change(HeaderKind.SEND_STATE, sender, origin)
    yield from _shares(fragment, kept)
    named = {lane.stage for lane in lanes if lane.kind is HeaderKind.NAME}
    for maker, origin in sorted(fragment.makes.items()):
        # An operator that comes with its state may get another name later, before it goes on without the rest of it.
        if maker in (*fragment.awaits, *named) and not kept.next(Lane(HeaderKind.NAME, maker, origin)):
            yield _change(HeaderKind.NAME, maker, origin)
    # A state that was given up before this node was told to wait for it: its operator has taken batches elsewhere.
    unknown = [pair for pair in sorted(fragment.lost.items()) if not kept.next(Lane(HeaderKind.AWAIT_STATE, *pair))]
    for taker, origin in (*sorted(fragment.awaits.items()), *unknown):
        if not kept.next(Lane(HeaderKind.AWAIT_STATE, taker, origin)):
            yield _change(HeaderKind.AWAIT_STATE, taker, origin)
    for lane in lanes:
        given_up = lane.kind is HeaderKind.AWAIT_STATE and fragment.awaits.get(Stage(lane.stage)) != lane.origin
        if given_up and not kept.next(Lane(HeaderKind.DISMISS, lane.stage, lane.origin)):
            yield _change(HeaderKind.DISMISS, lane.stage, lane.origin)
    wanted = _pairs(fragment.waits)
    before = {(lane.stage, lane.origin) for lane in lanes if lane.kind is HeaderKind.EXPECT}
    for stage, origin in sorted(wanted | before):
        # Both kinds alternate, and each counts how often it was written.
        expected = kept.next(Lane(HeaderKind.EXPECT, stage, origin))
        dismissed = kept.next(Lane(HeaderKind.DISMISS, stage, origin))
        if (expected > dismissed) != ((stage, origin) in wanted):
            yield (
                _change(HeaderKind.EXPECT, stage, origin, expected)
                if (stage, origin) in wanted
                else _change(HeaderKind.DISMISS, stage, origin, dismissed)
            )
    for stage, origin in sorted(_pairs(running.fragment.knows)):
        met = (Lane(kind, stage, origin) for kind in (HeaderKind.EXPECT, HeaderKind.KNOW))
        if not any(map(kept.next, met)):
            yield _change(HeaderKind.KNOW, stage, origin)
    for origin, begin in sorted(fragment.begins.items()):
        if not kept.next(Lane(HeaderKind.BEGIN, 0, origin)):
            yield replace(_change(HeaderKind.BEGIN, 0, origin), epoch=begin.next + 1, watermark=begin.mark)
    for taker, origin in unknown:  # origins that are known by now may begin in the middle of their numbers
        yield _change(HeaderKind.DISMISS, taker, origin)
    for origin in sorted(running.unheard(lane.origin for lane in lanes if lane.kind is not HeaderKind.GONE)):
        if not kept.next(Lane(HeaderKind.GONE, 0, origin)):
            yield _change(HeaderKind.GONE, 0, origin)


def _shares(fragment: Fragment, kept: Frontier[Lane]) -> Iterator[Header]:
    """Origins that operators let go, and origins that they take batch by batch. O(these origins)."""
    for kind, book in ((HeaderKind.RELEASE, fragment.releases), (HeaderKind.LIFT, fragment.lifts)):
        for stage, origin in sorted(_pairs(book)):
            if not kept.next(Lane(kind, stage, origin)):
                yield _change(kind, stage, origin)


def apply_change(running: RunningFragment, header: Header) -> list[Emitted]:
    """Apply a change. Returns the output that it causes."""
    pipeline, stage, origin = running.pipeline, Stage(header.stage), header.origin
    match header.kind:
        case HeaderKind.EXPECT:
            return pipeline.expect({stage: [origin]})
        case HeaderKind.DISMISS:
            return [*pipeline.moves.give_up(stage, origin), *pipeline.leave(stage, [origin])]
        case HeaderKind.AWAIT_STATE:
            pipeline.moves.wait(stage, origin)
            return []
        case HeaderKind.NAME:
            return pipeline.moves.rename(stage, origin)
        case HeaderKind.RELEASE:
            return pipeline.shares.release(stage, origin)
        case HeaderKind.LIFT:
            pipeline.shares.lift(stage, origin)
            return []
        case HeaderKind.BEGIN:
            return pipeline.shares.begin(origin, Begin(header.epoch - 1, header.watermark))
        case HeaderKind.KNOW:
            pipeline.know({stage: [origin]})
            return []
        case HeaderKind.GONE:
            return pipeline.gone({origin})
    raise StateError(f"`{origin}` {header.seq} is a {header.kind.name}, not a change of the origins to wait for")


def _pairs(book: dict[Stage, tuple[Origin, ...]]) -> set[tuple[int, Origin]]:
    return {(stage, origin) for stage, origins in book.items() for origin in origins}


def _change(kind: HeaderKind, stage: int, origin: Origin, times: int = 0) -> Header:
    return Header(kind=kind, origin=origin, seq=times, through=times, stage=stage)
