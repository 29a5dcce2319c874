"""A view tree as stages: every view of a trigger program is a sum of terms over the views below it.

    V[keys] = Σ  child₁ ⊗ … ⊗ childₙ  where the residual predicates hold

A child is stored as rows of keys and *partial* payloads; its content is their sum for each key. Payloads are multiplied and
summed, and both are linear in each factor, so a term over partial payloads has the right sum, and its delta rule (``terms``) is
the delta tree of F-IVM: δV = Σ δchild ⊗ siblings, the siblings before it new and those after it old.

    payload of V for a monomial  =  Π over the children of their payload for the monomial's part below them

An only child is no stage: the view above sums its terms. Neither is a leaf whose keys hold a unique key of its table: it would
only copy it. The view above joins the table itself.

Payloads are exact: counts are BIGINT, other sums decimals of up to 38 digits. By Spark's rules a product of decimals keeps its
scale up to six digits after the point, and fails where 38 digits are too few. So a tree is refused whose numbers have more
digits after the point, or could get as large as that within 10⁷ rows: it also sums rows that find no partner in the end, on
which Spark does not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as PythonDecimal
from math import prod
from typing import Final

from everview.backends.spark.payloads import (
    ONE,
    WIDE,
    ZERO,
    Payload,
    aggregate_value,
    is_function_of_exact_sums,
    payload_fields,
    zero,
)
from everview.backends.spark.terms import Term, filtered, joined, leaf_term, projected, same_value
from everview.planner.block import Block, BlockAtom, Lift, Monomial, Number, Residual, Terms, Variable
from everview.planner.block_join_builder import FactsOf, Refused
from everview.relational.bounds import exact_bound, scale_of, type_bound
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    remap_columns,
)
from everview.relational.functions import function_named
from everview.relational.nodes import AggregateCall, Field, Filter, Scan, Schema, Values
from everview.relational.schema import is_nullable
from everview.relational.types import INT64, Decimal, is_integral
from everview.relational.unique_keys import kept_apart, unique_keys
from everview.trigger.tree_program import Compute, TreeProgram

MOST_SCALE: Final = 6
"""So many digits after the point a product of decimals keeps, whatever their precision."""
_LARGEST: Final = 10**38
_ROWS: Final = 10**7
"""So many rows of a key must fit, each with the largest numbers of their types. Real numbers are far smaller than these."""

AddView = Callable[[str, tuple[Term, ...], Schema, int], Scan]
"""Makes a stage of a tree's view, given its name, terms, columns and number of keys; returns the scan of it."""
_Columns = Mapping[Monomial, Column]


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
        if not is_function_of_exact_sums(answer.call):
            raise Refused(f"{name} of {answer.call.args[0].type} is no function of sums that are exact on Spark")
        if _scale(answer.call) > MOST_SCALE:
            raise Refused(f"{name} of a decimal with more than {MOST_SCALE} digits after the point")
        for coefficient, monomial in (term for terms in answer.sums for term in terms):
            bound = prod(_bound(block.atoms[a].lifts[i]) for a, i in monomial)
            if abs(coefficient) * bound * _ROWS >= _LARGEST:
                raise Refused(f"by their types, what {name} adds could need more than 38 digits within {_ROWS:,} rows")


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
    """Terms whose outputs are the values of ``keys`` and a number for each monomial of ``payload``, over ``atoms``."""

    terms: tuple[Term, ...]
    keys: tuple[str, ...]
    payload: tuple[Monomial, ...]
    atoms: frozenset[int]

    def own(self, monomial: Monomial) -> int:
        """The output that has what a monomial says about the atoms of this part."""
        about = frozenset(pair for pair in monomial if pair[0] in self.atoms)
        return len(self.keys) + self.payload.index(about)


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

    def number(self, monomial: Monomial) -> Expression:
        """The product of what the parts have of a monomial."""
        places = [(part.own(monomial), part, start) for part, start in self._parts]
        return _product([Column(start + i, part.terms[0].outputs[i].type, False) for i, part, start in places])


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
        outputs = (*(whole.variables[k] for k in keys), *map(whole.number, definition.payload))
        terms = whole.terms
        if len(children) > 1:
            first = max(range(len(children)), key=lambda i: self._rows(children[i]))
            terms = tuple(replace(t, orders=self._orders(name), first=first) for t in terms)
        return _Part(tuple(projected(t, outputs) for t in terms), keys, definition.payload, definition.atoms)

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
        if not siblings or (is_leaf and self._is_plain(part)):
            return part
        fields = (*self._key_fields(keys), *payload_fields(_payload_outputs(part)))
        scan = self._add_view(name, part.terms, fields, len(keys))
        return _Part((leaf_term(scan),), keys, definition.payload, definition.atoms)

    def _leaf(self, atoms: frozenset[int], keys: tuple[str, ...], payload: tuple[Monomial, ...]) -> _Part:
        """The rows of an atom that pass its condition: variables and lifts."""
        (number,) = atoms
        atom = self.block.atoms[number]
        value_of = dict(atom.variables)
        outputs = (*(value_of[k] for k in keys), *(_lifted(atom, m) for m in payload))
        terms = (filtered(t, atom.condition) for t in self._inputs[number].terms)
        return _Part(tuple(projected(t, outputs) for t in terms), keys, payload, atoms)

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
        sums = {m: Column(start + i, fields[i].type, False) for i, m in enumerate(root.payload)}
        keys = tuple(Column(i, f.type, f.nullable) for i, f in enumerate(self._key_fields(root.keys)))
        values = []
        for answer in self.block.answers:
            counted = _counted(answer.valid, sums)
            declared = sum_aggregate(answer.call)
            assert declared is not None, "a block's aggregates are functions of sums"
            if declared.summed is Summed.NUMBERS:
                total = _total(self.block, answer.sums[0], _scale(answer.call), sums)
            else:
                total = _counted(answer.sums[0], sums) if answer.sums else ZERO
            values.append(aggregate_value(answer.call, total, counted))
        return Payload(contributions, fields, (*keys, *values))


