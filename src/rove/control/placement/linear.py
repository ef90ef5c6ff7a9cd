"""A mixed integer program, solved by HiGHS.

Law: the same program gives the same solution. So HiGHS runs in one thread with a fixed seed, and the search is bounded
in nodes, not in seconds.
"""

from __future__ import annotations

import highspy

NODES_MAX = 10_000  # of the search tree

Terms = list[tuple[int, float]]


class Model:
    """Collects variables and rows. The cost is minimised."""

    def __init__(self) -> None:
        self._columns: list[tuple[float, float, float, bool]] = []
        self._rows: list[tuple[float, float, Terms]] = []

    def __len__(self) -> int:
        return len(self._columns)

    def binary(self, cost: float = 0.0, at_least: int = 0) -> int:
        """A variable that is 0 or 1."""
        self._columns.append((cost, float(at_least), 1.0, True))
        return len(self._columns) - 1

    def continuous(self, cost: float) -> int:
        """A variable from 0 to 1."""
        self._columns.append((cost, 0.0, 1.0, False))
        return len(self._columns) - 1

    def row(self, low: float | None, terms: Terms, high: float | None) -> None:
        """Keep a sum of variables between two values. None means no bound."""
        infinite = highspy.kHighsInf
        self._rows.append((-infinite if low is None else low, infinite if high is None else high, terms))

    def solve(self) -> list[float] | None:
        """The values of the best solution. None if there is none, or none was found within the bound."""
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in _OPTIONS:
            solver.setOptionValue(name, value)
        for n, (cost, low, high, integer) in enumerate(self._columns):
            solver.addCol(cost, low, high, 0, [], [])
            if integer:
                solver.changeColIntegrality(n, highspy.HighsVarType.kInteger)
        for low, high, terms in self._rows:
            merged: dict[int, float] = {}
            for column, factor in terms:
                merged[column] = merged.get(column, 0.0) + factor
            solver.addRow(low, high, len(merged), list(merged), list(merged.values()))
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:  # the presolve of HiGHS 1.15 sometimes says so wrongly
            solver.setOptionValue("presolve", "off")
            solver.clearSolver()
            solver.run()
            status = solver.getModelStatus()
        bounded = status == highspy.HighsModelStatus.kSolutionLimit
        if status == highspy.HighsModelStatus.kOptimal or (bounded and solver.getInfo().primal_solution_status == 2):
            return [float(v) for v in solver.getSolution().col_value]
        return None


_OPTIONS: tuple[tuple[str, bool | int | float | str], ...] = (
    ("output_flag", False),
    ("threads", 1),
    ("parallel", "off"),
    ("random_seed", 0),
    ("mip_rel_gap", 0.0),
    ("mip_abs_gap", 1e-6),
    ("mip_max_nodes", NODES_MAX),
)
