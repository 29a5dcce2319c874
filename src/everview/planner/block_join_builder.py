"""What every block has, whatever is computed over its join: atoms, variables from equalities, residual predicates.

Conditions over one atom filter its leaf; an equality of two atoms makes one variable of its sides; the rest are residuals.

A tree would fail where Spark does not: expressions that can fail, over one of several atoms, are evaluated also for rows that
have no partner. So the failures of what is summed are counted (``Failure``), if the engine can look at the rows where one
survives the join. Keys and conditions must not fail: a row for which one does has no place in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce

from everview.planner.block import (
    Answer,
    Block,
    BlockAtom,
    Failure,
    Lift,
    Monomial,
    Number,
    Residual,
    RingLift,
    Variable,
    Watch,
)
from everview.planner.block_flatten import FlatJoin
from everview.planner.block_terms import Factor, lifted
from everview.planner.join_query import Atom, Dependency, JoinQuery
from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    children,
    columns_of,
    conjunction,
    remap_columns,
    shift_columns,
    transform,
    walk,
    with_children,
)
from everview.relational.failing import can_fail, fails_otherwise, overflows
from everview.relational.nodes import Filter, Project, Relation, Scan
from everview.relational.references import Reference
from everview.relational.schema import is_nullable, schema
from everview.relational.types import BOOLEAN, is_floating
from everview.relational.unique_keys import UniqueKey, kept_apart, unique_keys


@dataclass(frozen=True, slots=True)
class Facts:
    """What the planner knows of a relation: its unique keys, whether it changes, how many rows it has.

    ``matches`` says for some columns how many rows agree on them with a row, on average: 1 if they are unique, and more the
    more they are skewed. None where nobody has looked. ``references`` are foreign keys that every transaction is checked by.
    """

    keys: tuple[UniqueKey, ...] = ()
    updatable: bool = True
    rows: float = 1000.0
    matches: Callable[[tuple[int, ...]], float] | None = None
    references: tuple[Reference, ...] = ()


FactsOf = Callable[[Relation], Facts]


def remembered(facts_of: FactsOf) -> FactsOf:
    """The same facts, each looked up once: rows that agree are counted in whole columns."""

    def once(relation: Relation) -> Facts:
        facts = facts_of(relation)
        return facts if facts.matches is None else replace(facts, matches=cache(facts.matches))

    return cache(once)


class Refused(Exception):
    """The relation is not a block; the message says why."""


Member = tuple[int, Expression]
"""An expression over one atom: the atom, and the expression over the columns of the flat join."""


Offer = tuple[str, Expression]
"""A variable and its value for a row of an atom."""


class _Classes:
    """Classes of (atom, expression) that the join makes equal; a class may reject NULL."""

    def __init__(self) -> None:
        self._parent: dict[Member, Member] = {}
        self._rejects: set[Member] = set()

    def root(self, member: Member) -> Member:
        self._parent.setdefault(member, member)
        while self._parent[member] != member:
            member = self._parent[member]
        return member

    def merge(self, a: Member, b: Member, *, rejects: bool) -> None:
        first, second = self.root(a), self.root(b)
        if first != second:
            self._parent[second] = first
        if rejects or second in self._rejects:
            self._rejects.add(first)

    def __contains__(self, member: Member) -> bool:
        return member in self._parent

    def rejects_null(self, member: Member) -> bool:
        return self.root(member) in self._rejects

    def members(self) -> dict[Member, list[Member]]:
        found: dict[Member, list[Member]] = {}
        for member in self._parent:
            found.setdefault(self.root(member), []).append(member)
        return found


class JoinBuilder:
    """Builds the block of a flat join, step by step: its conditions are placed at once, then come variables and lifts.

    Raises:
        Refused: if a view tree cannot maintain the join.
    """

    def __init__(self, flat: FlatJoin, facts_of: FactsOf, *, may_watch: bool = False) -> None:
        self.flat = flat
        self._may_watch = may_watch
        self._watched: dict[Expression, None] = {}
        self._facts_of = facts_of
        self._owner = flat.owner
        self.is_join = len(flat.inputs) > 1
        self._classes = _Classes()
        self._local: list[list[Expression]] = [[] for _ in flat.inputs]
        self._residuals: list[Expression] = []
        self._lifts: list[dict[Factor | RingLift, int]] = [{} for _ in flat.inputs]
        self._failing: list[dict[Expression, None]] = [{} for _ in flat.inputs]
        self._kept: set[int] = set()
        for condition in flat.conditions:
            self._place(condition)
        for residual in self._residuals:
            for column in columns_in(residual):
                self.variable(column)

    def owners(self, expression: Expression) -> frozenset[int]:
        """The atoms that an expression over the columns of the flat join reads."""
        return frozenset(self._owner[c] for c in columns_of(expression))

    def _place(self, condition: Expression) -> None:
        atoms = self.owners(condition)
        if len(atoms) <= 1:
            self.check(condition)
            self._local[next(iter(atoms), 0)].append(condition)
            return
        if isinstance(condition, Call) and condition.function in ("=", "<=>") and len(atoms) == 2:
            left, right = condition.args
            a, b = self.owners(left), self.owners(right)
            if len(a) == 1 and len(b) == 1:
                self.check(left)
                self.check(right)
                pair = (next(iter(a)), left), (next(iter(b)), right)
                self._classes.merge(*pair, rejects=condition.function == "=")
                return
        self.check(condition)
        self._residuals.append(condition)

    def admitted(self, expression: Expression) -> Expression:
        """The expression with the parts that can fail over one atom NULL where they do, and their failures counted.

        Raises:
            Refused: it can fail in another way.
        """
        if self.is_join and self._may_watch and fails_otherwise(expression):
            expression = self._with_failures_counted(expression)
        self.check(expression)
        return expression

    def _with_failures_counted(self, expression: Expression) -> Expression:
        if not fails_otherwise(expression):
            return expression
        atoms = self.owners(expression)
        if len(atoms) == 1:
            self._failing[next(iter(atoms))][expression] = None
            return _tried(expression)
        return with_children(expression, tuple(self._with_failures_counted(c) for c in children(expression)))

    def check(self, expression: Expression) -> None:
        """Refuses an expression that a leaf cannot evaluate, as Spark might not evaluate it for the same rows."""
        if not self.is_join or not can_fail(expression):
            return
        found = overflows(expression) if self._may_watch else None
        if found is None:
            raise Refused("an expression below the join can fail, also for rows without a partner")
        self._watched |= dict.fromkeys(found)

    def keep(self, expression: Expression) -> None:
        """Lets atoms have the columns of an expression, though no lift may need them: rows that stand in for a tree do."""
        self._kept |= columns_of(expression)

    def is_watched(self, expression: Expression) -> bool:
        """Whether the engine takes care that the exact number stays in its range."""
        return expression in self._watched

    def variable(self, expression: Expression) -> Member:
        """Makes an expression over one atom a variable, unless it is one."""
        (atom,) = self.owners(expression)
        return self._classes.root((atom, expression))

    def is_variable(self, expression: Expression) -> bool:
        """Whether an expression over one atom is a variable already."""
        return all((atom, expression) in self._classes for atom in self.owners(expression))

    def lift(self, atom: int, factor: Factor | RingLift) -> int:
        """The number of a lift of the atom, made on first use; a ``RingLift`` is still over the columns of the flat join."""
        found = self.find_lift(atom, factor)
        return self._lifts[atom].setdefault(factor, len(self._lifts[atom])) if found is None else found

    def find_lift(self, atom: int, factor: Factor | RingLift) -> int | None:
        """The number of a lift of the atom, if there is one; a product of floats may be written in another way."""
        if isinstance(factor, RingLift):
            return self._lifts[atom].get(factor)
        written = (replace(factor, values=values) for values in factor.products)
        return next((self._lifts[atom][f] for f in written if f in self._lifts[atom]), None)

    def factors(self) -> list[list[Factor | RingLift]]:
        """The lifts of each atom so far, by their numbers."""
        return [list(lifts) for lifts in self._lifts]

    def assemble(self, keys: Sequence[Member], answers: tuple[Answer, ...] = ()) -> Block:
        """The block with these variables as keys. To be called once, when all variables and lifts are made."""
        variable_of, offered = self._variables()
        name_of = {root: v.name for root, v in variable_of.items()}
        counts = [self._failure_count(atom) for atom in range(len(self.flat.inputs))]
        found = (self._residual(c, name_of, offered) for c in self._residuals)
        residuals = list(dict.fromkeys(r for r in found if r is not None))  # one that stands twice is checked once
        self._places: dict[int, tuple[int, int]] = {}
        atoms = [self._atom(number, relation, offered[number]) for number, relation in enumerate(self.flat.inputs)]
        key_names = tuple(name_of[self._classes.root(k)] for k in keys)
        query = self._query(atoms, offered, key_names, residuals)
        watches = tuple(self._watch(number) for number in self._watched)
        failures = tuple(
            Failure(number, tuple(self._moved_to(number, e) for e in self._failing[number]), count)
            for number, count in enumerate(counts)
            if count is not None
        )
        return Block(
            tuple(atoms), tuple(variable_of.values()), key_names, tuple(residuals), answers, query, watches, failures
        )

    def _failure_count(self, atom: int) -> Monomial | None:
        failing = self._failing[atom]
        if not failing:
            return None
        any_fails = reduce(lambda a, b: Call("or", (a, b), BOOLEAN), map(_fails, failing))
        return frozenset({(atom, self.lift(atom, Factor((), frozenset({any_fails}))))})

    def _moved_to(self, atom: int, expression: Expression) -> Expression:
        """An expression of the flat join over the columns of the atom's input."""
        places = {c: position for c, (number, position) in self._places.items() if number == atom}
        return remap_columns(expression, lambda c: places[c])

    def _watch(self, number: Expression) -> Watch:
        used = sorted(columns_of(number))
        places = {c: i for i, c in enumerate(used)}
        return Watch(remap_columns(number, lambda c: places[c]), tuple(self._places[c] for c in used))

    def _residual(
        self, condition: Expression, name_of: Mapping[Member, str], offered: list[list[Offer]]
    ) -> Residual | None:
        """The predicate over variables; None if a single atom has them all, whose condition it then is."""
        used = list(dict.fromkeys(columns_in(condition)))
        names = [name_of[self.variable(c)] for c in used]
        for atom, offers in enumerate(offered):
            value_of = dict(offers)
            if all(n in value_of for n in names):
                values = {c.index: value_of[n] for c, n in zip(used, names, strict=True)}
                self._local[atom].append(_with_columns(condition, values))
                return None
        positions = {c.index: i for i, c in enumerate(used)}
        return Residual(tuple(names), remap_columns(condition, lambda i: positions[i]))

    def _variables(self) -> tuple[dict[Member, Variable], list[list[Offer]]]:
        variable_of: dict[Member, Variable] = {}
        offered: list[list[Offer]] = [[] for _ in self.flat.inputs]
        taken: set[str] = set()
        for root, members in self._classes.members().items():
            name = self._name(members, taken)
            rejects = self._classes.rejects_null(root)
            nullable = not rejects and all(is_nullable(e) for _, e in members)
            variable_of[root] = Variable(name, root[1].type, nullable)
            first: dict[int, Expression] = {}
            for atom, expression in members:
                if rejects and is_nullable(expression):
                    self._local[atom].append(Call("isnotnull", (expression,), BOOLEAN))
                elif not nullable and is_nullable(expression):
                    # Equal (<=>) to something that is never NULL.
                    self._local[atom].append(Call("isnotnull", (expression,), BOOLEAN))
                if atom in first:
                    self._local[atom].append(Call("<=>", (first[atom], expression), BOOLEAN))
                else:
                    first[atom] = expression
                    offered[atom].append((name, expression))
        return variable_of, offered

    def _name(self, members: Iterable[Member], taken: set[str]) -> str:
        fields = [f for relation in self.flat.inputs for f in schema(relation)]
        base = "key"
        for _, expression in members:
            used = sorted(columns_of(expression))
            if used:
                base = fields[used[0]].name
                if not isinstance(expression, Column):
                    base = f"f({base})"
                break
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        return name

    def _atom(self, number: int, relation: Relation, variables: list[Offer]) -> BlockAtom:
        start = self.flat.start[number]
        condition = conjunction(tuple(dict.fromkeys(self._local[number])))
        lifts = [f if isinstance(f, RingLift) else Lift(lifted(f), _number_of(f)) for f in self._lifts[number]]
        own = range(start, start + len(schema(relation)))
        lifted_expressions = (e for lift in lifts for e in lift.expressions)
        reads = {c for e in (condition, *(e for _, e in variables), *lifted_expressions) for c in columns_of(e)}
        reads |= {c for e in self._watched for c in columns_of(e) if c in own} | (self._kept & set(own))
        positions = {c: c - start for c in reads}
        pruned = relation
        if isinstance(relation, Scan):
            kept = sorted(reads)
            positions = {c: i for i, c in enumerate(kept)}
            fields = [relation.fields[c - start] for c in kept]
            columns = tuple(Column(c - start, f.type, f.nullable) for c, f in zip(kept, fields, strict=True))
            pruned = Project(relation, columns, tuple(f.name for f in fields))

        self._places |= {c: (number, position) for c, position in positions.items()}

        def move(e: Expression) -> Expression:
            return remap_columns(e, lambda i: positions[i])

        name = relation.table if isinstance(relation, Scan) else type(relation).__name__.lower()
        return BlockAtom(
            f"{name}#{number}" if self._is_ambiguous(number, name) else name,
            pruned,
            move(condition),
            tuple((v, move(e)) for v, e in variables),
            tuple(_moved(lift, move) for lift in lifts),
        )

    def _is_ambiguous(self, number: int, name: str) -> bool:
        names = [r.table if isinstance(r, Scan) else type(r).__name__.lower() for r in self.flat.inputs]
        return names.count(name) > 1 and names.index(name) != number

    def _query(
        self,
        atoms: list[BlockAtom],
        offered: list[list[Offer]],
        keys: tuple[str, ...],
        residuals: list[Residual],
    ) -> JoinQuery:
        planned, dependencies = [], []
        for number, (atom, relation) in enumerate(zip(atoms, self.flat.inputs, strict=True)):
            facts = self._facts_of(relation)
            own = tuple(v for v, _ in atom.variables)
            planned.append(Atom(atom.name, str(number), own, facts.updatable, facts.rows))
            start = self.flat.start[number]
            rows = Filter(relation, shift_columns(conjunction(tuple(self._local[number])), -start))
            variable_of = {c - start: v for v, e in offered[number] if (c := kept_apart(e)) is not None}
            for key in unique_keys(rows, lambda scan: self._facts_of(scan).keys):
                if not key.present and key.columns <= variable_of.keys():
                    determinant = frozenset(variable_of[c] for c in key.columns)
                    dependencies.append(Dependency(determinant, frozenset(own) - determinant))
        together = tuple(frozenset(r.variables) for r in residuals)
        return JoinQuery(tuple(planned), tuple(dict.fromkeys(keys)), tuple(dependencies), together)


def _tried(expression: Expression) -> Expression:
    """The value, NULL where it fails."""
    return Call("try", (expression,), expression.type)


def _fails(expression: Expression) -> Expression:
    """Whether it fails, which is never NULL: whether it is NULL is known exactly where it has a value."""
    return Call("isnull", (_tried(Call("isnull", (expression,), BOOLEAN)),), BOOLEAN)


def _number_of(factor: Factor) -> Number:
    if not factor.values:
        return Number.COUNT
    return Number.FLOAT if is_float(factor) else Number.EXACT


def is_float(factor: Factor) -> bool:
    """Whether a factor is a number of floats."""
    return bool(factor.values) and is_floating(factor.values[0].type)


def _moved(lift: Lift | RingLift, move: Callable[[Expression], Expression]) -> Lift | RingLift:
    if isinstance(lift, RingLift):
        return RingLift(lift.ring, lift.positions, tuple(move(e) for e in lift.arguments))
    return Lift(move(lift.value), lift.number)


def _with_columns(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    return transform(expression, lambda e: values[e.index] if isinstance(e, Column) else None)


def columns_in(expression: Expression) -> list[Column]:
    """The columns of an expression, as often as it has them."""
    return [e for e in walk(expression) if isinstance(e, Column)]
