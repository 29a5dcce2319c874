"""Terms as plain relational plans whose last column is the weight.

A Z-set is a bag of rows with one more column, so the algebra that queries are written in can also say what their deltas are,
and any engine that evaluates plans runs them: a join multiplies weights, consolidation is a sum grouped by the row.

Each input j of term k is scanned under the name ``k.j``, with the columns that the term uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.backends.spark.payloads import WEIGHT_TYPE, weighted_type, zero
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.terms import Term
from everview.relational.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    remap_columns,
)
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Generate,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Schema,
    UnionAll,
    Values,
)
from everview.relational.schema import columns, schema
from everview.relational.traverse import inputs, with_inputs
from everview.relational.types import BOOLEAN, INT32, INT64, STRING, Array, DataType, Decimal

ONE, ZERO = Literal(1, INT64), Literal(0, INT64)


def scan_name(term: int, position: int) -> str:
    """The name of an input of a term."""
    return f"{term}.{position}"


def weighted(fields: Schema) -> Schema:
    """The columns of a Z-set of such rows, named by position."""
    return (*(Field(f"c{i}", f.type, f.nullable) for i, f in enumerate(fields)), WEIGHT)


def weight_of(plan: Relation) -> Column:
    """The last column."""
    return Column(len(schema(plan)) - 1, INT64, False)


def project(plan: Relation, expressions: tuple[Expression, ...], weight: Expression) -> Relation:
    """One row of values and its weight for each row."""
    names = (*(f"c{i}" for i in range(len(expressions))), WEIGHT.name)
    return Project(plan, (*expressions, weight), names)


def sum_plan(terms: tuple[Term, ...], starts: tuple[int, ...]) -> Relation:
    """The sum of terms, each joined beginning with the input that ``starts`` names."""
    parts = tuple(term_plan(t, k, start) for k, (t, start) in enumerate(zip(terms, starts, strict=True)))
    return parts[0] if len(parts) == 1 else UnionAll(parts)


def term_plan(term: Term, number: int, start: int) -> Relation:
    """One term: its inputs joined one after the other, each as soon as a conjunct connects it."""
    places: dict[int, int] = {}
    weights: list[int] = []
    left: Relation | None = None
    done: frozenset[int] = frozenset()
    waiting = list(term.conjuncts)
    equal: dict[str, list[set[Expression]]] = {"=": [], "<=>": []}
    for position in join_order(term, start):
        right = _leaf(term, number, position)
        width = 0 if left is None else len(schema(left))
        for i, column in enumerate(term.used[position]):
            places[term.starts[position] + column] = width + i
        weights.append(width + len(term.used[position]))
        own = [c for c in waiting if term.inputs_of(c) == {position}]
        waiting = [c for c in waiting if c not in own]
        if own:
            shifted = {term.starts[position] + c: i for i, c in enumerate(term.used[position])}
            right = Filter(right, conjunction(tuple(remap_columns(c, lambda i, s=shifted: s[i]) for c in own)))  # type: ignore[misc]
        done = done | {position}
        ready = [c for c in waiting if term.inputs_of(c) <= done]
        waiting = [c for c in waiting if c not in ready]
        ready = _without_implied(ready, equal)
        condition = conjunction(tuple(remap_columns(c, lambda i: places[i]) for c in ready))
        if left is None:
            left = right if condition == TRUE else Filter(right, condition)
        else:
            left = Join(left, right, JoinKind.INNER, condition)
    assert left is not None
    outputs = tuple(remap_columns(e, lambda i: places[i]) for e in term.outputs)
    return project(left, outputs, _product(weights, term.sign))


def _without_implied(ready: list[Expression], equal: dict[str, list[set[Expression]]]) -> list[Expression]:
    """The conjuncts without equalities that others imply by way of a third column: a = b and a = c imply b = c.

    ``equal`` are the columns known to be equal, by the function that says so. Terms of trees equate a variable that three
    inputs have in pairs, so that any two of them can be joined.
    """
    kept = []
    for conjunct in ready:
        if (
            isinstance(conjunct, Call)
            and conjunct.function in equal
            and all(isinstance(a, Column) for a in conjunct.args)
        ):
            known = equal[conjunct.function]
            classes = [c for c in known if not c.isdisjoint(conjunct.args)]
            if any(c.issuperset(conjunct.args) for c in classes):
                continue
            known[:] = [*(c for c in known if c not in classes), set(conjunct.args).union(*classes)]
        kept.append(conjunct)
    return kept


def join_order(term: Term, start: int) -> Sequence[int]:
    """The planner's order; else one in which each input is connected to those before it, where the term allows."""
    if term.orders:
        return term.orders[start]
    order = [start]
    left = [i for i in range(len(term.inputs)) if i != start]
    edges = [term.inputs_of(c) for c in term.conjuncts]
    while left:
        near = [i for i in left if any(i in e and e & set(order) for e in edges)]
        chosen = (near or left)[0]
        order.append(chosen)
        left.remove(chosen)
    return order


