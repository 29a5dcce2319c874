"""PIVOT, session windows and generators as the algebra has them: filters, window functions, unions.

- PIVOT. Spark groups by the pivot column first, then takes for each of its values the one row of the group that has it. That is
  MAX over the rows with the value, of which there is at most one.
- ``session_window``. A row opens a session if it begins after the latest end before it: with the rows of a group in order of
  time, ``start > max(end) over (rows before)``. The session of a row begins at the last opening, and ends at the greatest end
  in it.
- ``stack(n, …)`` is a union of n projections, ``inline`` explodes an array of structs and takes their fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode, snake_case
from everview.frontend.translate_expression import expr_id, translate_expression
from everview.frontend.translation import Translation, field_of, with_type
from everview.relational.expressions import Call, Case, Expression, Literal
from everview.relational.nodes import (
    Frame,
    FrameUnit,
    Generate,
    Project,
    Relation,
    SortKey,
    UnionAll,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT32, Array, Struct

MOST_ROWS = 100_000
"""Rows of ``range(…)`` that are written out."""


def pivots_as_arrays(node: CatalystNode) -> CatalystNode:
    """Every ``PivotFirst`` as the array of its values' aggregates, of which the projection above takes the items."""
    if node.name == "AggregateExpression" and node.children[0].name == "PivotFirst":
        pivot = node.children[0]
        column, value = pivot.children
        items = []
        for wanted in pivot.fields["values"]:
            literal = CatalystNode("Literal", {"dataType": pivot.fields["pivotType"], "exact": wanted}, ())
            is_wanted = CatalystNode("EqualNullSafe", {}, (column, literal))
            items.append(
                CatalystNode("AggregateExpression", node.fields, (CatalystNode("Max", {}, (value,)), is_wanted))
            )
        return CatalystNode("CreateArray", {}, tuple(items))
    return CatalystNode(node.name, node.fields, tuple(pivots_as_arrays(c) for c in node.children))


def is_session(node: CatalystNode) -> bool:
    """Whether a grouping expression is the attribute of a session window."""
    return bool(node.fields.get("is_session"))


def with_sessions(rows: Translation, session: CatalystNode, others: Sequence[CatalystNode]) -> Translation:
    """The rows, each with the session that it is in instead of the span from its own time to the end of its gap."""
    keys = tuple(translate_expression(e, rows.scope) for e in others)
    own = rows.scope.columns[expr_id(session)]
    assert isinstance(own.type, Struct)
    width = len(rows.attributes)
    names = tuple(f.name for f in schema(rows.relation))
    start_type = own.type.types[0]
    spans = tuple(Call("getfield", (own, Literal(i, INT32)), start_type) for i in (0, 1))
    relation: Relation = Project(rows.relation, (*columns(rows.relation), *spans), (*names, "start", "end"))
    start, end = columns(relation)[width:]
    order = (SortKey(start),)

    def running(
        value: Expression, upper: int, partition: tuple[Expression, ...], below: Relation, name: str
    ) -> Relation:
        frame = Frame(FrameUnit.ROWS, None, Literal(upper, INT32))
        return Window(below, partition, order, (WindowCall("max", (value,), start_type, frame),), (name,))

    relation = running(end, -1, keys, relation, "before")
    before = columns(relation)[-1]
    opens = Call("or", (Call("isnull", (before,), BOOLEAN), Call(">", (start, before), BOOLEAN)), BOOLEAN)
    opening = Case(((opens, start),), Literal(None, start_type))
    relation = running(opening, 0, keys, relation, "opened")
    opened = columns(relation)[-1]
    whole = Frame(FrameUnit.ROWS, None, None)
    last = WindowCall("max", (end,), start_type, whole)
    relation = Window(relation, (*keys, opened), (), (last,), ("closed",))
    closed = columns(relation)[-1]
    merged = Call("struct", (opened, closed), own.type)
    outputs = tuple(merged if i == own.index else c for i, c in enumerate(columns(relation)[:width]))
    return Translation(Project(relation, outputs, names), rows.attributes)


