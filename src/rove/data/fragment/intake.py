"""Lets each origin's batches into a stateful operator once and in order.

Law: a batch is let in once, after all earlier batches of its origin. A batch that was let in before is a duplicate and
is counted. A batch that arrives too early is held until the gap closes, or its origin is gone for good. So a watermark
counts only when every batch before it is in, and results do not depend on the route of a batch. A batch that needs a
`Confirmation` is held until its sender has confirmed that it heard the ack.

Gaps of an origin that is gone hold up no later batch. A node may still have batches of these gaps, and the origin may
turn out not to be gone. So they are let in whenever they arrive, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, KeysView

from msgspec.structs import replace

from rove.data.link.unheard import Confirmation
from rove.model.batch import Batch
from rove.model.errors import UnknownOrigin, must
from rove.model.ids import Origin
from rove.model.spans import Spans, both, check_spans, minus, union


class Intake:
    """The next expected number of each origin. A batch in order costs O(1); an early one costs a sort of those held.

    On a node without a disk (`forgets`) an origin may be in the middle of its numbers when the intake begins. Then the
    first batch that comes is the beginning, because a route keeps the order.
    """

    def __init__(self, origins: Iterable[Origin], forgets: bool = False) -> None:
        self._next = dict.fromkeys(origins, 0)
        self._begin: dict[Origin, int] = {}  # where origins began, if the intake `forgets`
        self._forgets = forgets
        self._anywhere: set[Origin] = set()  # origins that may begin anywhere, because another node has forgotten them
        self.onward: set[Origin] = set()  # origins that go on anywhere: an earlier start has taken the next batches
        self._held: dict[Origin, dict[int, Batch]] = {}
        # Of those, batches whose senders have not confirmed that they heard the ack.
        self._unconfirmed: dict[Origin, dict[int, Confirmation]] = {}
        self.forgotten: Collection[Origin] = ()  # makers whose earlier batches are with a node that has died
        self._gone: set[Origin] = set()
        self._skipped: dict[Origin, Spans] = {}  # the gaps of those, below what is next
        self.closed = False  # whether batches are held, whatever their number, until it is known what was taken
        self.shut: set[Origin] = set()  # the same for single origins
        self.released: set[Origin] = set()  # origins that are taken elsewhere from their next number on
        self.duplicates = 0
        # Batches that an earlier start of this node has computed to the end, by origin and side.
        self.counted: dict[tuple[Origin, tuple[int, ...]], Spans] = {}
        self.elsewhere: dict[tuple[Origin, tuple[int, ...]], Spans] = {}  # the same for operators on other nodes

    def once(self, origin: Origin, batch: Batch) -> Batch:
        """A batch that is let in; without its rows, if an earlier start has computed it to the end, or if it is
        counted elsewhere."""
        header, key = batch.header, (origin.unsided, origin.side)
        spans = self.counted.get(key) if self.counted else None
        if spans is None or minus((header.seq, header.through + 1), spans):
            other = self.elsewhere.get(key) if self.elsewhere else None
            if other is None or minus((header.seq, header.through + 1), other):
                return batch
        self.duplicates += 1
        return Batch(replace(header, rows=0, born=0, evicted=0, lost=0, faulted=0, belated=0, packed=0), None)

    def offer(self, origin: Origin, batch: Batch, confirmation: Confirmation | None = None) -> list[Batch]:
        """The batches that may now go in, in order: this one and those that were held for it; none if it must wait."""
        header = batch.header
        expected = self._next.get(origin)
        if expected is None:
            raise UnknownOrigin(f"no operator here waits for origin `{origin}`; deploy its query with this origin")
        if self.closed or origin in self.shut:
            self._keep(origin, batch, confirmation)
            return []
        if origin in self.onward and header.seq >= expected:
            return [*self._go_on_at(origin, header.seq), *self.offer(origin, batch, confirmation)]
        begins = expected == 0 and origin not in self._begin and self._may_begin(origin)
        if begins:
            self._begin[origin] = header.seq
        confirmation = None if origin in self._gone else confirmation
        if begins or (origin in self._gone and header.seq > expected):
            if not begins:
                self._skip(origin, (expected, header.seq))
            expected = header.seq
        if header.seq == expected and origin not in self._held and confirmation is None:
            self._next[origin] = header.through + 1
            return [batch]
        fills = self._fills(origin, batch)
        if header.through < expected:
            self.duplicates += not fills
            return [batch] if fills else []
        return self._sorted_in(origin, batch, expected, confirmation)

    def offer_early(self, origin: Origin, batch: Batch) -> list[Batch]:
        """The same for a batch that came too early on the node where the operator was."""
        if origin not in self.onward or self.closed:
            return self.offer(origin, batch)
        if batch.header.through >= self._next[origin]:
            self._keep(origin, batch, None)
        return []

    def go_on_anywhere(self) -> None:
        """An earlier start of this node without a disk may have taken the next batches of these origins. Each goes on
        with the first batch that comes, because a route keeps the order. The gap before it is skipped."""
        self.onward = {origin for origin, following in self._next.items() if following}

    def _go_on_at(self, origin: Origin, seq: int) -> list[Batch]:
        """An origin goes on with this number. Returns the earlier batches that were held."""
        self.onward.discard(origin)
        early, following = self._held.get(origin, {}), self._next[origin]
        ready = [early.pop(number) for number in sorted(early) if number < seq]
        for header in (batch.header for batch in ready):
            if following < header.seq:
                self._skip(origin, (following, header.seq))
            following = max(following, header.through + 1)
        if following < seq:
            self._skip(origin, (following, seq))
        self._next[origin] = max(following, seq)
        if not early:
            self._held.pop(origin, None)
        return ready

    def go_on(self, origin: Origin, anyway: bool = False) -> list[Batch]:
        """The batches that may go in since acks were confirmed, or `anyway`. Batches that their senders have kept are
        dropped, because they come again."""
        unconfirmed = self._unconfirmed.get(origin)
        if unconfirmed is None:
            return []
        for seq, confirmation in list(unconfirmed.items()):
            if anyway or confirmation.confirmed:
                del unconfirmed[seq]
            elif confirmation.kept:
                del unconfirmed[seq], self._held[origin][seq]
        if self.closed or origin in self.shut:
            return []
        return self._ready(origin, self._next[origin])

    def release(self, origin: Origin) -> tuple[int | None, list[Batch]]:
        """Batches of an origin that are not in yet are taken elsewhere. Returns the next number, None if the origin may
        begin anywhere; and the batches that were held."""
        following = self._next.setdefault(origin, 0)
        anywhere = following == 0 and origin not in self._begin and self._may_begin(origin)
        self.released.add(origin)
        return None if anywhere else following, self.leave(origin)

    def shut_out(self, origin: Origin) -> None:
        """Hold batches of an origin until it is known where it begins."""
        self._next.setdefault(origin, 0)
        self.shut.add(origin)

    def begin(self, origin: Origin, number: int | None) -> list[Batch]:
        """An origin begins at a number; with None at the first batch that is held, or that comes. Batches from that
        number on may have been taken by an earlier start of a node without a disk, or may be with a node that has died.
        Returns the held batches that may go in now."""
        self.shut.discard(origin)
        if number is None:
            self._anywhere.add(origin)
            number = min(self._held.get(origin, ()), default=0)
        if number:
            self._next[origin] = self._begin[origin] = number
            self.onward |= {origin} if self._forgets or origin.unsided in self.forgotten else set()
        if origin in self.onward and (first := min(self._held.get(origin, ()), default=0)) > number:
            self._go_on_at(origin, first)
            number = first
        held = self.leave(origin) if origin in self._gone else []
        ready = self._ready(origin, number) if origin in self._held else []
        return [*ready, *(each for batch in held for each in self.offer(origin, batch))]

    def leave(self, origin: Origin) -> list[Batch]:
        """An origin is gone for good. Gaps in its numbers will not close, so batches held for them go in."""
        if origin not in self._next:
            return []
        self._gone.add(origin)
        self._unconfirmed.pop(origin, None)
        held = self._held.pop(origin, {})
        return [held[seq] for seq in sorted(held)]

    @property
    def deserted(self) -> bool:
        """Whether there were origins, and all are gone for good."""
        return bool(self._gone) and self._next.keys() <= self._gone

    def gaps(self, origin: Origin, upto: int) -> Iterator[tuple[int, int]]:
        """The numbers below `upto` that were neither taken nor are held, as first and last ones. There are none if the
        beginning of the origin is not known. O(held batches)."""
        following = self._next.get(origin, upto)
        if self.closed or origin in self.shut or (following == 0 and self._may_begin(origin)):
            return
        for seq, batch in sorted(self._held.get(origin, {}).items()):
            if following < min(seq, upto):
                yield following, min(seq, upto) - 1
            following = max(following, batch.header.through + 1)
        if following < upto:
            yield following, upto - 1

    def _may_begin(self, origin: Origin) -> bool:
        """Whether an origin of which nothing was taken begins with the first batch that comes."""
        return self._forgets or origin in self._anywhere or origin.unsided in self.forgotten

    def expects(self, origin: Origin) -> bool:
        """Whether the origin is waited for, or has sent batches, and was not released."""
        return origin in self._next and origin not in self.released

    def known(self) -> KeysView[Origin]:
        """The origins that are waited for, or have sent batches. O(1)."""
        return self._next.keys()

    def took(self, origin: Origin, seq: int) -> bool:
        return seq < self._next.get(origin, 0) and not both((seq, seq + 1), self._skipped.get(origin, ()))

    def expect(self, origins: Iterable[Origin]) -> None:
        """Wait for these origins too, from their first batch on."""
        for origin in origins:
            self._next.setdefault(origin, 0)

    def held(self) -> Iterable[Batch]:
        """The batches that came too early and wait."""
        return (batch for early in self._held.values() for batch in early.values())

    def early(self) -> Iterator[tuple[Origin, Batch]]:
        """The batches that came too early, with the names of their origins here."""
        return ((origin, batch) for origin, early in self._held.items() for _, batch in sorted(early.items()))

    def table(self) -> dict[Origin, int]:
        """The next number of each origin. Held batches count as not taken."""
        return dict(sorted(self._next.items()))

    def spans(self) -> Iterator[tuple[Origin, Spans]]:
        """The numbers that were taken of each origin."""
        for origin, following in self._next.items():
            if following > (begin := self._begin.get(origin, 0)):
                yield origin, minus((begin, following), self._skipped.get(origin, ()))

    def everything(self) -> Iterator[tuple[Origin, int, int, bool, bool, Spans]]:
        """What was taken of each origin: its first number, the next one, whether it is gone for good, whether it may
        begin anywhere, and the gaps that were skipped."""
        for origin, following in sorted(self._next.items()):
            anywhere = following == 0 and self._may_begin(origin)
            skipped = self._skipped.get(origin, ())
            yield origin, self._begin.get(origin, 0), following, origin in self._gone, anywhere, skipped

    def take_over(self, taken: Iterable[tuple[Origin, int, int, bool, bool, Spans]]) -> None:
        """Go on after what another node has taken, as `everything` returned it there. Nothing was let in before. Bounds
        that are no set raise a ValueError, because they may come from another node."""
        for origin, begin, following, gone, anywhere, skipped in taken:
            if not check_spans(skipped) or (skipped and skipped[-1] > following):
                raise ValueError(f"{skipped} are not bounds of gaps below {following}")
            self._next[origin] = following
            if begin:
                self._begin[origin] = begin
            if gone:
                self._gone.add(origin)
            if anywhere:
                self._anywhere.add(origin)
            if skipped:
                self._skip(origin, skipped)

    @property
    def forgets(self) -> bool:
        return self._forgets

    def begin_anywhere(self) -> None:
        """What another node had taken is lost. The origins that are known now begin with the first batch that comes."""
        self._anywhere |= {origin for origin, following in self._next.items() if not following}

    def hold(self, origin: Origin, batch: Batch) -> None:
        """Hold a batch that came too early, as another intake did."""
        self._held.setdefault(origin, {})[batch.header.seq] = batch

    def validate(self) -> None:
        """Raise if a held batch did not come too early. O(batches held)."""
        for origin, early in self._held.items():
            following = self._next.get(origin)
            must(following is not None and len(early) > 0, "batches are held for origins that are known", origin)
            waits = self._unconfirmed.get(origin, {})
            late = [seq for seq in early if following is not None and seq <= following and seq not in waits]
            must(
                self.closed or origin in self.shut or not late,
                "what is held is beyond what is next, or is not confirmed",
                origin,
                late,
                following,
            )
        for origin, unconfirmed in self._unconfirmed.items():
            must(unconfirmed.keys() <= self._held.get(origin, {}).keys(), "what is not confirmed is held", origin)
        must(self._gone <= self._next.keys(), "an origin that is gone was known", self._gone)
        for origin, skipped in self._skipped.items():
            below = bool(skipped) and skipped[-1] <= self._next.get(origin, 0)
            must(below and check_spans(skipped), "gaps that were skipped are below what is next", origin, skipped)

    def open(self) -> list[tuple[Origin, Batch]]:
        """It is known what was taken. Returns the held batches that may go in now, with the names of their origins."""
        self.closed = False
        ready: list[tuple[Origin, Batch]] = []
        for origin in list(self._held):
            expected, first = self._next.get(origin, 0), min(self._held[origin])
            if expected == 0 and origin not in self._begin and self._may_begin(origin):
                self._begin[origin] = expected = first
            if origin in self.onward and first >= expected:
                self._go_on_at(origin, first)
                expected = self._next[origin]
            ready += [(origin, batch) for batch in self._ready(origin, expected)]
        return ready

    def _skip(self, origin: Origin, gap: Spans) -> None:
        self._skipped[origin] = union((self._skipped.get(origin, ()), gap))

    def _fills(self, origin: Origin, batch: Batch) -> bool:
        """Whether a batch is of a gap that was skipped. The gap is smaller after that. O(gaps)."""
        skipped = self._skipped.get(origin, ())
        left = minus(skipped, (batch.header.seq, batch.header.through + 1)) if skipped else ()
        if left:
            self._skipped[origin] = left
        elif skipped:
            del self._skipped[origin]
        return left != skipped

    def _sorted_in(self, origin: Origin, batch: Batch, expected: int, confirmation: Confirmation | None) -> list[Batch]:
        self._keep(origin, batch, confirmation)
        return self._ready(origin, expected)

    def _keep(self, origin: Origin, batch: Batch, confirmation: Confirmation | None) -> None:
        early, seq = self._held.setdefault(origin, {}), batch.header.seq
        known = early.get(seq)
        waited = self._unconfirmed.get(origin, {}).get(seq)
        if known is not None and known.header.through >= batch.header.through:
            self.duplicates += 1
            if confirmation is not None and waited is not None:
                confirmation.waits.append(waited)
        else:
            early[seq] = batch
            if confirmation is not None:
                confirmation.waits.append(confirmation)
                self._unconfirmed.setdefault(origin, {})[seq] = confirmation
        if confirmation is not None:
            # Routes keep the order of an origin. So no batch that took another route before this one is sent again.
            unconfirmed = self._unconfirmed.get(origin, {})
            for before in [n for n, each in unconfirmed.items() if n < seq and not each.came_with(confirmation)]:
                del unconfirmed[before]

    def _ready(self, origin: Origin, expected: int) -> list[Batch]:
        """Take out the held batches that may go in."""
        early, unconfirmed = self._held[origin], self._unconfirmed.get(origin, {})
        ready: list[Batch] = []
        for seq in sorted(early):
            if seq > expected or seq in unconfirmed:
                break
            found = early.pop(seq)
            if found.header.through < expected:
                self.duplicates += 1
                continue
            # Only headers of empty batches overlap. The numbers before are known already.
            ready.append(found)
            expected = found.header.through + 1
        self._next[origin] = expected
        if not early:
            del self._held[origin]
        if not unconfirmed:
            self._unconfirmed.pop(origin, None)
        return ready