def _leaf(term: Term, number: int, position: int) -> Relation:
    leaf = term.inputs[position]
    if isinstance(leaf, Values):
        rows = tuple((*(row[c] for c in term.used[position]), 1) for row in leaf.rows)
        return Values(rows, weighted(term.used_fields(position)))
    return Scan(scan_name(number, position), weighted(term.used_fields(position)))


def _product(weights: list[int], sign: int) -> Expression:
    result: Expression = Column(weights[0], INT64, False)
    for place in weights[1:]:
        result = Call("*", (result, Column(place, INT64, False)), INT64)
    return result if sign > 0 else Call("negative", (result,), INT64)


def group_sums(plan: Relation, key_count: int) -> Relation:
    """Σ weight · column, grouped by the first columns; the sums have the types of a state's payload."""
    every = columns(plan)
    keys, values = every[:key_count], every[key_count:-1]
    calls = tuple(_sum(_weighted(v, every[-1])) for v in values)
    grouped = Aggregate(plan, keys, calls, tuple(f"c{i}" for i in range(len(keys) + len(calls))))
    return _without_nulls(grouped, key_count)


def add_up(plan: Relation, key_count: int) -> Relation:
    """Σ column, grouped by the first columns; types stay as they are."""
    every = columns(plan)
    calls = tuple(_sum(v) for v in every[key_count:])
    grouped = Aggregate(plan, every[:key_count], calls, tuple(f.name for f in schema(plan)))
    summed = _without_nulls(grouped, key_count)
    back = tuple(c if c.type == f.type else Cast(c, f.type) for c, f in zip(columns(summed), schema(plan), strict=True))
    return Project(summed, back, tuple(f.name for f in schema(plan)))


def consolidated(plan: Relation) -> Relation:
    """Each row once, with its sum of weights, where that is not 0."""
    width = len(schema(plan)) - 1
    summed = add_up(plan, width)
    return Filter(summed, Call("not", (Call("=", (weight_of(summed), ZERO), BOOLEAN),), BOOLEAN))


def expanded(plan: Relation) -> Relation:
    """The bag: each row of a consolidated Z-set as often as its weight says, without the weight."""
    weight = weight_of(plan)
    # An array of so many elements, in words that every engine has: n-1 commas separate n texts.
    commas = Call("repeat", (Literal(",", STRING), Cast(Call("-", (weight, ONE), INT64), INT32)), STRING)
    parts = Call("split", (commas, Literal(",", STRING), Literal(-1, INT32)), Array(STRING, False))
    several = Generate(Filter(plan, Call(">", (weight, ZERO), BOOLEAN)), parts, False, False, ("n",))
    kept = columns(plan)[:-1]
    return Project(several, kept, tuple(f.name for f in schema(plan)[:-1]))


def negated(plan: Relation) -> Relation:
    """The same rows with the other sign."""
    return project(plan, columns(plan)[:-1], Call("negative", (weight_of(plan),), INT64))


def _weighted(value: Expression, weight: Expression) -> Expression:
    product = weighted_type(value.type)
    if product is None or value.type == INT64:
        return Call("*", (value, weight), INT64)
    return Call("*", (value, Cast(weight, WEIGHT_TYPE)), product)


def _sum(value: Expression) -> AggregateCall:
    return AggregateCall("sum", (value,), _sum_result(value))


def _sum_result(value: Expression) -> DataType:
    if isinstance(value.type, Decimal):
        return Decimal(min(38, value.type.precision + 10), value.type.scale)
    return INT64


def _without_nulls(grouped: Relation, key_count: int) -> Relation:
    """A sum over nothing is 0 here: the only group of a grouping by nothing may be empty."""
    every = columns(grouped)
    filled = tuple(c if i < key_count else Call("coalesce", (c, zero(c.type)), c.type) for i, c in enumerate(every))
    return Project(grouped, filled, tuple(f.name for f in schema(grouped)))


def on_consolidated_leaves(plan: Relation) -> Relation:
    """The plan over consolidated inputs: no expression sees a row that was deleted since."""
    done: dict[int, Relation] = {}

    def visit(node: Relation) -> Relation:
        if id(node) not in done:
            if isinstance(node, Scan):
                done[id(node)] = consolidated(node)
            else:
                done[id(node)] = with_inputs(node, tuple(visit(i) for i in inputs(node)))
        return done[id(node)]

    return visit(plan)
