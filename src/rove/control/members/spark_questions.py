"""Users' questions that only Spark's process can answer: for rows of tables, and whether Spark would run a plan.

Law: a user asks again and again under one id until there is an answer. Spark asks what it should answer, and sends the
answers. An answer is kept for a while, so that a repeated question gets the same one. O(questions that wait) each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from rove.control.asks.requests import PlanAsk, PlanSaid, TableAsk, TableRows
from rove.model.errors import PlanError

KEPT_US = 60_000_000  # after the last time it was asked, before a question is forgotten
TABLES_MAX = 16  # questions for rows, whose answers are large
PLANS_MAX = 1_000


Q = TypeVar("Q", TableAsk, PlanAsk)
A = TypeVar("A", TableRows, PlanSaid)


@dataclass(slots=True)
class _Question(Generic[Q, A]):
    asked: Q
    asked_us: int
    answer: A | None = None


class SparkQuestions(Generic[Q, A]):
    """Questions of one kind by id, `limit` at most. `full` tells a user that there are too many."""

    def __init__(self, limit: int, full: str) -> None:
        self._limit, self._full = limit, full
        self._questions: dict[str, _Question[Q, A]] = {}

    def ask(self, asked: Q, now: int) -> A | None:
        """The answer to a question; None if there is none yet."""
        for id in [id for id, each in self._questions.items() if now - each.asked_us > KEPT_US]:
            del self._questions[id]
        if asked.id not in self._questions and len(self._questions) >= self._limit:
            raise PlanError(f"{self._full}; try again in a minute")
        question = self._questions.setdefault(asked.id, _Question(asked, now))
        question.asked_us = now
        return question.answer

    def wanted(self) -> list[Q]:
        """What Spark should answer."""
        return [each.asked for each in self._questions.values() if each.answer is None]

    def heard(self, answer: A) -> None:
        """Take an answer of Spark. An answer that no question waits for is dropped."""
        if (question := self._questions.get(answer.id)) is not None:
            question.answer = answer
