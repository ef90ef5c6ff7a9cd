"""Structs, arrays and maps: access to their items, their size, and building them.

Law: an array's index is looked up through its offsets, so one `take` answers for all rows. An index out of
bounds raises with `[]` and `element_at`, and is null with `get` and `try_element_at`; a map's missing key is
null.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, TypeMismatch, nearest
from rove.model.names import quoted
from rove.model.schema import BIGINT, BOOLEAN, INT, STRING, VOID, type_name
from rove.plan.expressions.functions.comparison import can_be_nan
from rove.plan.expressions.functions.masks import any_true, as_array, row_numbers
from rove.plan.expressions.functions.registry import arity, coerce, constant, function
from rove.plan.expressions.functions.strings import known_text
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, sql
from rove.plan.expressions.types import Refused, common_type, is_integral

Kernel = Callable[..., Datum]
_STRUCT_FIELD = pc.get_function("struct_field")


@function(".")
def field(args: tuple[Expr, ...]) -> Expr:
    """A field of a struct, ignoring case."""
    value, name = args[0], known_text(args[1], "a field's name")
    if pt.is_list(value.dtype) and pt.is_struct(value.dtype.value_type):
        raise Refused("a field of every struct in an array is left to Spark")
    if not pt.is_struct(value.dtype):
        if pt.is_map(value.dtype):
            return at((value, args[1]))
        if isinstance(value.dtype, pa.OpaqueType):
            raise Refused(f"a field of {type_name(value.dtype)} is left to Spark")
        raise TypeMismatch(f"`{sql(value)}` is {type_name(value.dtype)}, not a struct, so it has no field `{name}`")
    names = [f.name for f in value.dtype.fields]
    found = [i for i, known in enumerate(names) if known.lower() == name.lower()]
    if not found:
        raise TypeMismatch(f"`{sql(value)}` has no field `{name}`; {nearest(name, names)}")
    if len(found) > 1:
        raise TypeMismatch(f"the field `{name}` of `{sql(value)}` is ambiguous")
    (index,) = found
    part = value.dtype.field(index)
    template = f"{{0}}.{quoted(part.name)}"
    options = pc.StructFieldOptions([index])  # made once, because its cost would show in small batches
    return Call(part.type, f".{part.name}", (value,), lambda x: _STRUCT_FIELD.call([x], options), template=template)


def items_at(lists: pa.Array, index: Datum) -> tuple[pa.Array, pa.Array]:
    """The items at 0-based positions, null where there is none, and the rows whose position is out of bounds."""
    length = pc.list_value_length(lists)
    inside = pc.and_(pc.greater_equal(index, 0), pc.less(index, length))
    starts = lists.offsets.slice(0, len(lists))
    place = pc.if_else(inside, pc.add(starts, index), pa.scalar(None, INT))
    return lists.values.take(place), pc.invert(inside)


def _array_item(name: str, value: Expr, index: Expr, strict: bool, template: str | None) -> Expr:
    """`[]` and `get` count from 0."""
    index = coerce(index, INT)
    if strict:
        _refuse_unmarked_null(value, index)

    def kernel(lists: Datum, places: Datum) -> Datum:
        lists = as_array(lists, len(places)) if isinstance(lists, pa.Scalar) else lists
        items, outside = items_at(lists, places)
        if strict and any_true(outside):
            raise ArithmeticFault("an array index is out of bounds; use `get` or `try_element_at` to get null instead")
        return items

    return Call(value.dtype.value_type, name, (value, index), kernel, strict, template=template)


def _refuse_unmarked_null(value: Expr, index: Expr) -> None:
    """Refuse a nullable index into `array(…)`: Spark believes the item cannot be null, and gives 0 for a null index."""
    if isinstance(value, Call) and value.name == "array" and not isinstance(index, Literal):
        raise Refused("an item of a new array at a place that may be null is left to Spark", value.dtype.value_type)


@function("[]")
def at(args: tuple[Expr, ...]) -> Expr:
    value, key = args
    template = "({0})[{1}]" if isinstance(value, Call) else "{0}[{1}]"
    if pt.is_struct(value.dtype):
        return field((value, key))
    if pt.is_map(value.dtype):
        return _map_item("[]", value, key, template)
    if not pt.is_list(value.dtype):
        if isinstance(value.dtype, pa.OpaqueType):
            raise Refused(f"an item of {type_name(value.dtype)} is left to Spark")
        raise TypeMismatch(f"`{sql(value)}` is {type_name(value.dtype)}, which has no items")
    if not is_integral(key.dtype):
        if key.dtype in (STRING, VOID):
            raise Refused("an array index that is not an integer is left to Spark", value.dtype.value_type)
        raise TypeMismatch(f"an array index is an integer, not {type_name(key.dtype)}")
    if key.dtype == BIGINT:
        raise Refused("an array index of type bigint is left to Spark", value.dtype.value_type)
    return _array_item("[]", value, key, True, template)


@function("get")
def get(args: tuple[Expr, ...]) -> Expr:
    arity("get", args, 2)
    if not pt.is_list(args[0].dtype):
        raise TypeMismatch(f"get needs an array, got {type_name(args[0].dtype)}")
    return _array_item("get", args[0], args[1], False, None)


def _element_at(name: str, strict: bool) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        """Counts from 1, or from the end if negative; 0 is an error in either form."""
        arity(name, args, 2)
        value, key = args
        if pt.is_map(value.dtype):
            return _map_item(name, value, key, None)
        if not pt.is_list(value.dtype):
            raise TypeMismatch(f"{name} needs an array or a map, got {type_name(value.dtype)}")
        index = coerce(key, INT)
        if strict:
            _refuse_unmarked_null(value, index)

        def kernel(lists: Datum, places: Datum) -> Datum:
            lists = as_array(lists, len(places)) if isinstance(lists, pa.Scalar) else lists
            zero = pc.and_(pc.equal(places, 0), pc.is_valid(lists))
            from_end = pc.add(pc.list_value_length(lists), places)
            items, outside = items_at(lists, pc.if_else(pc.less(places, 0), from_end, pc.subtract(places, 1)))
            if any_true(zero):
                raise ArithmeticFault(f"{name} counts from 1; the place is 0")
            if strict and any_true(outside):
                raise ArithmeticFault("an array index is out of bounds; use try_element_at to get null instead")
            return items

        return Call(value.dtype.value_type, name, (value, index), kernel, fallible=True)


_element_at("element_at", True)
_element_at("try_element_at", False)


def _map_item(name: str, value: Expr, key: Expr, template: str | None) -> Expr:
    if not isinstance(key, Literal) or not key.value.is_valid or can_be_nan(key):
        raise Refused("a map's key must be a literal at the edge", value.dtype.item_type)
    if pt.is_floating(value.dtype.key_type) or pt.is_nested(value.dtype.key_type):
        raise Refused(f"a lookup by {type_name(value.dtype.key_type)} is left to Spark", value.dtype.item_type)
    if key.dtype != value.dtype.key_type:
        raise Refused("a map's key of another type is left to Spark", value.dtype.item_type)
    wanted = key.value

    def kernel(maps: Datum, _: Datum) -> Datum:
        return pc.map_lookup(maps, query_key=wanted, occurrence="first")

    return Call(value.dtype.item_type, name, (value, key), kernel, template=template)


@function("size", "cardinality")
def size(args: tuple[Expr, ...]) -> Expr:
    arity("size", args, 1)
    if not pt.is_list(args[0].dtype) and not pt.is_map(args[0].dtype):
        if args[0].dtype == VOID or isinstance(args[0].dtype, pa.OpaqueType):
            raise Refused("the size of an unknown type is left to Spark", INT)
        raise TypeMismatch(f"size needs an array or a map, got {type_name(args[0].dtype)}")
    return Call(INT, "size", args, _size)


def _size(x: pa.Array) -> pa.Array:
    return pc.list_value_length(_parts(x, x.keys) if pt.is_map(x.type) else x)


@function("array_size")
def array_size(args: tuple[Expr, ...]) -> Expr:
    arity("array_size", args, 1)
    if not pt.is_list(args[0].dtype):
        raise TypeMismatch(f"array_size needs an array, got {type_name(args[0].dtype)}")
    return Call(INT, "array_size", args, pc.list_value_length)


@function("map_keys")
def map_keys(args: tuple[Expr, ...]) -> Expr:
    arity("map_keys", args, 1)
    return Call(pa.list_(_map(args[0]).key_type), "map_keys", args, lambda x: _parts(x, x.keys))


@function("map_values")
def map_values(args: tuple[Expr, ...]) -> Expr:
    arity("map_values", args, 1)
    return Call(pa.list_(_map(args[0]).item_type), "map_values", args, lambda x: _parts(x, x.items))


def _map(expr: Expr) -> pa.DataType:
    if not pt.is_map(expr.dtype):
        raise TypeMismatch(f"expected a map, got {type_name(expr.dtype)}")
    return expr.dtype


def _parts(maps: pa.Array, items: pa.Array) -> pa.Array:
    """Keys or values as lists. Arrow returns those of the whole buffer, and the offsets refer to the whole buffer."""
    offsets = maps.offsets
    mask = pc.is_null(maps) if maps.null_count else None
    return pa.ListArray.from_arrays(pa.concat_arrays([offsets]), items, mask=mask).cast(pa.list_(items.type))


@function("array_contains")
def array_contains(args: tuple[Expr, ...]) -> Expr:
    """True if found; else null if an item is null; else false. A null array or value gives null."""
    arity("array_contains", args, 2)
    value, wanted = args
    if not pt.is_list(value.dtype):
        raise TypeMismatch(f"array_contains needs an array, got {type_name(value.dtype)}")
    item = value.dtype.value_type
    if wanted.dtype == VOID or pt.is_nested(item) or wanted.dtype != item:
        raise Refused("array_contains of another type is left to Spark", BOOLEAN)
    if can_be_nan(wanted):
        raise Refused("array_contains of a value that can be NaN is left to Spark", BOOLEAN)
    return Call(BOOLEAN, "array_contains", args, _contains)


def _contains(lists: Datum, wanted: Datum) -> Datum:
    lists = as_array(lists, len(wanted)) if isinstance(lists, pa.Scalar) else lists
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    sought = wanted if isinstance(wanted, pa.Scalar) else wanted.take(parents)
    rows = row_numbers(len(lists))
    found = pc.is_in(rows, value_set=parents.filter(pc.fill_null(pc.equal(items, sought), False)))
    with_null = pc.is_in(rows, value_set=parents.filter(pc.is_null(items)))
    known = pc.if_else(pc.and_(with_null, pc.invert(found)), pa.scalar(None, BOOLEAN), found)
    return pc.if_else(pc.and_(pc.is_valid(lists), pc.is_valid(wanted)), known, pa.scalar(None, BOOLEAN))


@function("named_struct")
def named_struct(args: tuple[Expr, ...]) -> Expr:
    if not args or len(args) % 2:
        raise TypeMismatch("named_struct takes names and values in turn")
    names = [str(constant(a, "a field's name")) for a in args[::2]]
    values = args[1::2]
    if any(v.dtype == VOID for v in values):
        raise Refused("a struct with an untyped null is left to Spark")
    dtype = pa.struct([pa.field(n, v.dtype) for n, v in zip(names, values, strict=True)])
    pairs = ", ".join(f"{{{2 * i}}}, {{{2 * i + 1}}}" for i in range(len(names)))

    def kernel(*columns: Datum) -> Datum:
        made = pc.make_struct(*columns[1::2], field_names=names)
        return made if made.type == dtype else pc.cast(made, dtype)

    return Call(dtype, "named_struct", args, kernel, template=f"named_struct({pairs})")


@function("struct")
def struct(args: tuple[Expr, ...]) -> Expr:
    raise Refused("a struct is bound by its fields' names")


@function("array")
def array(args: tuple[Expr, ...]) -> Expr:
    """Concatenate the columns, then reorder the values row by row with one `take`."""
    if not args:
        raise Refused("an empty array has no type until Spark gives it one")
    item = common_type([a.dtype for a in args])
    if item == VOID or pt.is_nested(item):
        raise Refused(f"an array of {type_name(item)} is left to Spark")
    values = tuple(coerce(a, item) for a in args)
    width = len(values)

    def kernel(*columns: Datum) -> Datum:
        rows = next(len(c) for c in columns if isinstance(c, pa.Array))
        stacked = pa.concat_arrays([as_array(c, rows) for c in columns])
        places = row_numbers(rows * width)
        row = pc.divide(places, width)
        order = pc.add(pc.multiply(pc.subtract(places, pc.multiply(row, width)), rows), row)
        offsets = pc.cast(pc.multiply(row_numbers(rows + 1), width), pa.int32())
        return pa.ListArray.from_arrays(offsets, stacked.take(order))

    return Call(pa.list_(item), "array", values, kernel)
