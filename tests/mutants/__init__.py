"""Bugs to plant, one at a time: `uv run rove sim --mutants`. Each is caught by the simulation or by a named test.

A mutant that survives is a bug of the tests: write the missing test, or widen a checker. A mutant that nobody could
notice is replaced by another.
"""

from __future__ import annotations

from tests.mutants.below import BELOW
from tests.mutants.books import BOOKS
from tests.mutants.checkpoints import CHECKPOINTS
from tests.mutants.coordinator import COORDINATOR
from tests.mutants.deaths import DEATHS
from tests.mutants.ends import ENDS
from tests.mutants.fragments import FRAGMENTS
from tests.mutants.honest import HONEST
from tests.mutants.invariants import INVARIANTS
from tests.mutants.links import LINKS
from tests.mutants.logs import LOGS
from tests.mutants.messages import MESSAGES
from tests.mutants.moves import MOVES
from tests.mutants.names import NAMES
from tests.mutants.operators import OPERATORS
from tests.mutants.routes import ROUTES
from tests.mutants.shares import SHARES
from tests.mutants.sources import SOURCES
from tests.mutants.statements import STATEMENTS
from tests.mutants.stores import STORES
from tests.mutants.unheard import HEARD

MUTANTS = (
    *LINKS,
    *HEARD,
    *FRAGMENTS,
    *OPERATORS,
    *STORES,
    *ENDS,
    *LOGS,
    *CHECKPOINTS,
    *COORDINATOR,
    *INVARIANTS,
    *ROUTES,
    *MESSAGES,
    *NAMES,
    *MOVES,
    *DEATHS,
    *SHARES,
    *BOOKS,
    *BELOW,
    *SOURCES,
    *STATEMENTS,
    *HONEST,
)
