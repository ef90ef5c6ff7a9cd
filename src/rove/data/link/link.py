"""A link is a session between two nodes: numbered frames, cumulative acks, byte credits, a heartbeat, resume.

Law: an offered batch is kept until the peer acks it. Frames arrive once and in order, or are requested again. A cut
only costs time. If the peer has forgotten the session, everything that was not acked is sent again under new numbers,
and the receiver drops duplicates. `backlog` decides which batch goes next.

    dialer                     listener
      Hello(heard, received) ─────►        both say which start of the other they know and how many
      ◄──────── Welcome(received, allowance)        of its frames they have; if equal, they resume, else a new session
      Data 1 … n ─────────────────►
      ◄──────── Ack(through, allowance)
      Beat(sent, acked) ──────────►        more sent than received: ◄──── Resend(after)

A receiver may have to know that an ack was heard (`unheard`). Then its Ack asks for a Beat at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from itertools import pairwise
from typing import TypeAlias

from rove.data.events import Load, Loaded
from rove.data.link.backlog import Backlog
from rove.data.link.lifecycle import LINK, LinkEvent, LinkState
from rove.data.link.loading import Loading
from rove.data.settings import BacklogOrder
from rove.data.store.kept_batch import KeptBatch, size_of
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import BrokenInvariant, ProtocolError, must
from rove.model.events import Conn, Payload, Send
from rove.model.ids import NodeId, Origin
from rove.model.lifecycle import Machine
from rove.model.messages import PROTOCOL, Ack, Beat, Data, Hello, Message, Refused, Resend, Welcome

SILENT_US = 3_000_000  # the default silence after which a peer is away
BEATS = 6  # heartbeats, or attempts to reach a peer again, in that time
SILENT_US_MIN = 60_000  # shorter values that a peer asks for are raised to this
RESEND_US = 200_000  # between two requests for the same frames
STALLED_US = 5_000_000  # the same, after a frame that may not be taken; when it may, it is requested at once
Said: TypeAlias = Send | Load
ANEW = 1 << 40  # added for each new session of a link; starts of processes come from a clock, or count from 1


class AckFate(Enum):
    """What is known of the ack of a frame."""

    WAITS = "waits"  # the sender has not heard it yet
    HEARD = "heard"  # the sender has heard it, and has let go of the frame
    KEPT = "kept"  # the session is over; the sender had not heard it, and sends the frame again
    UNKNOWN = "unknown"  # the session is over, and the fate cannot be known


class Link:
    """One side of a session. The side that dials sends the first message; after that both sides are alike."""

    def __init__(
        self,
        node: NodeId,
        start: int,
        peer: NodeId,
        store: Store,
        backlog: BacklogOrder = "beside",
        silent_us: int = SILENT_US,
    ) -> None:
        self.node, self.peer = node, peer
        self._silent_us, self.beat_us = silent_us, silent_us // BEATS
        self._start, self._store = start, store
        self._machine = Machine(LINK, LinkState.LISTENING, f"the link of {node} with {peer}")
        self._dials = False  # whether this side dials
        self._only_silent = False  # whether the peer was last away because of silence; it may still be in the session
        self._conn: Conn | None = None
        self._peer_start = 0
        self._loading = Loading(peer)
        self._backlog = Backlog(backlog, self._loading)  # not sent yet
        self._unacked: deque[KeptBatch] = deque()  # sent, in the order of their numbers
        self._unsaid: deque[KeptBatch] = deque()  # of those, the frames to be sent again
        self._pump_due = False  # batches may be next that were not checked yet
        self._numbered = 0
        self._sent_bytes, self._allowance = 0, 0
        self._received = 0
        self._received_bytes = 0
        self._open: deque[int] = deque()  # received and not safe yet
        self._safe: set[int] = set()  # of those, safe ones behind a frame that is not
        self._stalled = False  # whether the next frame has arrived and may not be taken
        self._granted, self._acked, self._said = 0, 0, (-1, -1)
        self.asks = False  # whether an operator here has to know that acks are heard
        self._heard_acks = 0  # the peer has heard acks up to this frame
        self._left = (0, 0)  # of the session that we left last: our start, and the frames known to be acked
        self._peer_left = (-1, 0)  # of the session that the peer left last: its number here, and the same
        self._heard_us, self._spoke_us, self._asked_us = 0, -self.beat_us, -RESEND_US
        self._greeted_us = -self.beat_us  # when we sent the last Hello
        self.resent: dict[tuple[str, Origin], int] = {}
        self.sessions = 0

    # Calls of the node

    def dial(self, conn: Conn) -> None:
        """Become the dialing side, on this connection."""
        self._dials, self._conn = True, conn
        self._away(LinkEvent.DIAL)
        self._spoke_us = -self.beat_us

    def offer(self, entry: KeptBatch, now: int, overtakes: bool = False) -> list[Said]:
        """Send a batch to the peer, now or as soon as possible. A batch that `overtakes` need not wait for batches kept
        while the route was cut."""
        if entry.gone:
            return []
        self._backlog.add(entry, overtakes and self.up)
        return self._pump(now) if self.up else []

    def receive(self, number: int, size: int, now: int) -> tuple[bool, list[Said]]:
        """Take a frame. Returns whether it is new and in order; then it stays open until `took`."""
        self._heard_us = now
        if self.awaits(number):
            if self._received_bytes >= self._granted:
                return False, [self._say(Refused("credit", "wait until there is room for more"), now)]
            self._received, self._stalled = number, False
            self._received_bytes += size
            self._open.append(number)
            return True, []
        return False, self._ask_again(now) if self.up and number > self._received else []

    def awaits(self, number: int) -> bool:
        """Whether a frame of this number is the next one. A slow connection may need longer for a frame than a peer may
        be silent. The frame counts, because it would take as long again."""
        return number == self._received + 1 and (self.up or self._only_silent)

    def stall(self, now: int) -> None:
        """Note that a frame has arrived that may not be taken from this peer. It counts as not received, so it is not
        acked, and the peer keeps it with all that follow."""
        self._heard_us = now
        if not self._stalled:
            self._stalled, self._asked_us = True, now

    def go_on(self, now: int) -> list[Said]:
        """The frame that could not be taken may be taken now. Request it, if there is one."""
        if not self._stalled or not self.up:
            return []
        self._stalled, self._asked_us = False, now
        return [self._say(Resend(self._received), now)]

    def took(self, number: int, session: int) -> None:
        """A frame of a session is safe. Frames before it may still be open."""
        if session != self.sessions:
            return
        if self._open and self._open[0] == number:
            self._open.popleft()
            while self._open and self._open[0] in self._safe:
                self._safe.discard(self._open.popleft())
        elif self._open and number > self._open[0]:
            self._safe.add(number)

    def ack_fate(self, number: int, session: int) -> AckFate:
        """What is known of the ack of a frame of a session."""
        if session == self.sessions:
            return AckFate.HEARD if number <= self._heard_acks else AckFate.WAITS
        if session == self._peer_left[0]:
            return AckFate.HEARD if number <= self._peer_left[1] else AckFate.KEPT
        return AckFate.UNKNOWN

    def grant(self, room: int) -> int:
        """Let the peer send `room` bytes more than we have received. A grant is never taken back."""
        self._granted = max(self._granted, self._received_bytes + max(0, room))
        return self._granted - self._received_bytes

    @property
    def outstanding(self) -> int:
        """The bytes that the peer may still send."""
        return max(0, self._granted - self._received_bytes)

    @property
    def state(self) -> LinkState:
        return self._machine.state

    @property
    def up(self) -> bool:
        """Whether both sides know the session."""
        return self._machine.state is LinkState.UP

    @property
    def there(self) -> bool:
        """Whether the peer can be reached: the link is up, or will be again because we asked for a new session."""
        return self._machine.state is LinkState.UP or self._machine.state is LinkState.RENEWING

    def entries(self) -> Iterable[KeptBatch]:
        """Everything not acked, oldest first."""
        yield from self._unacked
        yield from (entry for entry in self._backlog if not entry.gone)

    def kept(self, query: str) -> list[KeptBatch]:
        """The batches of a query that are not acked, the oldest first, without copies."""
        return [e for e in self.entries() if e.header.query == query and e.original is None]

    def forget(self, query: str) -> list[Header]:
        """Drop unsent batches of a stopped query. Returns the headers of those that no other node can have."""
        dropped = [e for e in self._backlog if e.header.query == query and not e.gone]
        lost = [e.header for e in dropped if e.nowhere_else]
        for entry in dropped:
            if not entry.gone:  # a copy is gone if its original was dropped before it
                self._store.drop(entry)
        self._leave_out(query)
        return lost

    def take_back(self, query: str) -> list[KeptBatch]:
        """Take back the batches of a query that are not acked, oldest first, for another route. Copies are dropped. If
        some were sent, the numbers of the session are void, so a new session begins."""
        taken = [e for e in self.entries() if e.header.query == query]
        self._leave_out(query)
        if any(e.header.query == query for e in self._unacked):
            self._left = (self._start, self._acks_heard)
            self._unacked = deque(e for e in self._unacked if e.header.query != query)
            self._start += ANEW
            self._start_anew(0)
            self._away(LinkEvent.RENEW)
            self._spoke_us = -self.beat_us
        for entry in taken:
            if entry.number:
                self._count_resent(entry.header)
            if entry.original is not None:
                self._store.drop(entry)
        return [entry for entry in taken if entry.original is None]

    def sweep(self) -> None:
        """A waiting entry may be gone. Amortized O(1)."""
        self._backlog.sweep()

    def _leave_out(self, query: str) -> None:
        """Remove unsent batches of this query. Others may be next now, and are sent with the next flush."""
        self._let_go_of_unsaid()
        self._backlog.leave_out(query)
        self._pump_due = True

    def open_frames(self) -> int:
        return len(self._open)

    # Messages of the peer

    def heard(self, message: Message, conn: Conn, now: int) -> list[Said]:
        """Handle a message of the peer that is not Data."""
        if isinstance(message, Hello):
            return self._on_hello(message, conn, now)
        if isinstance(message, Welcome):
            return self._on_welcome(message, conn, now)
        if not self.up or conn != self._conn:
            return []
        self._heard_us = now
        match message:
            case Ack(through=through, allowance=allowance, tell=tell):
                while self._unsaid and self._unsaid[0].number <= through:
                    self._loading.let_go(self._unsaid.popleft())
                while self._unacked and self._unacked[0].number <= through:
                    self._store.drop(self._unacked.popleft())
                self._allowance = max(self._allowance, allowance)
                pumped = self._pump(now)
                return [*pumped, self._beat(now)] if tell else pumped
            case Beat(sent=sent, acked=acked, allowance=allowance):
                self._heard_acks = max(self._heard_acks, min(acked, self._acked))
                if (acked, allowance) != self._said:
                    self._said = (-1, -1)  # the next flush sends it again
                return self._ask_again(now) if sent > self._received else []
            case Resend(after=after):
                return self._again(after, now)
        return []

    def _on_hello(self, hello: Hello, conn: Conn, now: int) -> list[Said]:
        resumes = not self.up or conn != self._conn
        self._conn, self._heard_us = conn, now
        if hello.silent_us:  # the dialing side sets the silence for both
            self._silent_us = max(hello.silent_us, SILENT_US_MIN)
            self.beat_us = self._silent_us // BEATS
        known = hello.start == self._peer_start and hello.heard == self._start
        if not known:
            if hello.left and hello.left == self._peer_start:
                self._peer_left = (self.sessions, min(hello.left_acked, self._acked))
            self._start_anew(hello.start)
        self._machine.step(LinkEvent.HELLO)
        welcome = Welcome(PROTOCOL, self.node, self._start, hello.start, self._received, max(self._granted, 1))
        self._granted = max(self._granted, 1)
        again = self._again(hello.received if known else 0, now) if resumes or not known else []
        return [self._say(welcome, now), *again]

    def _on_welcome(self, welcome: Welcome, conn: Conn, now: int) -> list[Said]:
        if not self._dials:
            raise ProtocolError("unexpected", f"{self.peer} answers a Hello that {self.node} has not sent")
        if welcome.heard != self._start or conn != self._conn:
            return []
        self._heard_us = now
        resumes = not self.up
        if welcome.start != self._peer_start or welcome.received < self._acks_heard:
            self._start_anew(welcome.start)  # the peer began a new session, so we do too
            resumes = True
        self._machine.step(LinkEvent.WELCOME)
        self._allowance = max(self._allowance, welcome.allowance)
        self._said = (-1, -1)
        again = self._again(welcome.received, now) if resumes else []  # a second answer must not send all of it twice
        return [*again, *self.flush(now)]

    def refused(self) -> bool:
        """The peer does not know this session. Returns whether the handshake has to be repeated. The peer refuses every
        frame that was on its way, and a second process of our name may do the same as we: so a Hello follows the last
        one by a heartbeat at least."""
        if not self.there:
            return False
        self._away(LinkEvent.LOST if self._dials else LinkEvent.LEFT)
        self._spoke_us = self._greeted_us
        return True

    # Time

    def tick(self, now: int) -> list[Said]:
        """Send a heartbeat, notice silence, dial again."""
        if self.there and now - self._heard_us > self._silent_us:
            self._away(LinkEvent.LOST if self._dials else LinkEvent.LEFT, silent=True)
        if not self.up:
            if self._dials and now - self._spoke_us >= self.beat_us:
                known = (self._peer_start, self._received, self._silent_us)
                hello = Hello(PROTOCOL, self.node, self._start, *known, *self._left)
                self._greeted_us = now
                return [self._say(hello, now)]
            if self.there and now - self._spoke_us >= self.beat_us:  # the side that dials must say hello again
                return [self._say(Refused("unexpected", "a new session begins here"), now)]
            return []
        said: list[Said] = []
        unasked = self._backlog.stands_still or (bool(self._unsaid) and self._loading.unasked(self._unsaid[0]))
        if self._loading.due(now) or unasked:
            self._backlog.read_again(now)
            said = self._pump(now)
        if now - self._spoke_us < self.beat_us:
            return said
        return [*said, self._beat(now)]

    def _beat(self, now: int) -> Send:
        return self._say(Beat(self._numbered, self._acks_heard, self._allowance), now)

    @property
    def _acks_heard(self) -> int:
        """The frames that the peer has acked, as far as we know."""
        return self._unacked[0].number - 1 if self._unacked else self._numbered

    def flush(self, now: int) -> list[Said]:
        """Send acks for safe frames and new credit, if there is any, and batches that are next since others left."""
        if not self.up:
            return []
        sent: list[Said] = []
        if self._pump_due:
            self._pump_due, sent = False, self._pump(now)
        self._acked = self._open[0] - 1 if self._open else self._received
        news = (self._acked, self._granted)
        if news == self._said:
            return sent
        self._said = news
        spoke = self._spoke_us  # an ack does not replace a heartbeat, which carries more
        said: list[Said] = [*sent, self._say(Ack(*news, tell=self.asks), now)]
        self._spoke_us = spoke
        return said

    # Sending

    def loaded(self, event: Loaded, now: int) -> list[Said]:
        """Requested rows have been read from the disk, or cannot be read."""
        lost = self._loading.loaded(event, now)
        if lost is not None:
            counted = size_of(lost.header, lost.payload)
            self._store.unreadable(lost, event.trouble)
            if self._is_sent(lost):  # lost rows take no credit, because the peer counts received bytes
                self._sent_bytes += size_of(lost.header, None) - counted
        return self._pump(now) if self.up else []

    def _is_sent(self, entry: KeptBatch) -> bool:
        """Whether a batch was sent in this session. Its number may be of an earlier one."""
        place = entry.number - self._unacked[0].number if self._unacked else -1
        return 0 <= place < len(self._unacked) and self._unacked[place] is entry

    @property
    def trouble(self) -> str:
        """Why rows on the disk cannot be sent now; empty if they can."""
        return self._loading.trouble

    def _pump(self, now: int) -> list[Said]:
        """Send while there is credit. One frame may exceed it, so that a frame larger than any credit can be sent."""
        said: list[Said] = []
        while self._unsaid:
            entry = self._unsaid[0]
            if not self._loading.ready(entry):  # frames are sent in the order of their numbers
                for each in self._unsaid:
                    if self._loading.full:
                        break
                    self._loading.ask(each, now)
                return [*said, *self._loading.asked()]
            self._unsaid.popleft()
            self._count_resent(entry.header)
            said.append(self._frame(entry, now))
        while self._sent_bytes < self._allowance and (found := self._backlog.next(now)) is not None:
            if found.gone:
                self._loading.let_go(found)
                continue
            self._store.sent(found)
            self._numbered += 1
            found.number = self._numbered
            self._sent_bytes += size_of(found.header, found.payload)
            self._unacked.append(found)
            said.append(self._frame(found, now))
        self._backlog.read_ahead(now)
        return [*said, *self._loading.asked()]

    def _let_go_of_unsaid(self) -> None:
        """The rows of frames that are to be sent again stay on the disk for now."""
        for entry in self._unsaid:
            self._loading.let_go(entry)

    def _away(self, event: LinkEvent, silent: bool = False) -> None:
        """Nothing can be sent now. All waiting batches count as kept, none as new."""
        self._only_silent = silent and self.up
        self._machine.step(event)
        self._let_go_of_unsaid()
        self._backlog.cut()

    def _again(self, after: int, now: int) -> list[Said]:
        """Send the frames after `after` again. They are not counted against credit twice."""
        self._unsaid = deque(e for e in self._unacked if e.number > after)
        return self._pump(now)

    def _frame(self, entry: KeptBatch, now: int) -> Send:
        """The message for a batch."""
        return self._say(Data(entry.number, entry.header), now, self._loading.taken(entry))

    def _ask_again(self, now: int) -> list[Said]:
        if now - self._asked_us < (STALLED_US if self._stalled else RESEND_US):
            return []
        self._asked_us = now
        return [self._say(Resend(self._received), now)]

    def _say(self, message: Message, now: int, payload: Payload | None = None) -> Send:
        self._spoke_us = now
        if self._conn is None:
            raise BrokenInvariant(f"{self._machine.who} has no connection to send on")
        return Send(self._conn, message, payload)

    def _start_anew(self, start: int) -> None:
        """Begin a new session. Old numbers are void, and everything that was not acked is sent again."""
        self.sessions += 1
        self._peer_start = start
        for entry in self._unacked:
            self._count_resent(entry.header)
        self._let_go_of_unsaid()
        self._backlog.add_first(self._unacked)
        self._unacked.clear()
        self._unsaid.clear()
        self._numbered = self._sent_bytes = self._allowance = 0
        self._received = self._received_bytes = self._granted = self._acked = self._heard_acks = 0
        self._open.clear()
        self._safe.clear()
        self._stalled = False
        self._said = (-1, -1)

    def validate(self) -> None:
        """Frames are numbered without gaps, nothing waits without need, and credit is kept. O(batches on this link)."""
        state = self._machine.state
        try:
            must(state is not (LinkState.LISTENING if self._dials else LinkState.DIALLING), "who dials is known", state)
            must(state is not LinkState.UP or self._conn is not None, "a link that is up has a connection")
            must(self._acked <= self._received, "what is acked was received", self._acked, self._received)
            must(self._sent_bytes >= 0, "bytes are counted", self._sent_bytes)
            if self._unacked or self._backlog:
                self._validate_sent()
            if self._open or self._safe:
                self._validate_received()
        except BrokenInvariant as broken:
            raise BrokenInvariant(f"{self._machine.who}: {broken}") from None

    def _validate_sent(self) -> None:
        sent = self._unacked
        again = self.up and bool(self._unsaid)  # these frames go first
        must(not again or not self._loading.ready(self._unsaid[0]), "what is asked for again and is here is sent")
        self._backlog.validate(self.up, 0 if again else self._allowance - self._sent_bytes)
        if sent:
            whole = sent[-1].number == self._numbered and all(a.number + 1 == b.number for a, b in pairwise(sent))
            must(whole, "sent frames are numbered without gaps", [entry.number for entry in sent], self._numbered)
        here = [*self.entries()]
        self._loading.validate([*self._unacked, *self._backlog])  # rows of a batch that is gone are held until its turn
        must(len({id(entry) for entry in here}) == len(here), "a batch is on a link once", len(here))
        for entry in here:
            must(self._store.holds(entry), "what is not acked is in the store", entry.header)

    def _validate_received(self) -> None:
        opened, safe = self._open, self._safe
        whole = not opened or (opened[-1] == self._received and all(a + 1 == b for a, b in pairwise(opened)))
        must(whole, "received frames are open without gaps", [*opened], self._received)
        behind = not safe or (safe <= {*opened} and opened[0] not in safe)
        must(behind, "frames are safe behind an open one", safe, [*opened])

    def _count_resent(self, header: Header) -> None:
        key = (header.query, header.origin)
        self.resent[key] = self.resent.get(key, 0) + header.born
