"""The text of a program: the same for the same stages, whatever version of everview made them.

It is what tells, when a database is opened, whether the stages that its relations were made by are those of today.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import assert_never

from everview.backends.spark.stages import Answered, Grouped, Linear, Partitioned, Stage, StageProgram, TreeView
from everview.backends.spark.terms import Term
from everview.relational.expressions import Expression
from everview.relational.format import format_expression, format_node, format_plan
from everview.relational.nodes import Scan, Schema


def program_text(program: StageProgram) -> str:
    """One line a stage, and below it one a term."""
    return "\n".join(line for stage in program.stages for line in _stage_lines(stage))


def program_digest(program: StageProgram) -> str:
    """A short name for the text."""
    return hashlib.sha256(program_text(program).encode()).hexdigest()


def _stage_lines(stage: Stage) -> Iterator[str]:
    yield f"{type(stage).__name__} {stage.name} {_fields(stage.fields)} {_own(stage)}"
    for term in stage.terms:
        yield f"  {'-' if term.sign < 0 else '+'} {_term(term)}"


def _own(stage: Stage) -> str:
    match stage:
        case Linear():
            return "" if stage.generate is None else format_plan(stage.generate)
        case TreeView():
            return f"by {stage.key_count}"
        case Grouped():
            kind = "global" if stage.is_global else "single" if stage.is_single else "groups"
            values = _listed((*stage.outputs, stage.weight))
            anew = "" if stage.anew is None else f", or anew {_own(stage.anew)}"
            return f"by {stage.key_count}, {kind}, {_fields(stage.state)} gives {values}{anew}"
        case Partitioned():
            return f"by {_listed(stage.partition)} as {_listed(stage.output_key)}: {format_plan(stage.operator)}"
        case Answered():
            return format_node(stage.query)
        case _:
            assert_never(stage)


def _term(term: Term) -> str:
    inputs = (f"{i.table} {_fields(i.fields)}" if isinstance(i, Scan) else format_plan(i) for i in term.inputs)
    return f"{' ⋈ '.join(inputs)} where {_listed(term.conjuncts)} gives {_listed(term.outputs)}"


def _fields(fields: Schema) -> str:
    return f"({', '.join(str(f.type) for f in fields)})"


def _listed(expressions: tuple[Expression, ...]) -> str:
    return f"[{', '.join(format_expression(e, ()) for e in expressions)}]"
