"""The list of all verbs that users may send to the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rove.control.asks.explain import explain
from rove.control.asks.invite import invite, revoke
from rove.control.asks.listings import history, queries, streams, topology
from rove.control.asks.nodes.drain import drain, draining
from rove.control.asks.nodes.import_topology import import_topology
from rove.control.asks.nodes.relink import relink
from rove.control.asks.nodes.remove import remove
from rove.control.asks.nodes.replay import replay
from rove.control.asks.spark import check, checked, checks, cloud, progress, read, reads, recent, rows
from rove.control.asks.status import status
from rove.control.asks.stop import stop
from rove.control.asks.submit import submit
from rove.control.asks.update import update

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Verb:
    """`run` takes the request's body and returns the answer's. A verb that `changes` something is executed once,
    however often the same request comes. A verb `for_cloud` may be asked with the key of `rove cloud`; all others need
    the operator's key."""

    name: str
    run: Callable[[Coordinator, bytes], Any]
    changes: bool = False
    for_cloud: bool = False


VERBS = {
    verb.name: verb
    for verb in (
        Verb("submit", submit, changes=True),
        Verb("update", update, changes=True),
        Verb("stop", stop, changes=True),
        Verb("queries", queries),
        Verb("topology", topology),
        Verb("status", status),
        Verb("streams", streams),
        Verb("history", history),
        Verb("explain", explain),
        Verb("import", import_topology, changes=True),
        Verb("invite", invite, changes=True),
        Verb("revoke", revoke, changes=True),
        Verb("remove", remove, changes=True),
        Verb("drain", drain, changes=True),
        Verb("draining", draining),
        Verb("replay", replay, changes=True),
        Verb("relink", relink, changes=True),
        Verb("cloud", cloud, for_cloud=True),
        Verb("progress", progress, for_cloud=True),
        Verb("recent", recent),
        Verb("read", read),
        Verb("reads", reads, for_cloud=True),
        Verb("rows", rows, for_cloud=True),
        Verb("check", check),
        Verb("checks", checks, for_cloud=True),
        Verb("checked", checked, for_cloud=True),
    )
}
