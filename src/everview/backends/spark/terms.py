"""The bilinear part of a plan in normal form: a signed sum of select-project-join terms over stored relations.

    E = Σ ± π[outputs] σ[conjuncts] (R₁ × … × Rₙ)

Filters, projections, UNION ALL and inner joins distribute into it, and so do semi- and anti-joins once the distinct keys D of
their right side are a stored relation of their own:  L ⋉ R = L ⋈ D  and  L ▷ R = L - L ⋈ D. With weights as signed integers the
delta of a term is, for each input i that changed,

    π σ (R₁' × … × Rᵢ₋₁' × δRᵢ × Rᵢ₊₁ × … × Rₙ)          R' new, R old

so that each change is seen once. Columns are positions in the concatenation of the inputs' columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    remap_columns,
    shift_columns,
    substitute,
)
from everview.relational.failing import can_fail
from everview.relational.nodes import Scan, Schema, Values
from everview.relational.schema import columns, is_nullable
from everview.relational.types import BOOLEAN

Leaf = Scan | Values


@dataclass(frozen=True)
class Term:
    """One select-project-join expression with a sign.

    ``orders`` are the planner's: for each input, all inputs in the order in which a change of it is joined with them. Without
    them, inputs are joined as they are connected.
    """

    sign: int
    inputs: tuple[Leaf, ...]
    conjuncts: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    orders: tuple[tuple[int, ...], ...] = ()
    first: int = 0
    """The input that a content's joins begin with."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each input's columns begin, and where the last one's end."""
        found = [0]
        for leaf in self.inputs:
            found.append(found[-1] + len(leaf.fields))
        return tuple(found)

    @cached_property
    def used(self) -> tuple[tuple[int, ...], ...]:
        """For each input, the columns that conjuncts and outputs read, ascending."""
        read = frozenset[int]().union(*(columns_of(e) for e in (*self.conjuncts, *self.outputs)))
        return tuple(
            tuple(c - start for c in range(start, end) if c in read)
            for start, end in zip(self.starts, self.starts[1:], strict=False)
        )

    def inputs_of(self, expression: Expression) -> frozenset[int]:
        """The inputs whose columns an expression reads."""
        return frozenset(self.input_of(c) for c in columns_of(expression))

    def input_of(self, column: int) -> int:
        """The input that a column of the concatenation belongs to."""
        return next(i for i, end in enumerate(self.starts[1:]) if column < end)

    def own_conjuncts(self, position: int) -> tuple[Expression, ...]:
        """The conjuncts that read this input alone, over its used columns."""
        return tuple(self.over_used(c, position) for c in self.conjuncts if self.inputs_of(c) == {position})

    def sure_conjuncts(self, position: int) -> tuple[Expression, ...]:
        """Those of them before the first that can raise an error: it must not be lost with a row that a later one drops."""
        return tuple(takewhile(lambda c: not can_fail(c), self.own_conjuncts(position)))

    def over_used(self, expression: Expression, position: int) -> Expression:
        """An expression that reads one input, over that input's used columns."""
        places = {self.starts[position] + c: i for i, c in enumerate(self.used[position])}
        return remap_columns(expression, lambda c: places[c])

    def used_fields(self, position: int) -> Schema:
        """The used columns of an input."""
        return tuple(self.inputs[position].fields[c] for c in self.used[position])


def leaf_term(leaf: Leaf) -> Term:
    """All columns of a stored relation or of constant rows."""
    return Term(1, (leaf,), (), columns(leaf))


def filtered(term: Term, condition: Expression) -> Term:
    """σ: the condition is over the term's outputs."""
    added = conjuncts(substitute(condition, term.outputs))
    return replace(term, conjuncts=(*term.conjuncts, *added))


def projected(term: Term, expressions: Iterable[Expression]) -> Term:
    """π: the expressions are over the term's outputs."""
    return replace(term, outputs=tuple(substitute(e, term.outputs) for e in expressions))


def joined(left: Term, right: Term, condition: Expression) -> Term:
    """⋈: the condition is over the outputs of both."""
    by = left.starts[-1]
    outputs = (*left.outputs, *(shift_columns(e, by) for e in right.outputs))
    both = (*left.conjuncts, *(shift_columns(e, by) for e in right.conjuncts))
    whole = Term(left.sign * right.sign, (*left.inputs, *right.inputs), both, outputs)
    return filtered(whole, condition)


def negated(term: Term) -> Term:
    """The same rows with the other sign."""
    return replace(term, sign=-term.sign)


def with_keys(term: Term, keys: Scan, expressions: tuple[Expression, ...]) -> Term:
    """The term restricted to the rows whose key, expressions over its outputs, is among the rows of ``keys``.

    ``keys`` is the first input of the result, so that everything else can be looked up from it.
    """
    by = len(keys.fields)
    shifted = Term(
        term.sign,
        (keys, *term.inputs),
        tuple(shift_columns(c, by) for c in term.conjuncts),
        tuple(shift_columns(o, by) for o in term.outputs),
    )
    equal = tuple(
        same_value(Column(i, f.type, f.nullable), substitute(e, shifted.outputs))
        for i, (f, e) in enumerate(zip(keys.fields, expressions, strict=True))
    )
    return Term(shifted.sign, shifted.inputs, (*equal, *shifted.conjuncts), shifted.outputs)


def same_value(left: Expression, right: Expression) -> Expression:
    """``<=>``, or ``=`` where neither side can be NULL."""
    name = "<=>" if is_nullable(left) or is_nullable(right) else "="
    return Call(name, (left, right), BOOLEAN)
