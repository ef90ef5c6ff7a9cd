"""Upper and lower case as Spark's ICU has them.

Law: Arrow maps letters one to one, which is right for all but a few: those that become several letters (ß → SS), and the
Greek sigma, whose small form depends on where it stands. Texts with such letters are mended first, each distinct one once.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.plan.expressions.functions.conversion import rewrite

# Letters whose upper case is more than one letter (Unicode's SpecialCasing.txt, unconditional part).
_EXPANDING = (
    "ßŉǰΐΰևẖẗẘẙẚẞὐὒὔὖ"
    + "".join(map(chr, range(0x1F80, 0x1FB0)))
    + "ᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼ"
    + "ﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"
)
_UPPER = {ord(letter): letter.upper() for letter in _EXPANDING}
_HAS_EXPANDING = f"[{_EXPANDING}]"
_HAS_POSITIONAL = "[Σİ]"


def upper(x: pa.Array) -> pa.Array:
    """Upper case; a letter that was already expanded stays as it is."""
    odd = pc.fill_null(pc.match_substring_regex(x, _HAS_EXPANDING), False)
    return pc.utf8_upper(rewrite(x, odd, lambda text: text.translate(_UPPER)))


def lower(x: pa.Array) -> pa.Array:
    """Lower case."""
    odd = pc.fill_null(pc.match_substring_regex(x, _HAS_POSITIONAL), False)
    return pc.utf8_lower(rewrite(x, odd, _lower_positional))


def _lower_positional(text: str) -> str:
    """Only İ and Σ in lower case: the first takes two letters, the second looks at its neighbours."""
    text = text.replace("İ", "i̇")
    return "".join(low if letter == "Σ" else letter for letter, low in zip(text, text.lower(), strict=True))
