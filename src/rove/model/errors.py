"""One root for every error Rove raises, a family for each layer below it.

Law: a message says what happened, to whom, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


class RoveError(Exception):
    """The root of every error that Rove raises on purpose."""


class BadName(RoveError):
    """A name that no node, stream, query or table can have."""


class BrokenInvariant(Exception):
    """A law of Rove does not hold: a bug of ours. It is not a `RoveError`, because nothing handles it: the process ends
    and is started again."""


def must(holds: bool, law: str, *seen: object) -> None:
    """Raise if a law of ours does not hold, with what was seen. `validate()` of a machine is a list of these.

    >>> must(1 + 1 == 2, "numbers add up")
    """
    if not holds:
        raise BrokenInvariant(f"{law}; seen: {', '.join(map(repr, seen))}" if seen else law)


class PlanError(RoveError):
    """A query that cannot be planned. Nothing has run yet."""


class WrongKind(PlanError, TypeError):
    """An argument that is not of a kind that its function takes."""


class MissingFunction(PlanError):
    """A user's function that cannot be loaded here. `function` is its name among all nodes."""

    def __init__(self, function: str, text: str) -> None:
        self.function = function
        super().__init__(text)


class ExpressionError(PlanError):
    """An expression that cannot be understood. It carries the whole text and the place in it."""

    def __init__(self, message: str, text: str = "", span: tuple[int, int] | None = None) -> None:
        self.reason, self.text, self.span = message, text, span
        super().__init__(message + _pointer(text, span))

    def at(self, text: str, span: tuple[int, int] | None) -> ExpressionError:
        """The same error with a place in the text. An error that already has a place keeps it."""
        return self if self.text else type(self)(self.reason, text, span)


class NoSuchVerb(PlanError, AttributeError):
    """A verb that a stream does not have, with the reason."""


class ParseError(ExpressionError):
    """Text that is not Spark SQL."""


class UnknownColumn(ExpressionError):
    """A name that no column in scope has."""


class UnknownFunction(ExpressionError):
    """A function that neither Rove nor Spark has."""


class TypeMismatch(ExpressionError):
    """Operands of types that Spark refuses too."""


class EdgeRefusal(PlanError):
    """An expression that Spark can compute and the edge cannot, because Arrow would not give Spark's answer."""


class DataError(RoveError):
    """Rows that cannot be processed. They are refused, and the process goes on. `tries_max` is how many parts of a
    batch may be tried to find the rows at fault; 0 if the error is not of single rows."""

    tries_max = 0


class SchemaMismatch(DataError):
    """A batch whose columns are not those of its stream."""


class UnknownOrigin(DataError):
    """A batch from an origin that the operator does not wait for."""


# What code of users may raise. `sys.exit()` in it ends nothing but the call.
RAISED_BY_USERS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)


class ArithmeticFault(DataError):
    """An error in the data by ANSI SQL: overflow, division by zero, a cast that fails."""

    tries_max = 1_000_000


class UdfError(DataError):
    """A user's function raised, or returned something else than its schema says."""

    tries_max = 200


class FunctionFailed(UdfError):
    """A user's function could not be called, passed a bound or ended its process. No other part of its batch is
    tried."""

    tries_max = 0


class StateError(RoveError):
    """A snapshot that does not belong to the operator it is restored into."""


class ProtocolError(RoveError):
    """A peer sent a message that cannot be accepted. `why` is the kind under which it is counted."""

    def __init__(self, why: str, text: str) -> None:
        self.why = why
        super().__init__(text)


class TopologyError(RoveError):
    """Nodes or links that do not fit together, or a query that finds no room among them."""


class DiskError(RoveError):
    """A file that cannot be read or written. Acknowledged data is still there."""


class NotWritable(DiskError):
    """A disk that is full, read-only or broken, and may work again later."""


class SetupError(RoveError):
    """Something is missing on this machine. The message says how to add it."""


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for an unknown name: the known names and the closest match."""
    by_lower = {k.lower(): k for k in known}
    close = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    hint = f"; did you mean `{by_lower[close[0]]}`?" if close else ""
    shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"there are: {shown or 'none'}{hint}"


def _pointer(text: str, span: tuple[int, int] | None) -> str:
    if not text:
        return ""
    if span is None:
        return f"\n  in: {text}"
    start, end = span
    before, line = text[:start].count("\n"), text.rfind("\n", 0, start) + 1  # of several lines, only that one is shown
    shown = text[line:].partition("\n")[0]
    where = f"in line {before + 1}: " if "\n" in text else "in: "
    under = min(end - line, len(shown)) - (start - line)
    return f"\n  {where}{shown}\n  {' ' * (len(where) + start - line)}{'^' * max(1, under)}"
