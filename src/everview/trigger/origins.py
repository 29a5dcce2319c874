"""Where the rows and columns of a program's collections come from, as a user knows them."""

from __future__ import annotations

from everview.relational.clock import CLOCK
from everview.relational.expressions import Column
from everview.relational.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Project, Scan, TopK, Window
from everview.trigger.program import Apply, CheckSingle, Collection, Program, TreeBlock, scans


def described(program: Program, name: str) -> str:
    """A collection or input in words: a table by its name, groups of it, or what is joined."""
    made = _collection(program, name)
    if made is None:
        return "the clock" if name == CLOCK else name
    match made.statement:
        case Apply(node=Aggregate()) | TreeBlock(source=Aggregate()):
            prefix = "the groups of "
        case _:
            prefix = ""
    told = " with ".join(dict.fromkeys(described(program, scan.table) for scan in scans(made.statement)))
    return told if told.startswith(prefix) and prefix else f"{prefix}{told or 'constants'}"


def origin_of(program: Program, scan: Scan, column: int) -> tuple[Scan, int] | None:
    """The table, and its column, that a column of a collection is, where all rows of the collection are rows of that table."""
    made = _collection(program, scan.table)
    if made is None:
        given = next(i for i in program.inputs if i.name == scan.table)
        return Scan(given.name, given.fields), column
    match made.statement:
        case Apply(node=Project(child=Scan() as child, expressions=expressions)):
            read = expressions[column]
            return origin_of(program, child, read.index) if isinstance(read, Column) else None
        case (
            Apply(node=Filter(child=Scan() as child) | Distinct(child=Scan() as child) | TopK(child=Scan() as child))
            | Apply(node=Join(kind=JoinKind.SEMI | JoinKind.ANTI, left=Scan() as child))
            | CheckSingle(node=Join(left=Scan() as child))
        ):
            return origin_of(program, child, column)
        case Apply(node=Window(child=Scan() as child)) if column < len(child.fields):
            return origin_of(program, child, column)
        case _:
            return None


def _collection(program: Program, name: str) -> Collection | None:
    return next((c for c in program.collections if c.name == name), None)
