"""Reads users' functions for a node that runs each of them in a process of its own.

Law: none of a function's code runs in the node, not even the import of its module. The same function of several queries
has one process. The process starts when the function is read, and ends when no query here has the function any more.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from rove.plan import wire
from rove.plan.user_functions import Function, refuse_value
from rove.runtime.functions.process import Bounds, FunctionProcess


class ProcessReader:
    """A `Reader` for one node. If it `trusts`, functions that come by value are read as well."""

    def __init__(self, trusts: bool, bounds: Bounds) -> None:
        self._trusts, self._bounds = trusts, bounds
        self._known: WeakValueDictionary[wire.Function, FunctionProcess] = WeakValueDictionary()

    def __call__(self, word: wire.Function) -> Function:
        if not self._trusts:
            refuse_value(word)
        found = self._known.get(word)
        if found is None:
            found = self._known[word] = FunctionProcess(word, self._bounds)
        return found

    def processes(self) -> list[FunctionProcess]:
        """The functions that queries here have."""
        return list(self._known.values())

    def close(self) -> None:
        """End all processes."""
        for each in self.processes():
            each.close()
