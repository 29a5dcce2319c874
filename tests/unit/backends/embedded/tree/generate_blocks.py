"""Random aggregates over random joins, random trees for them, and random changes of their tables."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import get_args

from everview.planner.block import Block
from everview.planner.join_query import JoinQuery
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import Indicators, plan_tree
from everview.planner.variable_order import VariableOrder, variable_order
from everview.planner.view_tree import InnerView
from everview.relational.definitions.sum_aggregates import SUM_AGGREGATES, Summed
from everview.relational.expressions import TRUE, Call, Case, Cast, Column, Expression, Literal, conjunction
from everview.relational.functions.decimals import product_type, sum_type
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Schema,
)
from everview.relational.schema import columns, schema
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NAN,
    STRING,
    DataType,
    Decimal,
    Row,
    Value,
)
from everview.trigger.lower_tree import lower_tree
from everview.trigger.plan_block import Lowered, flat_tree, plan_hierarchy

NARROW, WIDE, KEY, WIDE_KEY = Decimal(8, 2), Decimal(25, 3), Decimal(10, 2), Decimal(22, 1)
VALUES: dict[DataType, tuple[Value, ...]] = {
    INT32: (0, 1, 2, -7, 2**31 - 1),
    INT64: (0, 1, 1 << 20, -(2**63), 2**63 - 1),
    KEY: (Number("0.00"), Number("1.50"), Number("-99999999.99")),
    WIDE_KEY: (Number("0.0"), Number("999999999999999999999.9"), Number("-999999999999999999999.9"), Number("1.0")),
    FLOAT64: (0.0, -0.0, 1.5, -2.0, 2.0**40),
    STRING: ("", "a", "b", "é"),
    DATE: (0, 9000, 9366, -1),
    BOOLEAN: (True, False),
    NARROW: (Number("0.00"), Number("0.05"), Number("-3.10"), Number("999999.99"), Number("17.00")),
    WIDE: (
        Number("0.000"),
        Number("9999999999999999999999.999"),
        Number("-9999999999999999999999.999"),
        Number("2.500"),
    ),
}
KEY_TYPES = (INT32, INT64, KEY, WIDE_KEY, FLOAT64, STRING, DATE, BOOLEAN)
NUMBERS = (INT32, NARROW, WIDE, FLOAT64)
ODD_FLOATS = (float("inf"), float("-inf"), NAN)


@dataclass(frozen=True)
class Table:
    """A table: key columns named after the variables, then one number of each type."""

    name: str
    fields: Schema
    variables: str


@dataclass(frozen=True)
class Query:
    """An aggregate with the tables below it."""

    aggregate: Aggregate
    tables: tuple[Table, ...]
    static: frozenset[str]
    has_odd_floats: bool


def random_query(rng: random.Random) -> Query:
    """A join of one to four occurrences of up to three tables, which may be acyclic, cyclic, or disconnected."""
    types = {v: rng.choice(KEY_TYPES) for v in "ABCD"}
    has_odd_floats = rng.random() < 0.2
    tables = tuple(_table(rng, f"t{i}", types) for i in range(rng.randint(1, 3)))
    atoms = [rng.choice(tables) for _ in range(rng.randint(1, 4))]
    joined = _join(rng, atoms)
    read = [columns_of_atom(atoms, i) for i in range(len(atoms))]
    keys = tuple(_key(rng, atoms[i], read[i]) for i in rng.choices(range(len(atoms)), k=rng.choice((0, 1, 1, 2, 3))))
    calls = tuple(_call(rng, atoms, read, allow_float_products=not has_odd_floats) for _ in range(rng.randint(1, 4)))
    names = tuple(f"o{i}" for i in range(len(keys) + len(calls)))
    used = tuple(dict.fromkeys(atoms))
    static = frozenset(t.name for t in used if rng.random() < 0.15)
    return Query(Aggregate(joined, keys, calls, names), used, static, has_odd_floats)


def _table(rng: random.Random, name: str, types: dict[str, DataType]) -> Table:
    variables = "".join(sorted(rng.sample("ABCD", rng.randint(1, 3))))
    keys = [Field(v, types[v], rng.random() < 0.5) for v in variables]
    numbers = [Field(f"n{i}", t, rng.random() < 0.5) for i, t in enumerate(NUMBERS)]
    return Table(name, (*keys, *numbers), variables)


def columns_of_atom(atoms: list[Table], number: int) -> tuple[Column, ...]:
    """The columns of one occurrence, in the numbering of the whole join."""
    start = sum(len(a.fields) for a in atoms[:number])
    return tuple(Column(start + i, f.type, f.nullable) for i, f in enumerate(atoms[number].fields))


def _join(rng: random.Random, atoms: list[Table]) -> Relation:
    """Left-deep, with equalities for most variables that meet; some conditions stay for a filter on top."""
    joined: Relation = Scan(atoms[0].name, atoms[0].fields)
    later: list[Expression] = []
    if rng.random() < 0.4:
        joined = Filter(joined, _condition(rng, atoms[0], columns_of_atom(atoms, 0)))
    for i, atom in enumerate(atoms[1:], 1):
        mine = columns_of_atom(atoms, i)
        conditions: list[Expression] = []
        for place, variable in enumerate(atom.variables):
            for j in range(i):
                if variable in atoms[j].variables and rng.random() < 0.75:
                    theirs = columns_of_atom(atoms, j)[atoms[j].variables.index(variable)]
                    function = rng.choice(("=", "=", "<=>"))
                    conditions.append(Call(function, (theirs, mine[place]), BOOLEAN))
        if rng.random() < 0.25:
            left, right = columns_of_atom(atoms, rng.randrange(i))[-4], mine[-4]
            conditions.append(Call(rng.choice(("<", ">=")), (left, right), BOOLEAN))
        if rng.random() < 0.3:
            conditions.append(_condition(rng, atom, mine))
        own = [c for c in conditions if rng.random() < 0.7]
        later += [c for c in conditions if c not in own]
        joined = Join(joined, Scan(atom.name, atom.fields), JoinKind.INNER, conjunction(tuple(own)))
    if later:
        joined = Filter(joined, conjunction(tuple(later)))
    if rng.random() < 0.3:
        names = tuple(f.name for f in schema(joined))
        joined = Project(joined, columns(joined), names)
    return joined


def _condition(rng: random.Random, atom: Table, read: tuple[Column, ...]) -> Expression:
    numbers = read[len(atom.variables) :]
    choice = rng.randrange(5)
    if choice == 0:
        return Call("<", (numbers[0], Literal(rng.choice((0, 1, 2)), INT32)), BOOLEAN)
    if choice == 1:
        return Call(">=", (numbers[1], Literal(Number("0.05"), NARROW)), BOOLEAN)
    if choice == 2:
        return Call("isnotnull", (numbers[2],), BOOLEAN)
    if choice == 3:
        picked = Case(((Call(">", (numbers[0], Literal(0, INT32)), BOOLEAN), numbers[1]),), Literal(None, NARROW))
        return Call(">", (picked, Literal(Number("-9.00"), NARROW)), BOOLEAN)
    key = rng.choice(read[: len(atom.variables)])
    return Call("or", (Call("isnull", (key,), BOOLEAN), Call("<=", (numbers[0], Literal(1, INT32)), BOOLEAN)), BOOLEAN)


def _key(rng: random.Random, atom: Table, read: tuple[Column, ...]) -> Expression:
    if rng.random() < 0.2:
        return Case(((Call(">", (read[-4], Literal(0, INT32)), BOOLEAN), read[-4]),), Literal(None, INT32))
    column = rng.choice(read[: len(atom.variables)])
    if column.type == DATE and rng.random() < 0.5:
        return Call("year", (column,), INT32)
    return column


def _call(
    rng: random.Random, atoms: list[Table], read: list[tuple[Column, ...]], *, allow_float_products: bool
) -> AggregateCall:
    i, j = rng.randrange(len(atoms)), rng.randrange(len(atoms))
    condition = _condition(rng, atoms[i], read[i]) if rng.random() < 0.3 else None
    choice = rng.randrange(12)
    a, b = read[i][-4:], read[j][-4:]
    if choice == 0:
        return AggregateCall("count", (), INT64, filter=condition)
    if choice == 1:
        return AggregateCall("count", (rng.choice(read[i]),), INT64, filter=condition)
    if choice == 2:
        return AggregateCall("count", (a[1], b[3]), INT64, filter=condition)
    if choice == 3:
        return _sum(a[0], condition)
    if choice == 4:
        return _sum(rng.choice(a), condition, function=rng.choice(("sum", "avg")))
    if choice == 5:
        one = Literal(Number(1), Decimal(1, 0))
        left, right = a[1], Call("-", (one, b[1]), sum_type(Decimal(1, 0), NARROW))
        return _sum(Call("*", (left, right), product_type(NARROW, _decimal(right.type))), condition)
    if choice == 6:
        wide = [Cast(c, INT64) for c in (a[0], b[0])]
        return _sum(Call(rng.choice(("*", "+", "-")), (wide[0], wide[1]), INT64), condition, function="try_sum")
    if choice == 7 and (allow_float_products or i == j):
        return _sum(Call(rng.choice(("*", "+", "-")), (a[3], b[3]), FLOAT64), condition)
    if choice == 8:
        function = rng.choice(("min", "max"))
        return AggregateCall(function, (_condition(rng, atoms[i], read[i]),), BOOLEAN, filter=condition)
    if choice in (9, 10) and allow_float_products:
        function = rng.choice([n for n, entry in SUM_AGGREGATES.items() if entry.summed is Summed.FLOATS])
        is_single = all(0 in product for product in SUM_AGGREGATES[function].products)
        x, y = _float(rng.choice((a[0], a[3]))), _float(rng.choice((b[0], b[3])))
        return AggregateCall(function, (x,) if is_single else (x, y), FLOAT64, filter=condition)
    chosen = rng.choice(b)
    otherwise = rng.choice((Literal(None, chosen.type), chosen))
    return _sum(Case(((_condition(rng, atoms[i], read[i]), chosen),), otherwise), condition)


def _float(column: Column) -> Expression:
    return column if column.type == FLOAT64 else Cast(column, FLOAT64)


def _decimal(t: DataType) -> Decimal:
    assert isinstance(t, Decimal)
    return t


def _sum(argument: Expression, condition: Expression | None, function: str = "sum") -> AggregateCall:
    t = argument.type
    if isinstance(t, Decimal):
        more = 4 if "avg" in function else 10
        result: DataType = Decimal(min(38, t.precision + more), t.scale + (4 if "avg" in function else 0))
    else:
        result = FLOAT64 if t == FLOAT64 or "avg" in function else INT64
    return AggregateCall(function, (argument,), result, filter=condition)


def random_program(rng: random.Random, block: Block, *, keeps_result: bool = True) -> Lowered:
    """Some program of the block: a tree that is planned, flat, or over any variable order, or recursive views of any depth."""
    choice = rng.randrange(6)
    if choice > 3:
        return plan_hierarchy(block, rng.choice((None, None, 1, 2, 3)), keeps_result=keeps_result)
    if choice == 0:
        tree = flat_tree(block)
    elif choice == 1:
        tree = plan_tree(block.query).tree
    else:
        order, indicators = random_order(rng, block.query), rng.choice(get_args(Indicators))
        tree = plan_tree(block.query, order=order, inline=choice == 2, indicators=indicators).tree
    program = lower_tree(block, tree, materialized_nodes(tree, roots=False), keeps_result=keeps_result)
    if all(atom.updatable for atom in block.query.atoms):
        return Lowered(program, None, None)
    joined = {c.name for v in tree.nodes() if isinstance(v, InnerView) and len(v.children) > 1 for c in v.children}
    loading = lower_tree(block, tree, frozenset(joined), keeps_result=keeps_result)
    return Lowered(program, None, loading)


def random_order(rng: random.Random, query: JoinQuery) -> VariableOrder:
    """Any variable order: a random variable on top of each component, and so on below."""
    parents: dict[str, str | None] = {}
    edges = [frozenset(a.variables) for a in query.atoms]

    def place(variables: frozenset[str], above: str | None) -> None:
        top = rng.choice(sorted(variables))
        parents[top] = above
        for component in _components(variables - {top}, edges):
            place(component, top)

    for component in _components(frozenset(query.variables), [*edges, *query.together]):
        place(component, None)
    return variable_order(query, parents)


def _components(variables: frozenset[str], edges: list[frozenset[str]]) -> list[frozenset[str]]:
    found: list[frozenset[str]] = [frozenset({v}) for v in sorted(variables)]
    for edge in edges:
        touched = [c for c in found if c & edge]
        if touched:
            found = [c for c in found if not c & edge] + [frozenset().union(*touched)]
    return found


def random_row(rng: random.Random, table: Table, *, has_odd_floats: bool) -> Row:
    """A row with values that often meet."""
    row = []
    for f in table.fields:
        is_number = f.name.startswith("n")
        if f.nullable and rng.random() < 0.2:
            row.append(None)
        elif has_odd_floats and f.type == FLOAT64 and is_number and rng.random() < 0.2:
            row.append(rng.choice(ODD_FLOATS))
        else:
            row.append(
                NAN if f.type == FLOAT64 and not is_number and rng.random() < 0.1 else rng.choice(VALUES[f.type])
            )
    return tuple(row)


def random_change(
    rng: random.Random, query: Query, contents: dict[str, list[Row]]
) -> dict[str, tuple[list[Row], list[Row]]]:
    """Rows that come and rows that go, in some of the tables."""
    change = {}
    for table in query.tables:
        if table.name in query.static or rng.random() < 0.3:
            continue
        come = [random_row(rng, table, has_odd_floats=query.has_odd_floats) for _ in range(rng.choice((0, 1, 2, 6)))]
        held = contents[table.name]
        share = rng.choice((0.0, 0.2, 0.2, 1.0))
        gone = [row for row in held if rng.random() < share]
        if come and rng.random() < 0.2:
            come += gone[:2]  # comes and goes at once
        change[table.name] = (come, gone)
    return change


__all__ = ["TRUE", "Query", "Table", "random_change", "random_order", "random_program", "random_query", "random_row"]
