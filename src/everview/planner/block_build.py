"""From an aggregate over a join to a ``Block``: variables from equalities, lifts from polynomials, the rest as residuals.

A block is refused, with the reason, where a tree would not do what Spark does: aggregates that are no functions of sums (MIN),
keys or terms that need several atoms at once, and expressions over one of several atoms that can fail, since a tree evaluates
them also for rows that have no partner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from everview.algebra.moments import FeatureProduct
from everview.algebra.registry import ring_named
from everview.algebra.ring import Addition
from everview.planner.block import Answer, Block, Monomial, RingLift
from everview.planner.block_flatten import flatten
from everview.planner.block_join_builder import Facts, FactsOf, JoinBuilder, Member, Refused, is_float
from everview.planner.block_terms import (
    NONE,
    ONE,
    Factor,
    Nullable,
    Owners,
    Polynomial,
    indicator,
    may_cancel,
    multiply,
    polynomial,
    with_errors,
)
from everview.planner.moments_block import moments_shape
from everview.planner.moments_part import Feature, MomentsShape
from everview.relational.definitions.spark_aggregates import is_spark_aggregate, spark_function
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.expressions import Call, Column, Expression, substitute, transform
from everview.relational.nodes import Aggregate, AggregateCall
from everview.relational.null_rejection import columns_never_null
from everview.relational.schema import is_nullable
from everview.relational.types import BOOLEAN, FLOAT64, is_floating, is_numeric

__all__ = ["Facts", "FactsOf", "Refused", "build_block"]

_LARGEST = 1 << 62
MOST_FLOAT_FACTORS = 8
"""Engines may count on it: the product of so many floats below 2^100 does not overflow."""


def build_block(aggregate: Aggregate, facts_of: FactsOf, *, may_watch: bool = False) -> Block:
    """The block of an aggregate and the joins below it; ``may_watch``: the engine can watch that exact numbers stay in range.

    Raises:
        Refused: a view tree cannot maintain it.
    """
    return _Builder(aggregate, facts_of, may_watch=may_watch).build()


def _is_of_moments(call: AggregateCall) -> bool:
    """Whether an answer is read off sums of products (VAR, CORR, …)."""
    declared = sum_aggregate(call)
    return declared is not None and declared.summed is Summed.FLOATS


class _Builder:
    def __init__(self, aggregate: Aggregate, facts_of: FactsOf, *, may_watch: bool) -> None:
        self.aggregate = aggregate
        self.join = JoinBuilder(flatten(aggregate.child), facts_of, may_watch=may_watch)
        self._present = columns_never_null(self.join.flat.conditions)

    def build(self) -> Block:
        keys = [self._key(self._flat(k)) for k in self.aggregate.keys]
        answers = tuple(self._answer(call) for call in self.aggregate.aggregates)
        moments = self._moments(answers)
        return replace(self.join.assemble(keys, answers), moments=moments)

    def _moments(self, answers: Iterable[Answer]) -> MomentsShape | None:
        """What the sums of floats are, if they are moments; asked before the block is there, since it may need more lifts."""
        if any(call.is_ring for call in self.aggregate.aggregates):
            return None

        def factor_of(feature: Feature) -> Factor:
            found = factors[feature[0]][feature[1]]
            assert isinstance(found, Factor), "no lift is into a ring"
            return found

        factors = self.join.factors()
        needed = dict.fromkeys(m for answer in answers for _, m in chain(*answer.sums, answer.valid))
        floats = [m for m in needed if any(is_float(factor_of(f)) for f in m)]
        may_add = any(map(_is_of_moments, self.aggregate.aggregates))
        return moments_shape(floats, factor_of, self.join.find_lift, self.join.lift, may_add=may_add)

    def _flat(self, expression: Expression) -> Expression:
        return substitute(expression, self.join.flat.outputs)

    def _argument(self, expression: Expression) -> Expression:
        """The expression over the flat join; columns that its conditions let through only if they hold a value are not NULL."""

        def present(e: Expression) -> Expression | None:
            return (
                Column(e.index, e.type, nullable=False) if isinstance(e, Column) and e.index in self._present else None
            )

        return transform(self._flat(expression), present)

    def _key(self, key: Expression) -> Member:
        atoms = self.join.owners(key)
        if len(atoms) != 1:
            raise Refused("a grouping key reads several tables" if atoms else "a grouping key is a constant")
        self.join.check(key)
        return self.join.variable(key)

    def _answer(self, call: AggregateCall) -> Answer:
        if call.is_ring:
            return self._ring_answer(call)
        declared = sum_aggregate(call)
        if declared is None:
            distinct = "DISTINCT " if call.distinct else ""
            name = spark_function(call).name if is_spark_aggregate(call) else call.function
            raise Refused(f"{name}({distinct}…) is no function of sums")
        args = [self.join.admitted(self._argument(a)) for a in call.args]
        where = None if call.filter is None else self.join.admitted(self._argument(call.filter))
        for read in (*(() if declared.summed is Summed.ROWS else args), *(() if where is None else (where,))):
            self.join.keep(read)
        holds = ONE if where is None else indicator(where, self.join.owners)
        if holds is None:
            raise Refused("a FILTER condition reads several tables at once")
        numbers = [self._number(arg, call, declared.summed) for arg in args]
        sums = tuple(self._sum(call, product, numbers, holds, declared.summed) for product in declared.products)
        valid = self._product(call, (*(n.valid for n in numbers), holds))
        return Answer(call, tuple(map(self._monomials, sums)), self._monomials(valid))

    def _number(self, arg: Expression, call: AggregateCall, summed: Summed) -> Nullable:
        """An argument as polynomials: its value as far as it is summed, and whether it is not NULL."""
        if summed is Summed.ROWS:
            return Nullable(NONE, self._is_valid(arg, self.join.owners))
        if summed is Summed.TRUTHS:
            holds = indicator(arg, self.join.owners)
            if holds is None:
                raise Refused(f"the argument of {call.function} reads several tables at once")
            return Nullable(holds, self._is_valid(arg, self.join.owners))
        if not is_numeric(arg.type) or (is_floating(arg.type) and arg.type != FLOAT64):
            raise Refused(f"{call.function} of {arg.type}")
        number = polynomial(arg, self.join.owners, self.join.is_watched)
        if number is None:
            raise Refused(f"an argument of {call.function} is no sum of products of single tables")
        return number

    def _sum(
        self, call: AggregateCall, product: FeatureProduct, numbers: list[Nullable], holds: Polynomial, summed: Summed
    ) -> Polynomial:
        """Σ of a product of arguments over the rows that count: those on which the other arguments are not NULL, either."""
        others = (n.valid for i, n in enumerate(numbers) if i not in product)
        found = self._product(call, (*(numbers[i].value for i in product), *others, holds))
        if may_cancel(found):
            raise Refused(f"{call.function} takes back floats that may be infinite")
        exact = with_errors(found) if summed is Summed.FLOATS else found
        if exact is None:
            raise Refused(f"an argument of {call.function} multiplies several columns of a table")
        return exact

    def _product(self, call: AggregateCall, factors: Iterable[Polynomial]) -> Polynomial:
        result: Polynomial | None = ONE
        for factor in factors:
            result = result and multiply(result, factor)
        if result is None:
            raise Refused(f"an argument of {call.function} is no sum of products of single tables")
        return result

    def _ring_answer(self, call: AggregateCall) -> Answer:
        """Σ Π lift(argument), where each atom multiplies the lifts of the arguments over it."""
        ring = ring_named(call.function).ring
        if ring.addition is Addition.OWN:
            raise Refused(f"the ring of {call.function} adds in its own way, not word by word")
        arguments = [self.join.admitted(self._argument(a)) for a in call.args]
        of_atom: dict[int, list[int]] = {}
        for position, argument in enumerate(arguments):
            atoms = self.join.owners(argument)
            if len(atoms) > 1:
                raise Refused(f"an argument of {call.function} reads several tables")
            of_atom.setdefault(next(iter(atoms), -1), []).append(position)
        constants = of_atom.pop(-1, [])
        of_atom.setdefault(next(iter(of_atom), 0), []).extend(constants)
        valid: Polynomial = ((1, frozenset()),)
        for argument in arguments:
            product = multiply(valid, self._is_valid(argument, self.join.owners))
            assert product is not None, "indicators always have a product"
            valid = product
        lifts = (
            (atom, RingLift(call.function, tuple(sorted(own)), tuple(arguments[p] for p in sorted(own))))
            for atom, own in of_atom.items()
        )
        monomial = frozenset((atom, self.join.lift(atom, lift)) for atom, lift in lifts)
        return Answer(call, (((1, monomial),),), self._monomials(valid))

    def _is_valid(self, arg: Expression, owners: Owners) -> Polynomial:
        if not is_nullable(arg):
            return ((1, frozenset()),)
        if len(owners(arg)) == 1:
            found = indicator(Call("isnotnull", (arg,), BOOLEAN), owners)
            assert found is not None
            return found
        number = polynomial(arg, owners, self.join.is_watched) if is_numeric(arg.type) else None
        if number is None:
            raise Refused("count of an expression over several tables")
        return number.valid

    def _monomials(self, terms: Polynomial) -> tuple[tuple[int, Monomial], ...]:
        if any(abs(coefficient) >= _LARGEST for coefficient, _ in terms):
            raise Refused("a term has a constant factor of more than 62 bits")
        if any(sum(is_float(f) for _, f in term) > MOST_FLOAT_FACTORS for _, term in terms):
            raise Refused(f"a product has floats of more than {MOST_FLOAT_FACTORS} tables")
        return tuple(
            (coefficient, frozenset((atom, self.join.lift(atom, factor)) for atom, factor in term))
            for coefficient, term in terms
        )