def translate_generator(rows: Translation, node: CatalystNode) -> Translation:
    """The rows with what a generator makes of each."""
    generator = node.tree("generator")
    assert generator is not None
    output = node.trees("generatorOutput")
    attributes = rows.attributes + tuple(expr_id(a) for a in output)
    names = tuple(a.fields["name"] for a in output)
    is_outer = bool(node.fields["outer"])
    match generator.name:
        case "Explode" | "PosExplode":
            array = translate_expression(generator.children[0], rows.scope)
            if not isinstance(array.type, Array):
                raise UnsupportedQuery(
                    f"{snake_case(generator.name).replace('_', '')} of a map is not supported.",
                    operator="explode",
                    hint="posexplode(map_entries(m)) gives the position and a struct of key and value.",
                )
            if len(names) == 3:  # the position, key and value of a map's entries
                return Translation(_position_and_entry(rows, array, is_outer, names), attributes)
            return Translation(
                Generate(rows.relation, array, is_outer, generator.name == "PosExplode", names), attributes
            )
        case "Inline":
            return Translation(_inline(rows, generator, is_outer, names), attributes)
        case "Stack":
            return Translation(_stack(rows, generator, node), attributes)
        case _:
            sql = _GENERATORS.get(generator.name, generator.name)
            raise UnsupportedQuery(f"the generator {sql} is not supported.", operator=sql, hint=_INSTEAD.get(sql))


_GENERATORS = {
    "JsonTuple": "json_tuple",
    "UserDefinedGenerator": "a generator of the user's",
    "SQLKeywords": "sql_keywords",
    "Unnest": "unnest",
    "VariantExplode": "variant_explode",
}
_INSTEAD = {
    "json_tuple": "take the parts with get_json_object(json, '$.name').",
    "unnest": "LATERAL explode(array) makes the same rows of one array; posexplode gives positions.",
    "variant_explode": "explode(variant_get(v, '$', 'array<string>')) makes rows of an array in a variant.",
}


def _inline(rows: Translation, generator: CatalystNode, is_outer: bool, names: tuple[str, ...]) -> Relation:
    array = translate_expression(generator.children[0], rows.scope)
    assert isinstance(array.type, Array), "inline takes an array"
    struct = array.type.element
    assert isinstance(struct, Struct), "inline takes an array of structs"
    exploded = Generate(rows.relation, array, is_outer, False, ("element",))
    *kept, element = columns(exploded)
    fields = tuple(Call("getfield", (element, Literal(i, INT32)), t) for i, t in enumerate(struct.types))
    return Project(exploded, (*kept, *fields), (*(f.name for f in schema(rows.relation)), *names))


def _position_and_entry(rows: Translation, entries: Expression, is_outer: bool, names: tuple[str, ...]) -> Relation:
    assert isinstance(entries.type, Array)
    assert isinstance(entries.type.element, Struct), "entries of a map are structs"
    exploded = Generate(rows.relation, entries, is_outer, True, ("pos", "entry"))
    *kept, entry = columns(exploded)
    fields = tuple(Call("getfield", (entry, Literal(i, INT32)), t) for i, t in enumerate(entries.type.element.types))
    return Project(exploded, (*kept, *fields), (*(f.name for f in schema(rows.relation)), *names))


def _stack(rows: Translation, generator: CatalystNode, node: CatalystNode) -> Relation:
    count, *given = (translate_expression(c, rows.scope) for c in generator.children)
    assert isinstance(count, Literal), "Spark takes a constant number of rows"
    fields = tuple(field_of(a) for a in node.trees("generatorOutput"))
    width = -(-len(given) // count.value)
    names = (*(f.name for f in schema(rows.relation)), *(f.name for f in fields))
    parts = []
    for row in range(count.value):
        values = given[row * width : (row + 1) * width]
        values += [Literal(None, f.type) for f in fields[len(values) :]]
        typed = tuple(with_type(v, f) for v, f in zip(values, fields, strict=True))
        parts.append(Project(rows.relation, (*columns(rows.relation), *typed), names))
    return UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]


def translate_range(node: CatalystNode) -> Translation:
    """``range(…)`` of SQL, whose rows are constants."""
    start, end, step = (int(node.fields[key]) for key in ("start", "end", "step"))
    numbers = range(start, end, step)
    if len(numbers) > MOST_ROWS:
        raise UnsupportedQuery(
            f"range with {len(numbers):,} rows is not supported: a view holds at most {MOST_ROWS:,} of them.",
            operator="range",
            hint="make a table of the numbers.",
        )
    output = node.trees("output")
    return Translation(
        Values(tuple((n,) for n in numbers), tuple(field_of(a) for a in output)), tuple(map(expr_id, output))
    )
