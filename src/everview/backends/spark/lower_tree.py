"""A view tree as stages: every view of a trigger program is a sum of terms over the views below it.

    V[keys] = Σ  child₁ ⊗ … ⊗ childₙ  where the residual predicates hold

A child is stored as rows of keys and *partial* payloads; its content is their sum for each key. Payloads are multiplied and
summed, and both are linear in each factor, so a term over partial payloads has the right sum, and its delta rule (``terms``) is
the delta tree of F-IVM: δV = Σ δchild ⊗ siblings, the siblings before it new and those after it old.

    payload of V for a monomial  =  Π over the children of their payload for the monomial's part below them

An only child is no stage: the view above sums its terms. Neither is a leaf whose keys hold a unique key of its table: it would
only copy it. The view above joins the table itself.

A sum of floats is a column for each *place* of their product: floats are cut into five integers (``float_limbs``), and those
of two relations multiply to nine sums of products, each a decimal. Rows with a float that does not fit are counted in a column
of their own: of c rows of a view u do not fit, and of the products of such rows Π c - Π (c - u).

Payloads are exact: counts are BIGINT, other sums decimals of up to 38 digits. By Spark's rules a product of decimals keeps its
scale up to six digits after the point, and fails where 38 digits are too few. So a tree is refused whose numbers have more
digits after the point, or could get as large as that within 10⁷ rows: it also sums rows that find no partner in the end, on
which Spark does not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product as combinations_of
from math import prod
from typing import Final

from everview.backends.spark.float_limbs import fits, limbs, places
from everview.backends.spark.float_totals import UNFIT, WHOLE, SumPart
from everview.backends.spark.payloads import (
    ONE,
    ZERO,
    Payload,
    aggregate_value,
    is_float_sum,
    is_function_of_exact_sums,
    is_nested,
    payload_fields,
)
from everview.backends.spark.terms import Term, filtered, joined, leaf_term, projected, same_value
from everview.backends.spark.tree_numbers import (
    UNFIT_ROWS,
    Cell,
    add,
    count_total,
    exact_total,
    float_total,
    lift_value,
    lifted,
    product,
    wide,
)
from everview.planner.block import Answer, Block, BlockAtom, Lift, Monomial, Number, Residual, Variable
from everview.planner.block_join_builder import FactsOf, Refused
from everview.relational.bounds import exact_bound, scale_of, type_bound
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.expressions import (
    Call,
    Case,
    Column,
    Expression,
    conjunction,
    remap_columns,
)
from everview.relational.nodes import AggregateCall, Field, Filter, Scan, Schema, Values
from everview.relational.types import INT64
from everview.relational.unique_keys import kept_apart, unique_keys
from everview.trigger.tree_program import Compute, TreeProgram

MOST_SCALE: Final = 6
"""So many digits after the point a product of decimals keeps, whatever their precision."""
_LARGEST: Final = 10**38
_ROWS: Final = 10**7
"""So many rows of a key must fit, each with the largest numbers of their types. Real numbers are far smaller than these."""

AddView = Callable[[str, tuple[Term, ...], Schema, int, "UncutTerms | None"], Scan]
"""Makes a stage of a tree's view, given its name, terms, columns and number of keys, and maybe its rows before floats are cut.

It returns the scan of the stage."""
MOST_FLOATS: Final = 2
"""The limbs of so many floats, multiplied, leave room for sums of 2⁶¹ rows in 38 digits."""


@dataclass(frozen=True)
class UncutTerms:
    """Rows of a leaf with its floats as they are: what terms give instead, and what ``float_totals`` makes of it."""

    terms: tuple[Term, ...]
    fields: Schema
    parts: tuple[SumPart, ...]


@dataclass(frozen=True)
class AtomInput:
    """The relation of an atom as terms, and whether the atom's variables tell its rows apart."""

    terms: tuple[Term, ...]
    is_unique: bool


@dataclass(frozen=True)
class TreeResult:
    """The result of a tree: terms with the block's keys and then the payload, and how a group's row is read off them."""

    terms: tuple[Term, ...]
    payload: Payload


def lower_tree(program: TreeProgram, inputs: Sequence[AtomInput], add_view: AddView) -> TreeResult:
    """Adds the stages of a program's views one by one, and returns the result; ``inputs`` are those of the block's atoms.

    Contract: ``check_exact`` has found nothing, and the program has no indicators.
    """
    return _Lowering(program, inputs, add_view).result()


def tells_rows_apart(atom: BlockAtom, facts_of: FactsOf) -> bool:
    """Whether an atom's variables hold a unique key of its relation."""
    known = {c for _, e in atom.variables if (c := kept_apart(e)) is not None}
    keys = unique_keys(Filter(atom.input, atom.condition), lambda scan: facts_of(scan).keys)
    return any(not key.present and key.columns <= known for key in keys)


