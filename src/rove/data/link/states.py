"""The states of one side of a link, and the one table of what may happen in each.

Law: what a peer says wrongly is the peer's fault, and is refused before it comes here. What is not in the table is a
bug of ours, and raises.

- `listening`: the peer is not heard, and has to speak first. Batches wait.
- `dialling`: the peer is not heard. We say Hello every beat until it answers. Batches wait.
- `up`: both sides know the session. Frames, acks and beats go over it.
- `renewing`: the peer was heard a moment ago. Frames that were sent take another route, so the numbers of this session
  are void, and a new session is asked for. Batches wait; their route still counts as there.
"""

from __future__ import annotations

from enum import Enum

from rove.model.states import Table


class LinkState(Enum):
    """Where one side of a link stands."""

    LISTENING = "listening"
    DIALLING = "dialling"
    UP = "up"
    RENEWING = "renewing"


class LinkEvent(Enum):
    """What happens to a link. `lost` is said of a peer that we dial, `left` of one that dials us."""

    DIAL = "dial"  # we are to speak first from now on
    HELLO = "hello"  # the peer has said who it is
    WELCOME = "welcome"  # the peer has answered our Hello
    RENEW = "renew"  # frames that were sent take another route
    LOST = "lost"  # the peer is silent, or does not know the session: dial again
    LEFT = "left"  # the same, of a peer that has to speak first


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
