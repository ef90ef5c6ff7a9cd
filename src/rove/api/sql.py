"""SQL statements over a session's streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.api.stream import Stream
from rove.plan.sql.query import translate

if TYPE_CHECKING:
    from rove.api.session import Session


def statement(session: Session, text: str) -> Stream:
    """The stream of a SELECT statement. It means the same as in Spark, or it is refused by name."""
    return Stream(session, translate(text, lambda name: session.stream(name).plan))