def check_exact(block: Block) -> None:
    """Looks for sums that a tree of decimals would round, or could not hold.

    Raises:
        Refused: there is one, and why.
    """
    for answer in block.answers:
        name = answer.call.function
        if is_float_sum(answer.call):
            _check_floats(block, answer)
            continue
        if not is_function_of_exact_sums(answer.call):
            raise Refused(f"{name} of {answer.call.args[0].type} is no function of sums that are exact on Spark")
        if _scale(answer.call) > MOST_SCALE:
            raise Refused(f"{name} of a decimal with more than {MOST_SCALE} digits after the point")
        for coefficient, monomial in (term for terms in answer.sums for term in terms):
            bound = prod(_bound(block.atoms[a].lifts[i]) for a, i in monomial)
            if abs(coefficient) * bound * _ROWS >= _LARGEST:
                raise Refused(f"by their types, what {name} adds could need more than 38 digits within {_ROWS:,} rows")


def _check_floats(block: Block, answer: Answer) -> None:
    for _, monomial in answer.sums[0]:
        numbers = [block.atoms[a].lifts[i].number for a, i in monomial]
        if numbers.count(Number.FLOAT) > MOST_FLOATS:
            raise Refused(f"{answer.call.function} of a product of doubles from more than {MOST_FLOATS} relations")
        if Number.FLOAT in numbers and Number.EXACT in numbers:
            raise Refused(f"{answer.call.function} multiplies doubles with exact numbers of another relation")


def _bound(lift: object) -> int:
    """The largest magnitude of a lift, unscaled."""
    assert isinstance(lift, Lift), "rings of users are refused before"
    if lift.number is Number.COUNT:
        return 1
    found = exact_bound(lift.value)
    found = type_bound(lift.value.type) if found is None else found
    assert found is not None, "floats are refused before"
    return found


def _scale(call: AggregateCall) -> int:
    """The digits after the point of what an aggregate sums."""
    declared = sum_aggregate(call)
    sums_numbers = declared is not None and declared.summed is Summed.NUMBERS
    return scale_of(call.args[0].type) if sums_numbers else 0


@dataclass(frozen=True)
class _Part:
    """Terms whose outputs are the values of ``keys`` and a number for each cell of ``payload``, over ``atoms``."""

    terms: tuple[Term, ...]
    keys: tuple[str, ...]
    payload: tuple[Cell, ...]
    atoms: frozenset[int]
    uncut: UncutTerms | None = None

    def own(self, monomial: Monomial) -> tuple[Cell, ...]:
        """The cells that have what a monomial says about the atoms of this part, one for each place."""
        about = frozenset(pair for pair in monomial if pair[0] in self.atoms)
        return tuple(cell for cell in self.payload if cell[0] == about and cell != UNFIT_ROWS)

    def column(self, cell: Cell, start: int) -> Column:
        """The column of a cell, where those of the part begin at ``start``."""
        place = len(self.keys) + self.payload.index(cell)
        return Column(start + place, self.terms[0].outputs[place].type, False)


class _Join:
    """Parts side by side, joined on the variables that they share: terms over all their outputs."""

    def __init__(self, parts: Sequence[_Part], types: Mapping[str, Variable]) -> None:
        self.terms: tuple[Term, ...] = ()
        self._parts: list[tuple[_Part, int]] = []
        known: dict[str, list[Column]] = {}
        width = 0
        for part in parts:
            equal = []
            for place, key in enumerate(part.keys):
                own = Column(width + place, types[key].type, types[key].nullable)
                others = known.setdefault(key, [])
                equal += [same_value(other, own) for other in others]  # each pair: any two of them may be joined first
                others.append(own)
            on = conjunction(tuple(equal))
            self.terms = _pairs(self.terms, part.terms, on) if self._parts else part.terms
            self._parts.append((part, width))
            width += len(part.keys) + len(part.payload)
        self.variables = {key: found[0] for key, found in known.items()}

    def where(self, residual: Residual) -> None:
        """Keeps the rows on which a predicate holds."""
        places = [self.variables[v].index for v in residual.variables]
        condition = remap_columns(residual.condition, lambda i: places[i])
        self.terms = tuple(filtered(t, condition) for t in self.terms)

    def number(self, cell: Cell) -> Expression:
        """The product of what the parts have of a monomial; of floats, what of it is in one place."""
        if cell == UNFIT_ROWS:
            return self._unfit()
        monomial, place = cell
        found = [(part, start, part.own(monomial)) for part, start in self._parts]
        counted = [part.column(own[0], start) for part, start, own in found if len(own) == 1]
        floats = [[part.column(one, start) for one in own] for part, start, own in found if len(own) > 1]
        if not floats:
            return product(counted)
        if not counted and len(floats) == 1:
            return floats[0][place]
        every = combinations_of(*(enumerate(own) for own in floats))
        chosen = [[c for _, c in some] for some in every if sum(i for i, _ in some) == place]
        total, *more = (product([*counted, *map(wide, one)]) for one in chosen)
        for added in more:
            total = add(total, added)
        return total

    def _unfit(self) -> Expression:
        rows, fit = list[Expression](), list[Expression]()
        for part, start in self._parts:
            rows.append(part.column((frozenset(), 0), start))
            is_all = UNFIT_ROWS not in part.payload
            fit.append(rows[-1] if is_all else Call("-", (rows[-1], part.column(UNFIT_ROWS, start)), INT64))
        return Call("-", (product(rows), product(fit)), INT64)


