"""Reads users' functions for a node that runs each of them in a process of its own.

Law: none of a function's code runs in the node, not even the import of its module. The same function of several queries
has one process. The process starts when the function is read. The shell tells which functions queries still have, and
the processes of others are ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from weakref import WeakValueDictionary

from rove.data.fragment.running_fragment import RunningFragment
from rove.model.errors import MissingFunction, PlanError
from rove.plan import wire
from rove.plan.operators import Map
from rove.plan.user_functions import Function, Later, function_key, refuse_value
from rove.runtime.functions.process import Bounds, FunctionProcess

UNNEEDED_S_MAX = 5.0  # from reading a function until its query runs: its folders are opened first


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
            try:
                found = self._known[word] = FunctionProcess(word, self._bounds)
            except PlanError as error:
                raise MissingFunction(function_key(word), str(error)) from error
        found.needed_s = time.monotonic()
        return found

    def processes(self) -> list[FunctionProcess]:
        """The functions that were read here, as long as something refers to them."""
        return list(self._known.values())

    def keep(self, running: Iterable[RunningFragment]) -> None:
        """End the processes of functions that none of these has had for a while. O(operators)."""
        now_s = time.monotonic()
        for operator in (operator for each in running for operator in each.stages.operators):
            function = operator.function if isinstance(operator, Map) else None
            if isinstance(function, Later):
                function = function.found
            if isinstance(function, FunctionProcess):
                function.needed_s = now_s
        for each in self.processes():
            if now_s - each.needed_s > UNNEEDED_S_MAX:
                each.close()

    def close(self) -> None:
        """End all processes."""
        for each in self.processes():
            each.close()
