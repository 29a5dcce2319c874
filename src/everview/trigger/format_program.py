"""The text of a view's trigger program: the same for the same program, for ``explain`` and golden files.

    view v = #3
    #1 := project [o_orderkey, o_custkey] of orders    -- linear
    #2 := semi join on (o_custkey = c_custkey) of #1, customer    -- pointwise
    #3 := view tree over #2: aggregate by [o_custkey] [count(*) as n]    -- linear
      result result[o_custkey]: #

    on customer
      δ#2 := new - old of #1 ⋉ customer for the keys of δcustomer    -- look-up in counts of customer by c_custkey, …

First come the collections with what makes them, then what a change of each input does, one line a collection. ``#2 += δ#2``
stands where later changes search the collection, so that it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from everview.relational.format import format_expression, format_node, format_plan
from everview.relational.nodes import (
    Aggregate,
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
)
from everview.trigger.format_tree_program import format_partition, format_stored, format_trigger
from everview.trigger.program import (
    Anew,
    Apply,
    ChangeRule,
    CheckSingle,
    Collection,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Place,
    Program,
    Search,
    StatementKind,
    ThresholdFilter,
    TreeBlock,
    kind_of_statement,
    scans,
)
from everview.trigger.tree_program import AccessKind, TreeProgram

_JOINS = {JoinKind.INNER: "⋈", JoinKind.SEMI: "⋉", JoinKind.ANTI: "▷", JoinKind.SINGLE: "checked by"}
_NO_NOTES: Mapping[str, str] = {}


def format_program(view: str, program: Program, notes: Mapping[str, str] = _NO_NOTES) -> str:
    """The text of a program; ``notes`` has a line for collections that an engine runs otherwise than the program says."""
    lines = [f"view {view} = {program.root}", *_definitions(program, notes)]
    stored = program.stored()
    for given in program.inputs:
        if given.is_changing:
            lines += ["", f"on {given.name}"]
            lines += [f"  {given.name} += δ{given.name}"] if given.name in stored else []
            for collection, sides in program.moved_by(given.name):
                lines += [f"  {line}" for line in _moves(collection, sides)]
                lines += [f"  {collection.name} += δ{collection.name}"] if collection.name in stored else []
    return "\n".join(lines) + "\n"


def _definitions(program: Program, notes: Mapping[str, str]) -> Iterator[str]:
    for collection in program.collections:
        yield f"{collection.name} := {_definition(collection)}    -- {kind_of_statement(collection.statement).value}"
        yield from (f"  {line}" for line in _details(collection))
        if collection.name in notes:
            yield f"  {notes[collection.name]}"


def _definition(collection: Collection) -> str:
    statement = collection.statement
    read = ", ".join(scan.table for scan in scans(statement))
    match statement:
        case Apply(node=node):
            return f"{format_node(node)} of {read}" if read else format_node(node)
        case CheckSingle(node=node):
            left, right = (scan.table for scan in scans(statement))
            return f"{left}, where a row with two partners in {right} is an error: {format_node(node)}"
        case NestedFilter():
            return _nested_definition(statement)
        case ThresholdFilter(rows=rows, value=value, column=column, condition=condition):
            names = (rows.fields[column].name, *(f"{value.table}.{f.name}" for f in value.fields))
            return f"rows of {rows.table} where {format_expression(condition, names)}"
        case TreeBlock(source=source):
            return f"view tree over {read}: {format_node(source)}"
        case FactorizedBlock(source=source):
            return f"view tree over {read}, whose result stays factorized: {format_node(source)}"
        case MatrixBlock(names=names):
            return f"product of matrices {' · '.join(names)}, in the order of fewest multiplications"
        case Anew():
            return f"computed anew from {read}" if read else "computed once"


def _details(collection: Collection) -> Iterator[str]:
    """What stands below a definition: the views of a tree, or why there is none; the plan of what is computed anew."""
    match collection.statement:
        case TreeBlock(lowered=lowered):
            yield from format_stored(lowered.program)
        case FactorizedBlock(planned=planned):
            yield from format_stored(planned.factorized.program)
        case Anew(plan=plan):
            yield from format_plan(plan).splitlines()
        case Apply(why_no_tree=why):
            if why is not None:
                yield f"no view tree: {why}"
        case NestedFilter(is_by_keys=True, call=call) if call.function in ("max", "min"):
            yield "kept as the values of keys, in their order: what the others have is the whole without them, in O(log N)"
        case NestedFilter(is_by_keys=True):
            yield "kept as margins of the outer keys, in order: a changed row shifts those of a stretch in O(log N)"
        case NestedFilter():
            yield "kept as running values along the order: a changed row shifts those behind it in O(log N)"
        case CheckSingle() | ThresholdFilter() | MatrixBlock():
            pass


def _moves(collection: Collection, sides: tuple[int, ...]) -> Iterator[str]:
    """What changes of some inputs do to a collection, one after another."""
    match collection.statement:
        case Apply(node=node, rules=rules) | CheckSingle(node=node, rules=rules):
            for side in sides:
                sign = ":=" if side == sides[0] else "+="
                yield f"δ{collection.name} {sign} {_moved(node, rules[side])}"
        case NestedFilter():
            yield from _nested_moves(collection, collection.statement, sides)
        case ThresholdFilter(rows=rows, value=value, column=column):
            for side in sides:
                sign = ":=" if side == sides[0] else "+="
                if side == 0:
                    yield f"δ{collection.name} {sign} σ δ{rows.table}"
                else:
                    path = f"range of {rows.table} in the order of {rows.fields[column].name}"
                    yield (
                        f"δ{collection.name} {sign} rows of {rows.table} between old and new {value.table}"
                        f"    -- {path}, O(log N + rows that turn)"
                    )
        case TreeBlock(lowered=lowered):
            yield from _tree_moves(collection, lowered.program, sides)
        case FactorizedBlock(planned=planned):
            yield from _tree_moves(collection, planned.factorized.program, sides)
        case MatrixBlock(names=names):
            for side in sides:
                product = " · ".join(f"δ{n}" if i == side else n for i, n in enumerate(names))
                sign = ":=" if side == sides[0] else "+="
                yield f"δ{collection.name} {sign} {product}    -- by the factors of δ{names[side]}"
        case Anew():
            yield f"δ{collection.name} := new - old of the whole"


def _nested_definition(nested: NestedFilter) -> str:
    outer, inner = nested.outer.fields, nested.inner.fields
    match_on = [f"{inner[i].name} = outer {outer[o].name}" for o, i in nested.groups]
    match_on += [f"{inner[c.inner].name} {c.comparison} outer {outer[c.outer].name}" for c in nested.compared]
    given = tuple(outer[c].name for c in nested.bounds)
    if nested.value is not None:
        given = tuple(f"{nested.value.table}.{f.name}" for f in nested.value.fields)
    value = (
        f"{nested.call.function}({inner[nested.argument].name}) of {nested.inner.table} where {' and '.join(match_on)}"
    )
    passes = format_expression(nested.condition, ("nested", *given))
    return f"rows of {nested.outer.table} where {passes}, nested = {value}"


_RUNNING = "range of the running values, O(log N)"


def _nested_moves(collection: Collection, nested: NestedFilter, sides: tuple[int, ...]) -> Iterator[str]:
    fields, outer = nested.outer.fields, nested.outer.table
    columns = [fields[c].name for c in dict.fromkeys((*(c.outer for c in nested.compared), *nested.bounds))]
    by = "".join(f" by {nested.outer.fields[o].name}" for o, _ in nested.groups)
    for side in sides:
        sign = ":=" if side == sides[0] else "+="
        if side == 0:
            path = f"range of {scans(nested)[1].table}, summed in O(log N)" if nested.is_by_keys else _RUNNING
            yield f"δ{collection.name} {sign} δ{outer} where its nested value passes    -- {path}"
        else:
            path = f"range of {outer}{by} in the order of {columns[0]}, O(log N + rows that turn)"
            if nested.is_by_keys:
                path = f"slice of {outer}{by} by {', '.join(columns)}, O(log N) for each key that turns"
            changed = scans(nested)[side].table
            yield f"δ{collection.name} {sign} rows of {outer} that turn with δ{changed}    -- {path}"


def _tree_moves(collection: Collection, program: TreeProgram, sides: tuple[int, ...]) -> Iterator[str]:
    yield f"δ{collection.name} := view tree"
    names = [scan.table for scan in scans(collection.statement)]
    for side in sides:
        atom = program.block.atoms[side].name
        yield f"  on {atom}" if atom == names[side] else f"  on {atom} = {names[side]}"
        yield from (f"  {line}" for line in format_trigger(program, program.triggers[side]))
        for partition in program.partitions:
            if partition.atom == side:
                yield from (f"    {line}" for line in format_partition(program, partition))


def _moved(node: Relation, rule: ChangeRule) -> str:
    """The change of a node's output when one of its inputs changes."""
    names = [scan.table for scan in scans(Apply(node, ()))]
    changed = f"δ{names[rule.side]}"
    searched = f"    -- {', '.join(_searched(node, s) for s in rule.searches)}" if rule.searches else ""
    if rule.kind is StatementKind.LINEAR:
        return _expression(node, [changed if i == rule.side else n for i, n in enumerate(names)]) + searched
    touched = "rows" if isinstance(node, Distinct | ExceptAll | IntersectAll | UnionMax) else "keys"
    if isinstance(node, Aggregate | Window):
        touched = "groups"
    where = "" if isinstance(node, TopK) else f" for the {touched} of {changed}"
    return f"new - old of {_expression(node, names)}{where}{searched}"


