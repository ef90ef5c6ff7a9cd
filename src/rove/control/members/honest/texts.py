"""Texts of other processes, made fit to be stored and shown.

Law: a text that was cut and cleaned here has no control characters, so it moves no cursor and hides nothing on a
terminal, and it has a bound.
"""

from __future__ import annotations

TEXT_MAX = 1_000  # characters of a sentence
WORD_MAX = 64  # characters of a reason, a digest


def cleaned(text: str, most: int = TEXT_MAX) -> str:
    """A text of at most so many characters. Everything that cannot be printed becomes a space. O(most).

    >>> cleaned("the disk\\n\\x1b[2Jis full", 14)
    'the disk  [2J…'
    """
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut if cut.isprintable() else "".join(each if each.isprintable() else " " for each in cut)
