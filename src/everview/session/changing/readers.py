"""Who reads a table or view that is about to change, and which of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from everview.catalog import TableDefinition, ViewDefinition
from everview.errors import DependencyError, UnsupportedOperation
from everview.relational.expressions import columns_of
from everview.relational.nodes import Project, Relation, Scan
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.traverse import inputs, nodes_of, tables_of

if TYPE_CHECKING:
    from everview.session.core import Core


def views_over(core: Core, name: str) -> list[ViewDefinition]:
    """The views and assertions over a table or view, directly or through others, each after those that it reads."""
    reached, found = {name.lower()}, []
    for definition in core.catalog.computed:
        if not reached.isdisjoint(n.lower() for n in tables_of(definition.plan)):
            reached.add(definition.name.lower())
            found.append(definition)
    return found


def columns_read(plan: Relation, name: str) -> set[int]:
    """The columns of a relation that a plan computes with: those of projections over it, all of them under other operators.

    Projections that only hand columns on, as those over an altered table or a replaced view do, read what is above them.
    """
    plan = prune_columns(plan)
    found: set[int] = set()
    for node in (*nodes_of(plan), None):
        below = (plan,) if node is None else inputs(node)
        for scan in below:
            if isinstance(scan, Scan) and scan.table.lower() == name.lower():
                if isinstance(node, Project):
                    found |= {c for e in node.expressions for c in columns_of(e)}
                else:
                    found |= set(range(len(scan.fields)))
    return found


def check_can_be_made_anew(core: Core, what: str, views: Iterable[ViewDefinition]) -> None:
    """Raises if one of the views reads a table that keeps no rows; ``what`` cannot be done then."""
    for table in {d.name: d for view in views for d in core.catalog.inputs_of(view)}.values():
        if isinstance(table, TableDefinition) and not table.retain:
            raise UnsupportedOperation(
                f"{what}: table '{table.name}' keeps no rows (retain=False), so that no view over it can be made anew.",
                hint="create another beside it before the rows arrive.",
            )


@contextmanager
def told_as(done: str) -> Iterator[None]:
    """What stands against dropping something stands against this too, and is told in its word."""
    try:
        yield
    except DependencyError as error:
        message = error.message.replace("cannot be dropped", f"cannot be {done}", 1)
        raise DependencyError(message, hint=error.hint) from None