def _searched(node: Relation, search: Search) -> str:
    (read, *_) = [scan for i, scan in enumerate(scans(Apply(node, ()))) if i == search.side]
    names = tuple(f.name for f in read.fields)
    keys = ", ".join(format_expression(e, names) for e in search.by)
    by = f" by {keys}" if keys else ""
    match search.place:
        case Place.COUNTS:
            if isinstance(node, Distinct | ExceptAll | IntersectAll | UnionMax):
                return f"count of the row in {read.table}"
            return f"{search.kind.value} in counts of {read.table}{by}" if keys else f"number of rows of {read.table}"
        case Place.GROUPS:
            return f"{search.kind.value} of the group{by}"
        case Place.ORDER:
            return f"range of the rows of {read.table} in order{by}"
        case Place.ROWS if search.kind is AccessKind.GROUP:
            return f"group of {read.table}{by}, computed anew" if keys else f"all of {read.table}, computed anew"
        case Place.ROWS:
            bounded = f", in the order of {format_expression(search.ordered, names)}" if search.ordered else ""
            beside = f", as far as {format_expression(search.reaching, names)} reaches" if search.reaching else ""
            return f"{search.kind.value} of {read.table}{by}{bounded}{beside}"


def _expression(node: Relation, names: list[str]) -> str:
    """A node in symbols, without its conditions and columns."""
    match node:
        case Filter():
            return f"σ {names[0]}"
        case Project():
            return f"π {names[0]}"
        case Join():
            return f"{names[0]} {_JOINS[node.kind]} {names[1]}"
        case Aggregate():
            return f"γ {names[0]}"
        case Distinct():
            return f"distinct {names[0]}"
        case UnionAll():
            return " ⊎ ".join(n for n in names if not any(m.startswith("δ") for m in names) or n.startswith("δ"))
        case SparkQuery():
            return f"Spark's answer over {', '.join(names)}"
        case Recursive():
            return f"recursion over {', '.join(names)}"
        case ExceptAll():
            return f"{names[0]} ∸ {names[1]}"
        case IntersectAll():
            return f"min({names[0]}, {names[1]})"
        case UnionMax():
            return f"max({names[0]}, {names[1]})"
        case Window():
            return f"window {names[0]}"
        case TopK():
            return f"top {names[0]}"
        case Generate():
            return f"explode {names[0]}"
        case Scan() | Values():
            raise AssertionError("it has no inputs")
        case _:
            assert_never(node)
