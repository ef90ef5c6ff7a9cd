"""The states of a fragment that runs, and the one table of what may happen in each.

Law: two questions make up a state. Are its operators still reading what an earlier start had taken? Do those above know
its origins, so that what it gives may go on? A fragment that has ended takes nothing any more.

- `running`: it computes what comes, and what it gives goes on.
- `replaying`: its operators read their input log again. What they give may have been given before, so it stays as it
  was: no two headers of it become one. What comes meanwhile is computed afterwards.
- `resuming`: it replays after a restart of its node, and those above have not been told of its new origins yet. What it
  gives is kept.
- `holding`: it has replayed, and what it gives is still kept for the same reason.
- `ended`: the node has left it, or could not read its input.
"""

from __future__ import annotations

from enum import Enum

from rove.model.states import Table


class FragmentState(Enum):
    """What a fragment does with what comes, and with what it gives."""

    RUNNING = "running"
    REPLAYING = "replaying"
    RESUMING = "resuming"
    HOLDING = "holding"
    ENDED = "ended"


class FragmentEvent(Enum):
    """What happens to a fragment."""

    DEPLOYED = "deployed"  # the coordinator has sent it, new or in a newer version: those above know its origins
    OPENED = "opened"  # its input log is there, and is read from the beginning
    CAUGHT_UP = "caught up"  # all that was in its input log is computed
    RESUMED = "resumed"  # its node goes on with it after a restart, without the coordinator
    ENDED = "ended"  # the node leaves it, stops it, or gives it up


FRAGMENT: Table[FragmentState, FragmentEvent] = {
    FragmentState.RUNNING: {
        FragmentEvent.DEPLOYED: FragmentState.RUNNING,
        FragmentEvent.OPENED: FragmentState.REPLAYING,
        FragmentEvent.RESUMED: FragmentState.HOLDING,
        FragmentEvent.ENDED: FragmentState.ENDED,
    },
    FragmentState.REPLAYING: {
        FragmentEvent.DEPLOYED: FragmentState.REPLAYING,
        FragmentEvent.CAUGHT_UP: FragmentState.RUNNING,
        FragmentEvent.RESUMED: FragmentState.RESUMING,
        FragmentEvent.ENDED: FragmentState.ENDED,
    },
    FragmentState.RESUMING: {
        FragmentEvent.DEPLOYED: FragmentState.REPLAYING,
        FragmentEvent.CAUGHT_UP: FragmentState.HOLDING,
        FragmentEvent.ENDED: FragmentState.ENDED,
    },
    FragmentState.HOLDING: {
        FragmentEvent.DEPLOYED: FragmentState.RUNNING,
        FragmentEvent.ENDED: FragmentState.ENDED,
    },
    FragmentState.ENDED: {},
}

REPLAYS = (FragmentState.REPLAYING, FragmentState.RESUMING)  # what is given may have been given before
HOLDS = (FragmentState.RESUMING, FragmentState.HOLDING)  # what is given is kept
