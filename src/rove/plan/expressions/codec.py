"""Writes typed trees as wire structs and reads them back.

Law: the tree that is read equals the tree that was written, flags included. Most trees are written as SQL text. The
writer reads its own text first; if that gives another tree (the binder folds what an aggregate left unfolded, and does
not know dates past the year 9999), the tree is written in smaller parts until every part reads back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from rove.model.errors import PlanError, RoveError, UnknownColumn, nearest
from rove.plan import wire
from rove.plan.aggregates import AggregateCall, aggregate
from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import Call, Column, Expr, Foreign, Literal, sql, substitute, walk

# Errors of a tree that has no SQL text, and of text that the binder reads differently.
_NO_TEXT = (RoveError, TypeError, ValueError, LookupError, ArithmeticError)


def write_expression(expr: Expr, schema: pa.Schema) -> wire.Expression:
    """The shortest wire form of an expression that reads back as the same expression."""
    for form in _forms(expr, schema):
        try:
            if same(read_expression(form, schema), expr):
                return form
        except _NO_TEXT:
            continue
    raise PlanError(f"no other node could rebuild the expression {expr!r}; write it differently")


def read_expression(word: wire.Expression, schema: pa.Schema) -> Expr:
    """The expression over the columns of `schema`."""
    match word:
        case wire.Name(name=name):
            return _column(name, schema)
        case wire.Text(text=text):
            return bind(text, schema)
        case wire.Constant(dtype=dtype, value=value, text=text):
            return Literal(read_type(dtype), _read_value(value), text)
        case wire.Foreign(dtype=dtype, text=text, columns=columns, refusal=refusal):
            return Foreign(read_type(dtype), text, tuple(_column(n, schema) for n in columns), refusal)
        case wire.Filled(text=text, holes=holes, filling=filling):
            shape = read_schema(holes)
            parts = [read_expression(w, schema) for w in filling]
            if [p.dtype for p in parts] != list(shape.types):
                raise PlanError(f"the parts of `{text}` are not of the types it was written for")
            return substitute(bind(text, shape), dict(zip(shape.names, parts, strict=True)))


def same(a: Expr, b: Expr) -> bool:
    """Whether two trees are equal, including the flags that `==` does not compare."""
    return a == b and all(_flags(x) == _flags(y) for x, y in zip(walk(a), walk(b), strict=True))


def write_call(call: AggregateCall, schema: pa.Schema) -> wire.Call:
    argument = None if call.argument is None else write_expression(call.argument, schema)
    usual = wire.Call(call.function, argument, call.name, None)
    if read_call(usual, schema) == call:
        return usual
    return wire.Call(call.function, argument, call.name, (write_type(call.dtype), call.partial_refusal or ""))


def read_call(word: wire.Call, schema: pa.Schema) -> AggregateCall:
    argument = None if word.argument is None else read_expression(word.argument, schema)
    if word.given is None:
        return aggregate(word.function, argument, word.name)
    dtype, refusal = word.given
    return AggregateCall(word.function, argument, word.name, read_type(dtype), partial_refusal=refusal)


def columns_read(exprs: Iterable[Expr]) -> pa.Schema:
    """The columns that expressions read, in the order of their first use."""
    found = {n.name: n.dtype for e in exprs for n in walk(e) if isinstance(n, Column)}
    return pa.schema(list(found.items()))


def write_schema(schema: pa.Schema) -> wire.Schema:
    return bytes(schema.serialize())


def read_schema(data: wire.Schema) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def write_type(dtype: pa.DataType) -> wire.Schema:
    return write_schema(pa.schema([("", dtype)]))


def read_type(data: wire.Schema) -> pa.DataType:
    return read_schema(data).field(0).type


def _forms(expr: Expr, schema: pa.Schema) -> Iterator[wire.Expression]:
    match expr:
        case Column(name=name):
            yield wire.Name(name)
        case Foreign(dtype=dtype, text=text, columns=columns, refusal=refusal):
            yield wire.Foreign(write_type(dtype), text, tuple(c.name for c in columns), refusal)
        case Literal(dtype=dtype, value=value, text=said):
            yield from _text(expr)
            yield wire.Constant(write_type(dtype), _write_value(value), said)
        case Call(args=args):
            yield from _text(expr)
            # Some functions need literals in some positions; others would fold the literals away.
            for holes in ([i for i, a in enumerate(args) if not isinstance(a, Literal)], range(len(args))):
                yield from _filled(expr, holes, schema)


def _filled(expr: Call, holes: Sequence[int], schema: pa.Schema) -> Iterator[wire.Filled]:
    """The call with some arguments replaced by holes. Each of those arguments is written separately."""
    names = {i: f"__{n}" for n, i in enumerate(holes)}
    args = tuple(Column(a.dtype, names[i]) if i in names else a for i, a in enumerate(expr.args))
    for word in _text(replace(expr, args=args)):
        shape = pa.schema([(name, expr.args[i].dtype) for i, name in names.items()])
        yield wire.Filled(word.text, write_schema(shape), tuple(write_expression(expr.args[i], schema) for i in holes))


def _text(expr: Expr) -> Iterator[wire.Text]:
    """The expression's SQL, if it has any."""
    try:
        yield wire.Text(sql(expr))
    except _NO_TEXT:
        return


def _flags(node: Expr) -> object:
    if isinstance(node, Call):
        return node.fallible, node.lazy, node.refusal, node.kernel is None
    return None


def _column(name: str, schema: pa.Schema) -> Column:
    if name not in schema.names:
        raise UnknownColumn(f"no column `{name}`; {nearest(name, schema.names)}")
    return Column(schema.field(name).type, name)


def _write_value(value: pa.Scalar) -> bytes:
    row = pa.record_batch([pa.repeat(value, 1)], names=[""])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as writer:
        writer.write_batch(row)
    return bytes(sink.getvalue())


def _read_value(data: bytes) -> pa.Scalar:
    row = pa.ipc.open_stream(data).read_next_batch()
    row.validate(full=True)
    return row.column(0)[0]
