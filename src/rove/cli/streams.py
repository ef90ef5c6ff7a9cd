"""`rove streams`: lists the streams that can be queried."""

from __future__ import annotations

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table


def streams(coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the streams that devices or queries have declared, with their columns."""
    found = ask(coordinator, keys, "streams", None, dict[str, str])
    if as_json:
        print_json(found)
    elif not found:
        print("No streams yet. A device declares them: rove device --source … --columns 'stream: a int, ts timestamp'")
    else:
        print_table(("stream", "columns"), sorted(found.items()))
