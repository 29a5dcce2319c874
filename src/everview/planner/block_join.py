"""A join without an aggregate as a block: its keys are the variables that the output reads, its payload counts rows.

    Q[keys] = Σ over rows of the join of  1        output row = outputs(keys), as often as the payload says

An output column over one atom is a variable that the leaf computes, unless the variables that there are anyway tell it. Columns
over several atoms, and those that can fail, are computed from variables after the join, where Spark computes them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.planner.block import Block
from everview.planner.block_flatten import flatten
from everview.planner.block_join_builder import FactsOf, JoinBuilder, columns_in
from everview.relational.expressions import Column, Expression, remap_columns
from everview.relational.failing import can_fail
from everview.relational.nodes import Relation
from everview.relational.schema import is_nullable


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """A block, and the output columns as expressions in which column i is the variable ``block.keys[i]``."""

    block: Block
    outputs: tuple[Expression, ...]

    @property
    def can_fail(self) -> bool:
        """Whether an output column, computed from the keys of a result row, can raise an error."""
        return any(can_fail(e) for e in self.outputs)


def build_join_block(relation: Relation, facts_of: FactsOf) -> JoinBlock:
    """The block of filters, projections and inner joins over at least one relation. Its keys are distinct.

    Raises:
        Refused: a view tree cannot maintain it.
    """
    flat = flatten(relation)
    join = JoinBuilder(flat, facts_of)
    for output in flat.outputs:
        if isinstance(output, Column):
            join.variable(output)
    whole = [_is_leaf_variable(join, output) for output in flat.outputs]
    parts = [p for e, is_whole in zip(flat.outputs, whole, strict=True) for p in ((e,) if is_whole else columns_in(e))]
    keys = tuple(dict.fromkeys(join.variable(part) for part in parts))
    place = {part: keys.index(join.variable(part)) for part in parts}
    outputs = tuple(
        Column(place[e], e.type, is_nullable(e)) if is_whole else _over_keys(e, place)
        for e, is_whole in zip(flat.outputs, whole, strict=True)
    )
    return JoinBlock(join.assemble(keys), outputs)


def _is_leaf_variable(join: JoinBuilder, output: Expression) -> bool:
    """Whether a leaf computes the column, so that it is a variable."""
    if len(join.owners(output)) != 1:
        return False
    if can_fail(output):
        return not join.is_join  # over one relation it is evaluated for the rows that Spark evaluates it for
    return join.is_variable(output) or not all(join.is_variable(c) for c in columns_in(output))


def _over_keys(output: Expression, place: Mapping[Expression, int]) -> Expression:
    """The column over variables that are columns."""
    at = {c.index: place[c] for c in columns_in(output)}
    return remap_columns(output, lambda i: at[i])
