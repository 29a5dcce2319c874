"""Groups of a struct are groups of its fields."""

from __future__ import annotations

from everview.relational.expressions import Call, Column, Expression
from everview.relational.nodes import Aggregate, Project, Relation
from everview.relational.schema import columns, is_nullable
from everview.relational.types import Struct


def group_by_struct_fields(relation: Relation) -> Relation | None:
    """γ[struct(e, f)](R) = π[struct(e, f)](γ[e, f](R)), where the struct is made right below, and so never NULL.

    A struct is one value of the dictionary, fields are words: grouping by a time window is grouping by two numbers.

    >>> from everview.relational.nodes import AggregateCall
    >>> from everview.relational.rule_examples import L, a, b, show
    >>> from everview.relational.types import INT64, Struct
    >>> pair = Call("struct", (a, b), Struct(("x", "y"), (INT64, INT64)))
    >>> made = Project(L, (pair,), ("p",))
    >>> plan = Aggregate(made, columns(made), (AggregateCall("count", (), INT64),), ("p", "n"))
    >>> show(plan)
    aggregate by [p] [count(*) as n]
      project [struct(a, b) as p]
        scan l [a, b]
    >>> show(group_by_struct_fields(plan))
    project [struct(x, y) as p, n]
      aggregate by [x, y] [count(*) as n]
        project [struct(a, b) as p, a as x, b as y]
          scan l [a, b]
    """
    if not (isinstance(relation, Aggregate) and isinstance(relation.child, Project)):
        return None
    below = relation.child
    made = {key: found for key in relation.keys if (found := _struct_below(key, below)) is not None}
    if not made:
        return None
    expressions, names = list(below.expressions), list(below.names)
    keys: list[Expression] = []
    key_names: list[str] = []
    places: list[tuple[int, ...]] = []
    for key, name in zip(relation.keys, relation.names, strict=False):
        struct = made.get(key)
        if struct is None:
            places.append((len(keys),))
            keys.append(key)
            key_names.append(name)
            continue
        places.append(tuple(range(len(keys), len(keys) + len(struct.args))))
        assert isinstance(struct.type, Struct)
        for field, field_name in zip(struct.args, struct.type.names, strict=True):
            keys.append(_column(len(expressions), field))
            key_names.append(field_name)
            expressions.append(field)
            names.append(field_name)
    calls = relation.names[len(relation.keys) :]
    wide = Project(below.child, tuple(expressions), tuple(names))
    grouped = Aggregate(wide, tuple(keys), relation.aggregates, (*key_names, *calls))
    groups = columns(grouped)
    outputs: list[Expression] = []
    for key, at in zip(relation.keys, places, strict=True):
        struct = made.get(key)
        outputs.append(groups[at[0]] if struct is None else Call("struct", tuple(groups[i] for i in at), struct.type))
    outputs.extend(groups[len(keys) :])
    return Project(grouped, tuple(outputs), relation.names)


def _struct_below(key: Expression, below: Project) -> Call | None:
    made = below.expressions[key.index] if isinstance(key, Column) else None
    return made if isinstance(made, Call) and made.function == "struct" and made.args else None


def _column(index: int, expression: Expression) -> Column:
    return Column(index, expression.type, is_nullable(expression))
