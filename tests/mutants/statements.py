"""Bugs in the reading of statements and in the rules of the optimizer."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_MEANING = "tests/plan/sql/test_meaning.py::"
_ROWS = f"{_MEANING}test_a_statement_gives_these_rows_at_the_edge"
_REFUSED = f"{_MEANING}test_a_statement_is_refused_by_name"
_RULES = "tests/plan/test_rules.py::"
_AT_SUBMIT = "tests/cloud/test_refusals.py::"

STATEMENTS = (
    Mutant(
        "a clause that nobody read is dropped",
        "plan/sql/reading.py",
        "if kind is None and self._left:",
        "if kind is None and len(self._left) > 1:",
        test="tests/plan/sql/test_reading.py::test_an_argument_that_nobody_takes_is_refused_by_its_name",
    ),
    Mutant(
        "GROUP BY 1 is the second entry",
        "plan/sql/grouping.py",
        "return entries[place - 1].node",
        "return entries[place % len(entries)].node",
        test=_ROWS,
    ),
    Mutant(
        "HAVING reads an alias where a key has the same name",
        "plan/sql/grouping.py",
        "return None if _in_aggregate(name) or is_key(name) else entry(name)",
        "return None if _in_aggregate(name) else entry(name)",
        test=_ROWS,
    ),
    Mutant(
        "a cell of a pivot without rows is zero",
        "plan/sql/pivots.py",
        "cell = exp.Case(ifs=[exp.If(this=_some(holds), true=_only(node, holds, text))])",
        "cell = _only(node, holds, text)",
        test=_ROWS,
    ),
    Mutant(
        "a pivot finds no rows for null",
        "plan/sql/pivots.py",
        "exp.NullSafeEQ(this=k.copy(), expression=v.copy())",
        "exp.EQ(this=k.copy(), expression=v.copy())",
        test=_ROWS,
    ),
    Mutant(
        "a pivot over two columns reads the first alone",
        "plan/sql/pivots.py",
        "pairs = zip(keys, parts, strict=True)",
        "pairs = list(zip(keys, parts, strict=True))[:1]",
        test=_ROWS,
    ),
    Mutant(
        "FILTER on count(*) counts every row",
        "plan/sql/filters.py",
        "exp.If(this=found.expression.this.copy(), true=kept.copy())",
        "exp.If(this=exp.true() if isinstance(inner, exp.Star) else found.expression.this.copy(), true=kept.copy())",
        test=_ROWS,
    ),
    Mutant(
        "names of WITH do not hide streams",
        "plan/sql/query.py",
        "if found := names.get(identifier.name.lower()):",
        "if (found := names.get(identifier.name.lower())) and identifier.name not in ('t', 'u'):",
        test=_ROWS,
    ),
    Mutant(
        "WITH w(y, x) keeps the old names",
        "plan/sql/query.py",
        "return Relation(relation.plan, relation.scope.under(name, columns))",
        "return Relation(relation.plan, relation.scope.under(name))",
        test=_ROWS,
    ),
    Mutant(
        "EXCEPT after a star takes nothing away",
        "plan/sql/scope.py",
        "        kept.remove(gone[0])\n",
        "",
        test=_ROWS,
    ),
    Mutant(
        "NOT EXISTS keeps the rows of EXISTS",
        "plan/sql/in_spark/memberships.py",
        'how = "left_anti" if each.negated else "left_semi"',
        'how = "left_semi"',
        test=f"{_MEANING}test_exists_is_a_semi_join_and_not_exists_an_anti_join",
    ),
    Mutant(
        "NOT IN over a stream is an anti join",
        "plan/sql/in_spark/memberships.py",
        "if each.negated and each.values:",
        "if each.negated and len(each.values) > 1:",
        test=_REFUSED,
    ),
    Mutant(
        "USING shows the left key of a right join",
        "plan/sql/joins.py",
        'shown = {n: b if how == "right_outer" else a for n, a, b in keys}',
        "shown = {n: a for n, a, b in keys}",
        test=f"{_MEANING}test_using_shows_the_key_of_the_side_that_is_always_there",
    ),
    Mutant(
        "two streams are joined without an equality",
        "plan/sql/joins.py",
        "if not left.static and not right.static and not _equates(on, left, right):",
        "if not left.static and not right.static and on is None:",
        test=_REFUSED,
    ),
    Mutant(
        "a stream in a subquery of an expression reaches Spark",
        "plan/sql/in_spark/left_to_spark.py",
        "if not members[view].plan.static and item.parent_select is not select:",
        "if not members[view].plan.static and item.parent_select is None:",
        test=_REFUSED,
    ),
    Mutant(
        "a condition that can raise is checked before the one that guards it",
        "plan/sql/in_spark/left_to_spark.py",
        "and not refusal_of(condition) and not fallible(condition):",
        "and not refusal_of(condition):",
        test=f"{_MEANING}test_conditions_that_cannot_raise_are_checked_before_spark",
    ),
    Mutant(
        "event time is not handed to Spark with the columns that are read",
        "plan/sql/in_spark/left_to_spark.py",
        "if whole or n.lower() in said or c == plan.traits.event_time]",
        "if whole or n.lower() in said]",
        test=f"{_MEANING}test_spark_reads_views_that_no_user_can_have_named",
    ),
    Mutant(
        "a table of values has the types of its first row",
        "plan/sql/query.py",
        "types.append(common_type([value.dtype for value in column]))",
        "types.append(common_type([value.dtype for value in column[:1]]))",
        test=f"{_MEANING}test_values_are_a_table_whose_types_hold_all_rows",
    ),
    Mutant(
        "DISTINCT is left out where Spark computes the SELECT",
        "plan/sql/in_spark/left_to_spark.py",
        "        place.replace(written)\n",
        "",
        test=f"{_MEANING}test_an_aggregate_with_distinct_is_computed_over_a_set",
    ),
    Mutant(
        "sum(DISTINCT x) is sum(x)",
        "plan/aggregates.py",
        "    return function if function in IDEMPOTENT else _SETS.get(function)\n",
        '    return function if function in IDEMPOTENT or function == "sum" else _SETS.get(function)\n',
        test=f"{_MEANING}test_an_aggregate_with_distinct_is_computed_over_a_set",
    ),
    Mutant(
        "a condition on the right side of a left join goes below it",
        "plan/rules/push_filters.py",
        'if below.how == "inner" and _movable(condition):',
        'if below.how != "full_outer" and _movable(condition):',
        test=f"{_RULES}test_filters_on_one_side_go_below_a_join",
    ),
    Mutant(
        "a condition on a result goes below the aggregate",
        "plan/rules/push_filters.py",
        "if not columns_of(condition) <= set(keys):",
        "if not columns_of(condition) & set(keys):",
        test=f"{_RULES}test_a_filter_on_keys_goes_below_the_aggregate_and_not_below_the_watermark",
    ),
    Mutant(
        "a filter on a value that can raise goes below what computes it",
        "plan/rules/push_filters.py",
        "and (refusal_of(e) or fallible(e))",
        "and refusal_of(e)",
        test=f"{_RULES}test_a_filter_on_a_value_that_can_raise_stays_above_it",
    ),
    Mutant(
        "the condition of an outer join becomes a filter after it",
        "plan/rules/filter_after_join.py",
        "operator.condition is None or not site(operator).edge:",
        "operator.condition is None:",
        test=f"{_RULES}test_the_condition_of_an_inner_join_at_the_edge_is_a_filter_after_it",
    ),
    Mutant(
        "a struct that is read whole is cut to the fields that are read too",
        "plan/rules/narrow_structs.py",
        "for n, c in _accesses(e) if c.name not in whole}",
        "for n, c in _accesses(e)}",
        test=f"{_RULES}test_a_struct_that_is_read_whole_stays_whole",
    ),
    Mutant(
        "a watermark goes below the step that computes its column",
        "plan/rules/lower_watermarks.py",
        "return lowered if lowered.traits.event_time == operator.column else operator",
        "return lowered",
        test=f"{_RULES}test_a_watermark_stays_above_what_the_edge_can_run_and_what_computes_its_column",
    ),
    Mutant(
        "a query that Spark's analysis refuses is tried again",
        "cloud/runtime.py",
        "            waits = run.spark is None and not run.refused\n",
        "            waits = run.spark is None\n",
        test=f"{_AT_SUBMIT}test_a_query_that_analysis_refuses_at_its_start_is_tried_once",
    ),
    Mutant(
        "a query whose table is not there yet is refused for ever",
        "cloud/analysis.py",
        'return not (error.getCondition() or "").split(".")[0].endswith(_MISSING)',
        "return True",
        test=f"{_AT_SUBMIT}test_a_query_whose_table_is_not_there_yet_is_tried_again",
    ),
    Mutant(
        "without a `rove cloud` nobody is asked what Spark would refuse",
        "api/session.py",
        "why = said.refused if said.known else self._refused_here(asked.plan, asked.cloud.mode)",
        "why = said.refused",
        test=f"{_AT_SUBMIT}test_the_spark_of_this_computer_is_asked_if_the_network_has_none",
    ),
)