def _payload_outputs(part: _Part) -> tuple[Expression, ...]:
    return part.terms[0].outputs[len(part.keys) :]


def _lifted(atom: BlockAtom, monomial: Monomial) -> Expression:
    """What a row of the atom contributes to a monomial over this atom alone: 1, or a lift."""
    if not monomial:
        return ONE
    ((_, place),) = monomial
    lift = atom.lifts[place]
    assert isinstance(lift, Lift), "rings of users are refused before"
    value = lift.value
    if lift.number is Number.EXACT and is_integral(value.type):
        value = Cast(value, WIDE)
    return Call("coalesce", (value, zero(value.type)), value.type) if is_nullable(value) else value


def _product(factors: Sequence[Expression]) -> Expression:
    """The product of counts and decimals, the counts first."""
    counts = [f for f in factors if f.type == INT64]
    exact = [f for f in factors if f.type != INT64]
    count: Expression | None = None
    for factor in counts:
        count = factor if count is None else Call("*", (count, factor), INT64)
    if not exact:
        assert count is not None
        return count
    if count is not None:
        exact.append(Cast(count, WIDE))
    result = exact[0]
    for factor in exact[1:]:
        result = _multiply(result, factor)
    return result


def _multiply(left: Expression, right: Expression) -> Expression:
    return Call("*", (left, right), function_named("*").result_type((left.type, right.type)))


def _counted(terms: Terms, sums: _Columns) -> Expression:
    """A sum of counts with coefficients."""
    result: Expression | None = None
    for coefficient, monomial in terms:
        part: Expression = sums[monomial]
        if coefficient != 1:
            part = Call("*", (Literal(coefficient, INT64), part), INT64)
        result = part if result is None else Call("+", (result, part), INT64)
    return ZERO if result is None else result


def _total(block: Block, terms: Terms, scale: int, sums: _Columns) -> Expression:
    """A sum of exact numbers with coefficients, which are in units of the last digit: a decimal of this scale."""
    result: Expression | None = None
    for coefficient, monomial in terms:
        own = sum(scale_of(lift.value.type) for a, i in monomial if isinstance(lift := block.atoms[a].lifts[i], Lift))
        part: Expression = sums[monomial]
        if part.type == INT64:
            part = Cast(part, WIDE)
        if coefficient != 1 or own != scale:
            part = _multiply(part, _factor(coefficient, scale - own))
        if result is None:
            result = part
        else:
            result = Call("+", (result, part), function_named("+").result_type((result.type, part.type)))
    return zero(Decimal(38, scale)) if result is None else result


def _factor(coefficient: int, scale: int) -> Literal:
    """A coefficient in units of 10^-scale, as a constant."""
    assert scale >= 0, "exact arithmetic keeps all digits"
    digits = max(len(str(abs(coefficient))), scale + 1)
    return Literal(PythonDecimal(coefficient).scaleb(-scale), Decimal(digits, scale))
