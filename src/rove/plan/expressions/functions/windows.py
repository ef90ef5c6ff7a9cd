"""`window(time, size)` as a value: the tumbling window that a moment falls into.

Law: windows are aligned to 1970-01-01T00:00Z plus the start offset, also for moments before it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import TypeMismatch
from rove.model.schema import BIGINT, TIMESTAMP, WINDOW, type_name
from rove.plan.expressions.functions.registry import arity, constant, function
from rove.plan.expressions.tree import Call, Datum, Expr
from rove.plan.expressions.types import Refused
from rove.plan.windows import Window


def floor_to(micros: Datum, size_us: int, offset_us: int = 0) -> Datum:
    """The start of the slot of `size_us` that each instant falls into."""
    size = pa.scalar(size_us, BIGINT)
    shifted = pc.subtract(micros, pa.scalar(offset_us % size_us, BIGINT)) if offset_us % size_us else micros
    return pc.subtract(micros, pc.modulo(shifted, size))


@function("window")
def window(args: tuple[Expr, ...]) -> Expr:
    arity("window", args, 2, 4)
    time = args[0]
    if time.dtype != TIMESTAMP:
        raise TypeMismatch(f"window needs a timestamp, got {type_name(time.dtype)}")
    spec = Window.parse([str(constant(a, "a window's length")) for a in args[1:]])
    if spec.slide_us != spec.size_us:
        raise Refused("hopping windows as a value are left to Spark; inside groupBy they run at the edge", WINDOW)

    def kernel(moments: Datum, *_: Datum) -> Datum:
        starts = floor_to(moments.view(BIGINT), spec.size_us, spec.offset_us)
        ends = pc.add(starts, pa.scalar(spec.size_us, BIGINT))
        fields = [starts.view(TIMESTAMP), ends.view(TIMESTAMP)]
        return pa.StructArray.from_arrays(fields, fields=list(WINDOW.fields), mask=moments.is_null())

    return Call(WINDOW, "window", args, kernel)
