"""Event-time windows: their size, their slide, and the panes they consist of.

Law: pane *n* holds the rows of `[offset + n·pane, offset + (n+1)·pane)`; a window is a run of whole panes. Numbers
count from the first instant a timestamp can hold, so they are never negative and every node gives the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from rove.model.clock import MICROS_MIN, duration_text, parse_duration
from rove.model.errors import PlanError

PANES_PER_WINDOW_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Window:
    """A tumbling (`slide_us == size_us`) or hopping window."""

    size_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0:
            raise PlanError("a window's size and slide must be longer than 0")
        if self.slide_us > self.size_us:
            raise PlanError("a window that slides further than its size would skip rows; Spark refuses it too")
        if self.offset_us >= self.slide_us:
            raise PlanError("a window's start must be less than its slide; Spark refuses it too")
        if self.panes_per_window > PANES_PER_WINDOW_MAX:
            raise PlanError(
                f"{duration_text(self.size_us)} by {duration_text(self.slide_us)} makes {self.panes_per_window} panes "
                f"a window; the most is {PANES_PER_WINDOW_MAX}. Choose a slide that divides the size better"
            )

    @classmethod
    def parse(cls, spans: Sequence[str]) -> Window:
        """A window from its size and, if given, slide and start, as Spark writes them."""
        if not spans:
            raise PlanError("window needs a length: window(time, '10 seconds')")
        size, *rest = (parse_duration(s, "window") for s in spans)
        return cls(size, rest[0] if rest else size, rest[1] if len(rest) > 1 else 0)

    @property
    def pane_us(self) -> int:
        return gcd(self.size_us, self.slide_us)

    @property
    def panes_per_window(self) -> int:
        return self.size_us // self.pane_us

    @property
    def panes_per_slide(self) -> int:
        return self.slide_us // self.pane_us

    @property
    def panes(self) -> Window:
        """One pane as a tumbling window."""
        return Window(self.pane_us, self.pane_us, self.offset_us % self.pane_us)

    @property
    def origin_us(self) -> int:
        """The start of window 0, aligned as Spark aligns windows. No window that holds a row starts before it."""
        earliest = MICROS_MIN - self.size_us
        return earliest + (self.offset_us - earliest) % self.slide_us

    def start_us(self, number: int) -> int:
        """When window `number` starts."""
        return self.origin_us + number * self.slide_us

    def last_closed(self, watermark_us: int) -> int:
        """The last window that ends at or before a watermark; -1 if there is none."""
        return max(-1, (watermark_us - self.size_us - self.origin_us) // self.slide_us)

    @property
    def text(self) -> str:
        text = duration_text(self.size_us)
        if self.slide_us != self.size_us:
            text += f" by {duration_text(self.slide_us)}"
        return f"{text} from {duration_text(self.offset_us)}" if self.offset_us else text
