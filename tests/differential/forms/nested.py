"""Nested values."""

from __future__ import annotations

from tests.differential.forms.form import forms

forms("nested", "a struct<x: int, y: string>", "a.x", "a.Y", "a.x + 1", "upper(a.y)", "a['x']")
forms("nested", "a struct<x: struct<z: double>, y: array<int>>", "a.x.z", "a.y[0]", "size(a.y)")
forms(
    "nested",
    "a array<int>, b int",
    "a[0]",
    "a[b]",
    "a[b % 3]",
    "element_at(a, 1)",
    "element_at(a, -1)",
    "element_at(a, b)",
    "try_element_at(a, b)",
    "get(a, b)",
    "get(a, 1)",
    "size(a)",
    "cardinality(a)",
    "array_size(a)",
    "array_contains(a, 1)",
    "array_contains(a, b)",
    "array(b, b + 1L)",
    "array_max(a)",
    "array_min(a)",
    "sort_array(a)",
    "array_position(a, 1)",
    "slice(a, 1, 2)",
    "transform(a, x -> x + 1)",
    "filter(a, v -> v > 0)",
    "exists(a, v -> v = b)",
    "array_join(transform(a, v -> string(v)), ',')",
    "aggregate(a, 0, (s, v) -> s + v)",
    "flatten(array(a, a))",
    "concat(a, array(b))",
    "array_distinct(a)",
)
forms(
    "nested",
    "a array<string>, b string",
    "a[1]",
    "array_contains(a, 'a')",
    "array_contains(a, b)",
    "size(a)",
    "array(a, a)",
    "concat_ws(',', a)",
    "array_join(a, ',')",
    "element_at(a, 2)",
)
forms(
    "nested",
    "a array<double>",
    "array_contains(a, 1.0D)",
    "array_contains(a, CAST('NaN' AS double))",
    "a[0] + 1",
    "array_contains(a, -0D)",
)
forms("nested", "a array<struct<x: int, y: string>>", "a[0].x", "a.x", "size(a)")
forms(
    "nested",
    "a map<string, int>, b string",
    "a['a']",
    "a[b]",
    "element_at(a, 'abc')",
    "try_element_at(a, ' ')",
    "size(a)",
    "map_keys(a)",
    "map_values(a)",
    "cardinality(a)",
    "map_contains_key(a, 'a')",
    "map_entries(a)",
    "a['a'] + 1",
)
forms(
    "nested",
    "a int, b string",
    "struct(a, b)",
    "named_struct('p', a, 'q', b)",
    "struct(a AS n, b)",
    "struct(a + 1, b).col1",
    "array(a, 1, NULL)",
    "named_struct('p', a).p + 1",
    "map('k', a)",
    "array(b, 'x')",
    "struct(a, 1, 'x' AS lit)",
    "array()",
    "to_json(struct(a, b))",
    "struct(*)",
)
forms(
    "nested",
    "a string",
    "get_json_object(a, '$.x')",
    "from_json(a, 'x int')",
    "parse_json(a)",
    "xxhash64(a)",
    "hash(a)",
)
