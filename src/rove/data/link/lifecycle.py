"""The states of one side of a link, and the table of events that may happen in each.

Law: a peer's wrong message is refused before it gets here. An event that is not in the table is a bug of ours, and
raises.

- `listening`: the peer is silent, and must send the first message. Batches wait.
- `dialling`: the peer is silent. We send a Hello at every heartbeat until it answers. Batches wait.
- `up`: both sides know the session. Frames, acks and heartbeats are sent.
- `renewing`: the peer was heard a moment ago. Sent frames take another route, so the numbers of this session are void,
  and we ask for a new session. Batches wait; the route still counts as working.
"""

from __future__ import annotations

from enum import Enum

from rove.model.lifecycle import Table


class LinkState(Enum):
    """The state of one side of a link."""

    LISTENING = "listening"
    DIALLING = "dialling"
    UP = "up"
    RENEWING = "renewing"


class LinkEvent(Enum):
    """An event of a link. `lost` is for a peer that we dial, `left` for a peer that dials us."""

    DIAL = "dial"  # we dial from now on
    HELLO = "hello"  # the peer has sent a Hello
    WELCOME = "welcome"  # the peer has answered our Hello
    RENEW = "renew"  # sent frames take another route
    LOST = "lost"  # the peer is silent, or does not know the session, so we dial again
    LEFT = "left"  # the same for a peer that dials us


LINK: Table[LinkState, LinkEvent] = {
    LinkState.LISTENING: {
        LinkEvent.DIAL: LinkState.DIALLING,
        LinkEvent.HELLO: LinkState.UP,
        LinkEvent.RENEW: LinkState.LISTENING,
        LinkEvent.LEFT: LinkState.LISTENING,
    },
    LinkState.DIALLING: {
        LinkEvent.DIAL: LinkState.DIALLING,
        LinkEvent.HELLO: LinkState.UP,
        LinkEvent.WELCOME: LinkState.UP,
        LinkEvent.RENEW: LinkState.DIALLING,
        LinkEvent.LOST: LinkState.DIALLING,
    },
    LinkState.UP: {
        LinkEvent.DIAL: LinkState.DIALLING,
        LinkEvent.HELLO: LinkState.UP,
        LinkEvent.WELCOME: LinkState.UP,
        LinkEvent.RENEW: LinkState.RENEWING,
        LinkEvent.LOST: LinkState.DIALLING,
        LinkEvent.LEFT: LinkState.LISTENING,
    },
    LinkState.RENEWING: {
        LinkEvent.DIAL: LinkState.DIALLING,
        LinkEvent.HELLO: LinkState.UP,
        LinkEvent.WELCOME: LinkState.UP,
        LinkEvent.RENEW: LinkState.RENEWING,
        LinkEvent.LOST: LinkState.DIALLING,
        LinkEvent.LEFT: LinkState.LISTENING,
    },
}
