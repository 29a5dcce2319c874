"""What a relational plan means: the bag it denotes, computed from scratch in plain Python.

A bag is a list of rows, repeated by multiplicity, in no order. This is the oracle of all tests: it is written to be obviously
right, and the only speed it cares for is that an equality join of tens of thousands of rows hashes instead of looping.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from everview.errors import EvaluationError
from everview.relational import spark_code
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.definitions.aggregates import evaluate_aggregate
from everview.relational.definitions.ordering import ordered_rows
from everview.relational.definitions.windows import evaluate_window
from everview.relational.evaluate import Compiled, compile_expression, foresee
from everview.relational.functions.failures import recursion_too_deep
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import (
    RECURSION,
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    input_name,
)
from everview.relational.schema import schema
from everview.relational.types import Row

Bag = list[Row]


def evaluate_plan(plan: Relation, tables: Mapping[str, Sequence[Row]]) -> Bag:
    """The bag of a plan, given the bag of every table and view it scans (by the name in the ``Scan``).

    Equal sub-plans are evaluated once.
    """
    done: dict[Relation, Bag] = {}

    def bag(relation: Relation) -> Bag:
        if relation not in done:
            done[relation] = _evaluate(relation, bag, tables)
        return done[relation]

    return bag(plan)


def _evaluate(relation: Relation, bag: Callable[[Relation], Bag], tables: Mapping[str, Sequence[Row]]) -> Bag:
    match relation:
        case Scan():
            return list(tables[relation.table])
        case Values():
            return list(relation.rows)
        case Filter():
            foresee((relation.condition,), bag(relation.child))
            holds = compile_expression(relation.condition)
            return [row for row in bag(relation.child) if holds(row) is True]
        case Project():
            foresee(relation.expressions, bag(relation.child))
            expressions = [compile_expression(e) for e in relation.expressions]
            return [tuple([e(row) for e in expressions]) for row in bag(relation.child)]
        case Join():
            return _join(relation, bag(relation.left), bag(relation.right))
        case Aggregate():
            return _aggregate(relation, bag(relation.child))
        case Distinct():
            return list(dict.fromkeys(bag(relation.child)))
        case UnionAll():
            return [row for i in relation.inputs for row in bag(i)]
        case SparkQuery():
            given = [rows_to_arrow(bag(i), schema(i)) for i in relation.inputs]
            return rows_from_arrow(spark_code.answer(relation, given), relation.fields)
        case Recursive():
            return _recursive(relation, [bag(i) for i in relation.inputs], bag(relation.anchor))
        case ExceptAll():
            return _elements(Counter(bag(relation.left)) - Counter(bag(relation.right)))
        case IntersectAll():
            return _elements(Counter(bag(relation.left)) & Counter(bag(relation.right)))
        case UnionMax():
            return _elements(Counter(bag(relation.left)) | Counter(bag(relation.right)))
        case Window():
            return evaluate_window(relation, bag(relation.child))
        case TopK():
            rows = ordered_rows(bag(relation.child), relation.order, schema(relation.child))
            end = None if relation.limit is None else relation.offset + relation.limit
            return rows[relation.offset : end]
        case Generate():
            return _generate(relation, bag(relation.child))
        case _:
            assert_never(relation)


def _elements(counts: Counter[Row]) -> Bag:
    return list(counts.elements())


def _join(join: Join, left: Bag, right: Bag) -> Bag:
    partners = _partner_finder(join, right)
    left_nulls = (None,) * len(schema(join.left))
    right_nulls = (None,) * len(schema(join.right))
    out: Bag = []
    matched: set[int] = set()
    for row in left:
        found = partners(row)
        match join.kind:
            case JoinKind.INNER:
                out.extend([row + right[i] for i in found])
            case JoinKind.LEFT | JoinKind.SINGLE:
                if join.kind is JoinKind.SINGLE and len(found) > 1:
                    raise EvaluationError(
                        "a scalar subquery returned more than one row.", condition="SCALAR_SUBQUERY_TOO_MANY_ROWS"
                    )
                out.extend([row + right[i] for i in found] or [row + right_nulls])
            case JoinKind.RIGHT:
                matched.update(found)
                out.extend([row + right[i] for i in found])
            case JoinKind.FULL:
                matched.update(found)
                out.extend([row + right[i] for i in found] or [row + right_nulls])
            case JoinKind.SEMI:
                if found:
                    out.append(row)
            case JoinKind.ANTI:
                if not found:
                    out.append(row)
            case JoinKind.MARK:
                out.append((*row, bool(found)))
            case _:
                assert_never(join.kind)
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        out.extend([left_nulls + row for i, row in enumerate(right) if i not in matched])
    return out


def _partner_finder(join: Join, right: Bag) -> Callable[[Row], list[int]]:
    """The function from a left row to the positions of the right rows on which the condition is true."""
    condition = split_join_condition(join)
    residual = [compile_expression(e) for e in condition.residual]
    left_keys = [compile_expression(p.left) for p in condition.equalities]
    right_keys = [compile_expression(p.right) for p in condition.equalities]
    null_safe = [p.null_safe for p in condition.equalities]
    index: dict[Row, list[int]] = defaultdict(list)
    for i, row in enumerate(right):
        key = _key(row, right_keys, null_safe)
        if key is not None:
            index[key].append(i)

    def find(row: Row) -> list[int]:
        key = _key(row, left_keys, null_safe)
        candidates = index.get(key, []) if key is not None else []
        if not residual:
            return candidates
        return [i for i in candidates if all(e(row + right[i]) is True for e in residual)]

    return find


def _key(row: Row, keys: list[Compiled], null_safe: list[bool]) -> Row | None:
    """The join key of a row; None if an equality that is not null-safe meets a NULL, which equals nothing."""
    values = tuple([k(row) for k in keys])
    if any(v is None and not safe for v, safe in zip(values, null_safe, strict=True)):
        return None
    return values


def _aggregate(aggregate: Aggregate, rows: Sequence[Row]) -> Bag:
    foresee([*aggregate.keys, *(a for call in aggregate.aggregates for a in call.args)], rows)
    keys = [compile_expression(k) for k in aggregate.keys]
    groups: dict[Row, list[Row]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row in rows:
        groups[tuple([k(row) for k in keys])].append(row)
    calls = [_compile_call(c) for c in aggregate.aggregates]
    return [key + tuple([call(group) for call in calls]) for key, group in groups.items()]


def _compile_call(call: AggregateCall) -> Callable[[list[Row]], object]:
    args = [compile_expression(a) for a in call.args]
    keep = None if call.filter is None else compile_expression(call.filter)

    def compute(group: list[Row]) -> object:
        rows = group if keep is None else [row for row in group if keep(row) is True]
        values = [tuple([a(row) for a in args]) for row in rows]
        if call.distinct:
            values = list(dict.fromkeys(values))
        return evaluate_aggregate(call, values)

    return compute


def _recursive(recursive: Recursive, given: list[Bag], anchor: Bag) -> Bag:
    """Round by round, until one is empty."""
    tables = {input_name(i): rows for i, rows in enumerate(given)}
    out, current = list(anchor), anchor
    for _ in range(recursive.limit):
        current = evaluate_plan(recursive.step, {**tables, RECURSION: current})
        if not current:
            return out
        out.extend(current)
    if current:
        raise recursion_too_deep(recursive.limit)
    return out


def _generate(generate: Generate, rows: Bag) -> Bag:
    array = compile_expression(generate.array)
    nulls = (None, None) if generate.with_position else (None,)
    out: Bag = []
    for row in rows:
        elements = array(row)
        if not elements:
            if generate.outer:
                out.append(row + nulls)
        elif generate.with_position:
            out.extend([(*row, i, element) for i, element in enumerate(elements)])
        else:
            out.extend([(*row, element) for element in elements])
    return out