def _pairs(left: tuple[Term, ...], right: tuple[Term, ...], on: Expression) -> tuple[Term, ...]:
    return tuple(joined(a, b, on) for a in left for b in right)


class _Lowering:
    def __init__(self, program: TreeProgram, inputs: Sequence[AtomInput], add_view: AddView) -> None:
        self.program = program
        self.block = program.block
        self._inputs = inputs
        self._add_view = add_view
        self._variables = {v.name: v for v in self.block.variables}
        self._children: dict[str, tuple[str, ...]] = {}
        self._paths: dict[tuple[str, str], tuple[str, ...]] = {}
        """For a view and a child of it that changes, the children in the order in which they are joined."""
        for statement in (s for t in program.triggers for s in t.statements if isinstance(s, Compute)):
            path = (statement.source, *(j.view for j in statement.joins))
            self._children.setdefault(statement.target, path)
            self._paths[statement.target, statement.source] = path

    def result(self) -> TreeResult:
        """The result's terms, keys in the order of the GROUP BY."""
        root = self._view(self.program.result, self.block.keys)
        return TreeResult(root.terms, self._payload(root))

    def _view(self, name: str, keys: tuple[str, ...]) -> _Part:
        """A view's terms: its children joined and multiplied."""
        definition = self.program.view(name)
        children = self._children[name]
        whole = _Join([self._child(child, name) for child in children], self._variables)
        below = [r for child in children for r in self.program.view(child).residuals]
        for residual in definition.residuals:
            if residual not in below:
                whole.where(residual)
        payload = self._cells(definition.payload, definition.atoms)
        outputs = (*(whole.variables[k] for k in keys), *map(whole.number, payload))
        terms = whole.terms
        if len(children) > 1:
            first = max(range(len(children)), key=lambda i: self._rows(children[i]))
            terms = tuple(replace(t, orders=self._orders(name), first=first) for t in terms)
        return _Part(tuple(projected(t, outputs) for t in terms), keys, payload, definition.atoms)

    def _cells(self, payload: tuple[Monomial, ...], atoms: Set[int]) -> tuple[Cell, ...]:
        """The columns of a view's payload: rows, rows that do not fit if there can be some, and the rest."""
        found = [(m, place) for m in payload for place in range(places(self._floats_in(m)))]
        if any(self._floats_of(a) for a in atoms):
            found.insert(found.index((frozenset(), 0)) + 1, UNFIT_ROWS)
        return tuple(found)

    def _floats_in(self, monomial: Monomial) -> int:
        return sum(self.block.atoms[a].lifts[i].number is Number.FLOAT for a, i in monomial)

    def _floats_of(self, number: int) -> tuple[int, ...]:
        """The lifts of an atom that are floats, and that some sum needs."""
        needed = {i for m in self.block.monomials for a, i in m if a == number}
        lifts = self.block.atoms[number].lifts
        return tuple(i for i in sorted(needed) if lifts[i].number is Number.FLOAT)

    def _rows(self, name: str) -> float:
        """The rows of the largest relation below a view: in it one begins, so that look-ups in the others find few."""
        return max(self.block.query.atoms[a].rows for a in self.program.view(name).atoms)

    def _orders(self, name: str) -> tuple[tuple[int, ...], ...]:
        """For each child, which is an input of the view's terms, the order of joins that the program has for its changes."""
        children = self._children[name]
        return tuple(tuple(children.index(c) for c in self._paths[name, child]) for child in children)

    def _child(self, name: str, parent: str) -> _Part:
        """A child of a view: a stage, or terms where that would keep nothing new."""
        definition = self.program.view(name)
        siblings = [c for c in self._children[parent] if c != name]
        shared = {k for s in siblings for k in self.program.view(s).keys}
        keys = tuple(sorted(definition.keys, key=lambda k: k not in shared))  # by the first ones it is sorted
        is_leaf = name not in self._children
        part = self._leaf(definition.atoms, keys, definition.payload) if is_leaf else self._view(name, keys)
        # The limbs of floats are expressions that should be evaluated once.
        if not (is_leaf and UNFIT_ROWS in part.payload) and (not siblings or (is_leaf and self._is_plain(part))):
            return part
        fields = (*self._key_fields(keys), *payload_fields(_payload_outputs(part)))
        scan = self._add_view(name, part.terms, fields, len(keys), part.uncut)
        return _Part((leaf_term(scan),), keys, part.payload, definition.atoms)

    def _leaf(self, atoms: frozenset[int], keys: tuple[str, ...], payload: tuple[Monomial, ...]) -> _Part:
        """The rows of an atom that pass its condition: variables and lifts."""
        (number,) = atoms
        atom = self.block.atoms[number]
        value_of = dict(atom.variables)
        floats = {i: lift_value(atom, i) for i in self._floats_of(number)}
        is_fit = conjunction(tuple(map(fits, floats.values())))
        cells = self._cells(payload, atoms)

        def number_of(cell: Cell) -> Expression:
            if cell == UNFIT_ROWS:
                return Case(((is_fit, ZERO),), ONE)
            ((_, lift),) = cell[0] or ((number, -1),)
            if lift in floats:
                return Case(((fits(floats[lift]), limbs(floats[lift])[cell[1]]),), ZERO)
            return lifted(atom, cell[0])

        own_keys = tuple(value_of[k] for k in keys)
        outputs = (*own_keys, *map(number_of, cells))
        below = [filtered(t, atom.condition) for t in self._inputs[number].terms]
        terms = tuple(projected(t, outputs) for t in below)
        return _Part(terms, keys, cells, atoms, self._uncut(below, keys, own_keys, cells, floats, outputs))

    def _uncut(
        self,
        below: Sequence[Term],
        keys: tuple[str, ...],
        own_keys: tuple[Expression, ...],
        cells: tuple[Cell, ...],
        floats: Mapping[int, Expression],
        outputs: tuple[Expression, ...],
    ) -> UncutTerms | None:
        """The rows of a leaf before its floats are cut; None if it has none, or sums that are not of 64 bits."""
        width = len(keys)
        whole = [c for c in cells if c != UNFIT_ROWS and not any(i in floats for _, i in c[0])]
        values = [outputs[width + cells.index(c)] for c in whole]
        fields = self._key_fields(keys)
        if not floats or any(v.type != INT64 for v in values) or any(is_nested(f.type) for f in fields):
            return None
        first, order = width + len(whole), list(floats)
        parts = tuple(
            UNFIT
            if c == UNFIT_ROWS
            else (width + whole.index(c), WHOLE)
            if c in whole
            else (first + order.index(next(i for _, i in c[0])), c[1])
            for c in cells
        )
        named = [Field(f"n{i}", v.type, False) for i, v in enumerate((*values, *floats.values()))]
        rows = tuple(projected(t, (*own_keys, *values, *floats.values())) for t in below)
        return UncutTerms(rows, (*fields, *named), parts)

    def _is_plain(self, leaf: _Part) -> bool:
        """Whether a leaf's rows are those of one stored relation, which its variables, columns of it, tell apart."""
        (number,) = leaf.atoms
        if len(leaf.terms) != 1 or len(leaf.terms[0].inputs) != 1:
            return False
        (term,) = leaf.terms
        variables = term.outputs[: len(leaf.keys)]
        is_told_apart = self._inputs[number].is_unique and all(isinstance(v, Column) for v in variables)
        return is_told_apart or isinstance(term.inputs[0], Values)

    def _key_fields(self, keys: tuple[str, ...]) -> Schema:
        found = (self._variables[k] for k in keys)
        return tuple(Field(v.name, v.type, v.nullable) for v in found)

    def _payload(self, root: _Part) -> Payload:
        """The columns of the result's sums, and the row of a group over keys and sums."""
        contributions = _payload_outputs(root)
        fields = payload_fields(contributions)
        start = len(root.keys)
        sums = {cell: Column(start + i, fields[i].type, False) for i, cell in enumerate(root.payload)}
        keys = tuple(Column(i, f.type, f.nullable) for i, f in enumerate(self._key_fields(root.keys)))
        values = []
        for answer in self.block.answers:
            counted = count_total(answer.valid, sums)
            declared = sum_aggregate(answer.call)
            assert declared is not None, "a block's aggregates are functions of sums"
            if is_float_sum(answer.call):
                total = float_total(answer.sums[0], sums)
            elif declared.summed is Summed.NUMBERS:
                total = exact_total(self.block, answer.sums[0], _scale(answer.call), sums)
            else:
                total = count_total(answer.sums[0], sums) if answer.sums else ZERO
            values.append(aggregate_value(answer.call, total, counted))
        return Payload(contributions, fields, (*keys, *values), has_floats=UNFIT_ROWS in root.payload)


def _payload_outputs(part: _Part) -> tuple[Expression, ...]:
    return part.terms[0].outputs[len(part.keys) :]
