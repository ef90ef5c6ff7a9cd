"""The states of a running fragment, and the table of events that may happen in each.

Law: two questions make a state. Are its operators still replaying the input of an earlier start? Do the nodes above
know its origins, so that output may be sent? A fragment that has ended takes nothing.

- `running`: it computes its input, and its output is sent.
- `replaying`: its operators read their input log again. Output may have been emitted before, so it must stay the same:
  headers are not merged. New input is computed afterwards.
- `resuming`: it replays after a restart of its node, and the nodes above do not know its new origins yet. Output is
  kept.
- `holding`: it has replayed, and output is still kept for the same reason.
- `ended`: the node has left the query, or could not read its input.
"""

from __future__ import annotations

from enum import Enum

from rove.model.lifecycle import Table


class FragmentState(Enum):
    """What a fragment does with its input and its output."""

    RUNNING = "running"
    REPLAYING = "replaying"
    RESUMING = "resuming"
    HOLDING = "holding"
    ENDED = "ended"


class FragmentEvent(Enum):
    """An event of a fragment."""

    DEPLOYED = "deployed"  # the coordinator has sent it, new or in a newer version, so the nodes above know its origins
    OPENED = "opened"  # its input log is open, and is read from the beginning
    CAUGHT_UP = "caught up"  # everything in its input log is computed
    RESUMED = "resumed"  # its node resumes it after a restart, without the coordinator
    ENDED = "ended"  # the node leaves, stops or gives up the query


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

REPLAYS = (FragmentState.REPLAYING, FragmentState.RESUMING)  # output may have been emitted before
HOLDS = (FragmentState.RESUMING, FragmentState.HOLDING)  # output is kept
