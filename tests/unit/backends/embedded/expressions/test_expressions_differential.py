"""Random expressions on random batches: compiled and by definition, they are the same."""

from __future__ import annotations

import pytest
from expressions_checks import by_definition, check
from expressions_strategies import TYPES, call, column_values, expression, signatures
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from everview.backends.embedded.dictionary import Dictionary
from everview.errors import UnsupportedQuery
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Expression, columns_of, remap_columns

DICTIONARY = Dictionary()
"""One for all examples, as in an engine: codes and memos of earlier expressions are there already."""

many = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


def _pick(data: st.DataObject):
    return lambda options: data.draw(st.sampled_from(options))


def _check_on_random_rows(data: st.DataObject, made: Expression) -> None:
    try:
        compile_expression(made)
    except UnsupportedQuery:
        assume(False)
    pick = _pick(data)
    used = sorted(columns_of(made))
    moved = remap_columns(made, used.index)
    types = [TYPES[c % len(TYPES)] for c in used]
    base, times = pick((0, 1, 2, 5)), pick((1, 1, 8, 60))
    columns = [column_values(pick, t, base) * times for t in types]
    rows = [tuple(c[i] for c in columns) for i in range(base)]
    try:
        by_definition(moved, rows)
    except (ArithmeticError, ValueError):
        assume(False)  # the definition itself has no answer
    check(moved, columns, types, base * times, DICTIONARY)


@many
@given(st.data())
def test_every_function_agrees_with_its_definition(data: st.DataObject) -> None:
    """One call of any function over columns and literals has the definition's values, or its errors."""
    pick = _pick(data)
    _check_on_random_rows(data, call(pick, pick(signatures()), 1))


@many
@given(st.data())
def test_nested_expressions_agree_with_their_definition(data: st.DataObject) -> None:
    """Nested calls, casts and branches keep lazy evaluation, NULLs, bounds and 128-bit values straight."""
    pick = _pick(data)
    _check_on_random_rows(data, expression(pick, pick(TYPES), 3))


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_nested_expressions_agree_with_their_definition_at_length(data: st.DataObject) -> None:
    """The same, many times."""
    pick = _pick(data)
    _check_on_random_rows(data, expression(pick, pick(TYPES), 3))
