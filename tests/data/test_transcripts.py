"""The link's protocol as readable text: what each side says. `--rewrite-docs` rewrites the transcripts."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from rove.data.link.link import BEATS, SILENT_US, Link
from rove.data.store.kept_batch import KEPT_BYTES_MIN
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.events import Send
from rove.model.ids import NodeId, Origin
from rove.model.messages import Data, Message, Refused
from tests.lines import message

BEAT_US = SILENT_US // BEATS

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
ROOM = 1_000


class Story:
    """A device and an edge, the wire between them, and what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now, self.seq = 0, 0
        self.links: dict[str, Link] = {}
        self.wire: deque[tuple[str, Send]] = deque()
        self.start("device", 1)
        self.start("edge", 1)

    def start(self, name: str, start: int) -> None:
        peer = "edge" if name == "device" else "device"
        self.links[name] = Link(NodeId(name), start, NodeId(peer), Store(10**6))
        if name == "device":
            self.links[name].dial("edge")
        self.note(f"start {start} of {name}")

    def note(self, text: str) -> None:
        self.lines.append(f"{self.now / 1e6:6.1f} s  {text}")

    def comment(self, text: str) -> None:
        """A word to the reader."""
        self.lines += ["", f"# {text}"]

    def say(self, who: str, sends: list[Send]) -> None:
        for send in sends:
            self.note(f"{who} says {shown(send.message)}")
            self.wire.append((who, send))

    def offer(self, batches: int) -> None:
        for _ in range(batches):
            header = Header(origin=Origin("o"), seq=self.seq, through=self.seq, rows=1, born=1, query="q")
            self.seq += 1
            self.note(f"device has batch {header.seq} to send")
            link = self.links["device"]
            self.say("device", link.offer(link._store.put(header, bytes(72)), self.now))

    def arrive(self, takes: bool = True) -> None:
        """Everything on the wire arrives, and what is said in answer as well."""
        while self.wire:
            sender, send = self.wire.popleft()
            name = "edge" if sender == "device" else "device"
            link, conn = self.links[name], "edge" if name == "device" else b"device"
            match send.message:
                case Data(number=number, header=header):
                    fresh, sends = link.receive(number, KEPT_BYTES_MIN + 72, self.now)
                    if fresh and takes:
                        link.took(number, link.sessions)
                        self.note(f"{name} takes batch {header.seq}")
                    self.say(name, sends)
                case Refused():
                    link.refused()
                case other:
                    self.say(name, link.heard(other, conn, self.now))
            link.grant(ROOM)
            if not self.wire:
                self.say(name, link.flush(self.now))

    def cut(self) -> None:
        self.wire.clear()
        self.note("the wire is cut; what was on it is lost")

    def wait(self, micros: int) -> None:
        self.now += micros
        for name in ("device", "edge"):
            self.say(name, self.links[name].tick(self.now))


def shown(said: Message) -> str:
    """A message in plain words, with the credit that it gives."""
    credit = getattr(said, "allowance", None)
    return message(said) if credit is None else f"{message(said)}, credit for {credit} bytes"


def handshake(story: Story) -> None:
    story.comment("The one who dials says hello. Both say how many bytes they have room for.")
    story.wait(0)
    story.arrive()
    story.comment("Frames are numbered from 1. One ack stands for all frames up to its number.")
    story.offer(2)
    story.arrive()


def a_cut_and_a_resume(story: Story) -> None:
    handshake(story)
    story.comment("Two frames are lost on the way.")
    story.offer(2)
    story.cut()
    story.comment("After a silence the device says hello again. The edge has two frames, so it gets those after them.")
    story.wait(SILENT_US + BEAT_US)
    story.arrive()


def a_peer_that_has_forgotten(story: Story) -> None:
    handshake(story)
    story.comment("A frame is lost, and the edge starts anew. It remembers no session.")
    story.offer(1)
    story.cut()
    story.start("edge", 2)
    story.comment("Both begin at frame 1. What was acked before is not sent again.")
    story.wait(SILENT_US + BEAT_US)
    story.arrive()


def credit(story: Story) -> None:
    story.comment("The edge has room for 1,000 bytes.")
    story.wait(0)
    story.arrive()
    story.comment("Each batch counts 200 bytes. The sixth has to wait for credit.")
    story.offer(7)
    story.comment("The edge takes nothing, but has room again: it acks nothing and gives more credit.")
    story.arrive(takes=False)
    story.offer(1)


@pytest.mark.parametrize("scene", [handshake, a_cut_and_a_resume, a_peer_that_has_forgotten, credit])
def test_a_link_says_what_its_transcript_says(scene: object, request: pytest.FixtureRequest) -> None:
    story = Story()
    scene(story)  # type: ignore[operator]
    path = FOLDER / f"link_{scene.__name__}.txt"  # type: ignore[attr-defined]
    text = "\n".join(story.lines).strip("\n") + "\n"
    if request.config.getoption("--rewrite-docs"):
        path.write_text(text)
    assert path.read_text() == text
