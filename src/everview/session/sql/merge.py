"""``MERGE INTO``: the net change of the target, by one query for each clause, as one transaction.

With T the target, S the source, p the condition and c_i the rows of clause i that no earlier clause of its kind takes:

    WHEN MATCHED                 σ c_i (T ⋈p S)     old rows out, new ones in
    WHEN NOT MATCHED             σ c_i (S ▷p T)     rows in
    WHEN NOT MATCHED BY SOURCE   σ c_i (T ▷p S)     old rows out, new ones in

Each target row must match one source row at most. Rows have no identity here, and need none: n equal rows of T that match m
rows of S are n·m times in T ⋈p S, so the condition is that (T ⋈p S) ∸ T, the difference of bags, is empty. As in Spark, it is
not asked if the only WHEN MATCHED is DELETE without a condition; the join is a semijoin then.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.backends.base import HoldsRows
from everview.catalog import TableDefinition
from everview.errors import InvalidChange, InvalidQuery
from everview.frontend.translated import Translated
from everview.relational.arrow import rows_from_arrow
from everview.relational.column_names import find_column
from everview.relational.expressions import Expression
from everview.relational.nodes import ExceptAll, Project, Relation, Scan, Values
from everview.relational.quoting import quote
from everview.relational.schema import columns
from everview.relational.traverse import rewrite_bottom_up
from everview.session.changing.table_source import table_source
from everview.session.rows.changes import read_changes
from everview.session.rows.given_rows import Mode
from everview.session.sql.assignment import assigned, default_of, new_rows, nullable, weighted
from everview.session.sql.ddl import read_schema
from everview.session.sql.merge_statement import Action, Merge, MergeClause, When, parse_merge_rules
from everview.session.sql.tokens import TokenCursor

if TYPE_CHECKING:
    from everview.session.core import Core
    from everview.session.transaction import Commit


def merge_rows(core: Core, table: TableDefinition, source: Any, rules: str, name: str) -> Commit:
    """Merges a frame, which ``rules``, from ON on, call by this name.

    Raises:
        InvalidQuery: it is no frame, or the rules cannot be read.
        InvalidChange: several source rows match one target row.
    """
    found = table_source(source)
    if found is None:
        raise InvalidQuery(
            f"a source of type {type(source).__name__} cannot be merged.",
            hint="give a Spark, pandas or Arrow frame, or the path of a file; db.sql('MERGE INTO …') takes queries.",
        )
    cursor = TokenCursor(rules, "merge")
    condition, clauses = parse_merge_rules(cursor)
    statement = Merge(table.name, table.name, quote(name), name, condition, clauses)
    with core.locked():
        read = TableDefinition(name, read_schema(name, found.schema, None).fields)
        rows = read_changes(read, found.rows, Mode.INSERT).rows
        with core.also_readable(name, read.fields):
            if isinstance(core.backend, HoldsRows):
                with core.backend.holding(read, rows):
                    commit = _merged(core, statement, None)
            else:
                commit = _merged(core, statement, Values(tuple(rows_from_arrow(rows, read.fields)), read.fields))
    core.subscriptions.deliver()
    return commit


def merge(core: Core, statement: Merge) -> Commit:
    """Runs the statement.

    Raises:
        InvalidChange: several source rows match one target row.
    """
    commit = _merged(core, statement, None)
    core.subscriptions.deliver()
    return commit


def _merged(core: Core, statement: Merge, given: Values | None) -> Commit:
    """Commits the changes, of which subscribers are still to be told; ``given`` is a source that is not in the catalog."""
    table = core.catalog.table(statement.table)
    with core.locked():
        matched = [c for c in statement.clauses if c.when is When.MATCHED]
        deletes_all = len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].condition is None
        if matched and not deletes_all:
            _check_matches_once(core, table, statement, given)
        changes = [_change(core, table, statement, c, given, is_semijoin=deletes_all) for c in statement.clauses]
        return core.commit([core.read_change(table.name, pa.concat_tables(changes), Mode.APPLY)])


def _translated(core: Core, query: str, source: str, given: Values | None) -> Translated:
    """The algebra of a query, with the rows that were given in the place of their name."""
    translated = core.translate(query)
    if given is None:
        return translated

    def rule(node: Relation) -> Relation | None:
        return given if isinstance(node, Scan) and node.table.lower() == source.lower() else None

    return replace(translated, plan=rewrite_bottom_up(translated.plan, rule))


def _check_matches_once(core: Core, table: TableDefinition, statement: Merge, given: Values | None) -> None:
    query = f"SELECT {quote(statement.alias)}.* FROM {_sides(statement, When.MATCHED)}"
    pairs = _translated(core, query, statement.source_alias, given).plan
    several = new_rows(core, table, ExceptAll(pairs, table.scan))
    if several.num_rows:
        row = tuple(several.slice(0, 1).to_pylist()[0].values())
        raise InvalidChange(
            f"MERGE INTO '{table.name}': several rows of the source match one row of the table, {row}.",
            hint="let the source have one row for each, by GROUP BY or a narrower condition.",
        )


def _sides(statement: Merge, when: When, *, is_semijoin: bool = False) -> str:
    """The FROM of the rows that a kind of clauses is for."""
    target = f"{quote(statement.table)} AS {quote(statement.alias)}"
    left, right = (statement.source, target) if when is When.NOT_MATCHED else (target, statement.source)
    kind = "LEFT SEMI" if is_semijoin else "INNER" if when is When.MATCHED else "LEFT ANTI"
    return f"{left} {kind} JOIN {right} ON ({statement.condition}\n)"


def _where(statement: Merge, clause: MergeClause) -> str:
    """The rows of a clause among those of its kind: no earlier clause takes them, and its condition holds."""
    same = [c for c in statement.clauses if c.when is clause.when]
    own = "true" if clause.condition is None else f"({clause.condition}\n)"
    earlier = "".join(f" WHEN ({c.condition}\n) THEN false" for c in takewhile(lambda c: c is not clause, same))
    if earlier:
        return f" WHERE CASE{earlier} ELSE {own} END"
    return "" if clause.condition is None else f" WHERE {own}"


def _change(
    core: Core,
    table: TableDefinition,
    statement: Merge,
    clause: MergeClause,
    given_rows: Values | None,
    *,
    is_semijoin: bool,
) -> pa.Table:
    """What a clause takes from the table and adds to it, weighted."""
    given = clause.values
    if given is None:
        given = tuple((f.name, f"{quote(statement.source_alias)}.{quote(f.name)}") for f in table.fields)
    targets = [find_column(f"table '{table.name}'", table.fields, name) for name, _ in given]
    for target in targets:
        if targets.count(target) > 1:
            raise InvalidQuery(f"{clause.action.value} of a MERGE sets column '{table.fields[target].name}' twice.")
    is_insert = clause.action is Action.INSERT
    listed = [] if is_insert else [f"{quote(statement.alias)}.*"]
    listed += [f"({text}\n) AS `new value {i}`" for i, (_, text) in enumerate(given)]
    sides = _sides(statement, clause.when, is_semijoin=is_semijoin and clause.when is When.MATCHED)
    query = f"SELECT {', '.join(listed)} FROM {sides}{_where(statement, clause)}"
    translated = _translated(core, query, statement.source_alias, given_rows)
    found = columns(translated.plan)
    width = len(table.fields)
    old = () if is_insert else found[:width]
    values: list[Expression] = list(old) or [default_of(table, f) for f in table.fields]
    for target, source in zip(targets, found[len(old) :], strict=True):
        values[target] = assigned(table, table.fields[target], source, translated.settings.time_zone)
    names = tuple(f.name for f in table.fields)
    if is_insert:
        return weighted(new_rows(core, table, Project(translated.plan, tuple(values), names)), 1)
    if clause.action is Action.DELETE:
        return weighted(new_rows(core, table, translated.plan), -1)
    rows = new_rows(core, table, Project(translated.plan, (*old, *values), (*names, *names)))
    before, after = rows.select(list(range(width))), rows.select(list(range(width, 2 * width)))
    return pa.concat_tables([weighted(before, -1), weighted(after.cast(nullable(before.schema)), 1)])
