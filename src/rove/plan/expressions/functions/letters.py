"""Upper and lower case, as Spark's ICU library computes them.

Law: Arrow maps letters one to one. That is right except for letters that become several letters (ß → SS), the Greek
sigma, whose small form depends on its position, and letters newer than Spark's Unicode 16, which Spark does not change.
Texts with such letters are converted separately, each distinct text once.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import STRING
from rove.plan.expressions.tree import Datum


def _letters(ranges: str) -> str:
    """Letters from hexadecimal code points and ranges of them."""
    bounds = ([int(end, 16) for end in part.split("-")] for part in ranges.split())
    return "".join(chr(c) for ends in bounds for c in range(ends[0], ends[-1] + 1))


# Letters whose upper case is more than one letter (Unicode's SpecialCasing.txt, unconditional part).
_EXPANDING = _letters(
    "df 149 1f0 390 3b0 587 1e96-1e9a 1f50 1f52 1f54 1f56 1f80-1faf 1fb2-1fb4 1fb6 1fb7 1fbc 1fc2-1fc4 1fc6 "
    "1fc7 1fcc 1fd2 1fd3 1fd6 1fd7 1fe2-1fe4 1fe6 1fe7 1ff2-1ff4 1ff6 1ff7 1ffc fb00-fb06 fb13-fb17"
)
_NEWER = _letters("277 27c a7dd a7e2 ab4b ab4c ab6c ab6d 1df40-1df7f")
_EXPANDED = {ord(letter): letter.upper() for letter in _EXPANDING}


def _case(x: pa.Array, kernel: Callable[[Datum], Datum], odd_letters: str, mend: Callable[[str], str]) -> pa.Array:
    """Arrow's conversion, with texts that contain odd letters converted separately. Newer letters are put back."""
    plain = kernel(x)
    odd = pc.fill_null(pc.match_substring_regex(x, odd_letters), False)
    if not odd.true_count:
        return plain
    distinct = pc.unique(x.filter(odd))
    mended = [mend(text) for text in distinct.to_pylist()]
    cased = kernel(pa.array(mended, STRING)).to_pylist()
    kept = [
        "".join(old if old in _NEWER else new for old, new in zip(before, after, strict=True))
        for before, after in zip(mended, cased, strict=True)
    ]
    return pc.if_else(odd, pa.array(kept, STRING).take(pc.index_in(x, value_set=distinct)), plain)


def upper(x: pa.Array) -> pa.Array:
    """Upper case; a letter that was already expanded stays as it is."""
    return _case(x, pc.utf8_upper, f"[{_EXPANDING}{_NEWER}]", lambda text: text.translate(_EXPANDED))


def lower(x: pa.Array) -> pa.Array:
    """Lower case."""
    return _case(x, pc.utf8_lower, f"[Σİ{_NEWER}]", _lower_positional)


def _lower_positional(text: str) -> str:
    """Lower case of İ and Σ only: İ becomes two letters, Σ depends on its neighbours."""
    text = text.replace("İ", "i̇")
    return "".join(low if letter == "Σ" else letter for letter, low in zip(text, text.lower(), strict=True))
