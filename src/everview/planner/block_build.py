"""From an aggregate over a join to a ``Block``: variables from equalities, lifts from polynomials, the rest as residuals.

A block is refused, with the reason, where a tree would not do what Spark does: aggregates without a ring (MIN, DISTINCT …), keys or
terms that need several atoms at once, and expressions over one of several atoms that can fail, since a tree evaluates them
also for rows that have no partner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from everview.planner.block import Answer, Block, BlockAtom, Lift, Monomial, Number, Residual, Variable
from everview.planner.block_flatten import FlatJoin, flatten
from everview.planner.block_terms import Factor, Owners, Polynomial, indicator, lifted, multiply, polynomial
from everview.planner.join_query import Atom, Dependency, JoinQuery
from everview.relational.expressions import Call, Column, Expression, columns_of, conjunction, remap_columns, substitute, walk
from everview.relational.failing import can_fail
from everview.relational.nodes import Aggregate, AggregateCall, Project, Relation, Scan
from everview.relational.schema import is_nullable, schema
from everview.relational.types import BOOLEAN, is_floating, is_numeric

_RING_AGGREGATES = frozenset({"count", "sum", "avg", "try_sum", "try_avg"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What the planner knows of a relation: a key (positions), whether it changes, how many rows it has."""

    key: tuple[int, ...] | None = None
    updatable: bool = True
    rows: float = 1000.0


FactsOf = Callable[[Relation], Facts]


class Refused(Exception):
    """The aggregate is not a block; the message says why."""


def build_block(aggregate: Aggregate, facts_of: FactsOf) -> Block:
    """The block of an aggregate and the joins below it.

    Raises:
        Refused: a view tree cannot maintain it.
    """
    return _Builder(aggregate, flatten(aggregate.child), facts_of).build()


class _Classes:
    """Classes of (atom, expression) that the join makes equal; a class may reject NULL."""

    def __init__(self) -> None:
        self._parent: dict[tuple[int, Expression], tuple[int, Expression]] = {}
        self._rejects: set[tuple[int, Expression]] = set()

    def root(self, member: tuple[int, Expression]) -> tuple[int, Expression]:
        self._parent.setdefault(member, member)
        while self._parent[member] != member:
            member = self._parent[member]
        return member

    def merge(self, a: tuple[int, Expression], b: tuple[int, Expression], *, rejects: bool) -> None:
        first, second = self.root(a), self.root(b)
        if first != second:
            self._parent[second] = first
        if rejects or second in self._rejects:
            self._rejects.add(first)

    def rejects_null(self, member: tuple[int, Expression]) -> bool:
        return self.root(member) in self._rejects

    def members(self) -> dict[tuple[int, Expression], list[tuple[int, Expression]]]:
        found: dict[tuple[int, Expression], list[tuple[int, Expression]]] = {}
        for member in self._parent:
            found.setdefault(self.root(member), []).append(member)
        return found


class _Builder:
    def __init__(self, aggregate: Aggregate, flat: FlatJoin, facts_of: FactsOf) -> None:
        self.aggregate = aggregate
        self.flat = flat
        self.facts_of = facts_of
        self.owner = flat.owner
        self.is_join = len(flat.inputs) > 1
        self.classes = _Classes()
        self.local: list[list[Expression]] = [[] for _ in flat.inputs]
        self.residuals: list[Expression] = []
        self.lifts: list[dict[Factor, int]] = [{} for _ in flat.inputs]

    def owners(self, expression: Expression) -> frozenset[int]:
        return frozenset(self.owner[c] for c in columns_of(expression))

    def build(self) -> Block:
        for condition in self.flat.conditions:
            self._place(condition)
        keys = [self._key(self._flat(k)) for k in self.aggregate.keys]
        for residual in self.residuals:
            for column in _columns(residual):
                self.classes.root((self.owner[column.index], column))
        answers = tuple(self._answer(call) for call in self.aggregate.aggregates)
        return self._assemble(keys, answers)

    def _flat(self, expression: Expression) -> Expression:
        return substitute(expression, self.flat.outputs)

    def _place(self, condition: Expression) -> None:
        atoms = self.owners(condition)
        if len(atoms) <= 1:
            self._check(condition)
            self.local[next(iter(atoms), 0)].append(condition)
            return
        if isinstance(condition, Call) and condition.function in ("=", "<=>") and len(atoms) == 2:
            left, right = condition.args
            a, b = self.owners(left), self.owners(right)
            if len(a) == 1 and len(b) == 1:
                self._check(left)
                self._check(right)
                pair = (next(iter(a)), left), (next(iter(b)), right)
                self.classes.merge(*pair, rejects=condition.function == "=")
                return
        self._check(condition)
        self.residuals.append(condition)

    def _check(self, expression: Expression) -> None:
        if self.is_join and can_fail(expression):
            raise Refused("an expression below the aggregate can fail, also for rows without a partner")

    def _key(self, key: Expression) -> tuple[int, Expression]:
        atoms = self.owners(key)
        if len(atoms) != 1:
            raise Refused("a grouping key reads several tables" if atoms else "a grouping key is a constant")
        self._check(key)
        member = (next(iter(atoms)), key)
        self.classes.root(member)
        return member

    def _answer(self, call: AggregateCall) -> Answer:
        if call.distinct or call.function not in _RING_AGGREGATES:
            distinct = "DISTINCT " if call.distinct else ""
            raise Refused(f"{call.function}({distinct}…) has no inverse")
        args = [self._flat(a) for a in call.args]
        where = None if call.filter is None else self._flat(call.filter)
        for e in (*args, *(() if where is None else (where,))):
            self._check(e)
        owners: Owners = self.owners
        value: Polynomial = ()
        if call.function == "count":
            valid: Polynomial | None = ((1, frozenset()),)
            for arg in args:
                valid = valid and multiply(valid, self._is_valid(arg, owners))
        else:
            if not is_numeric(args[0].type) or (is_floating(args[0].type) and str(args[0].type) != "double"):
                raise Refused(f"{call.function} of {args[0].type}")
            if not self.owners(args[0]):
                raise Refused(f"{call.function} of a constant")
            number = polynomial(args[0], owners)
            if number is None:
                raise Refused(f"the argument of {call.function} is no sum of products of single tables")
            value, valid = number.value, number.valid
        if where is not None:
            holds = indicator(where, owners)
            if holds is None:
                raise Refused("a FILTER condition reads several tables at once")
            filtered = multiply(value, holds)
            valid = valid and multiply(valid, holds)
            if filtered is None:
                raise Refused(f"the argument of {call.function} is no sum of products of single tables")
            value = filtered
        if valid is None:
            raise Refused(f"the argument of {call.function} is no sum of products of single tables")
        return Answer(call, self._monomials(value), self._monomials(valid))

    def _is_valid(self, arg: Expression, owners: Owners) -> Polynomial:
        if not is_nullable(arg):
            return ((1, frozenset()),)
        if len(owners(arg)) == 1:
            found = indicator(Call("isnotnull", (arg,), BOOLEAN), owners)
            assert found is not None
            return found
        number = polynomial(arg, owners) if is_numeric(arg.type) else None
        if number is None:
            raise Refused("count of an expression over several tables")
        return number.valid

    def _monomials(self, terms: Polynomial) -> tuple[tuple[int, Monomial], ...]:
        return tuple(
            (coefficient, frozenset((atom, self._lift(atom, factor)) for atom, factor in term))
            for coefficient, term in terms
        )

    def _lift(self, atom: int, factor: Factor) -> int:
        return self.lifts[atom].setdefault(factor, len(self.lifts[atom]))

    def _assemble(self, keys: list[tuple[int, Expression]], answers: tuple[Answer, ...]) -> Block:
        variable_of, offered = self._variables()
        name_of = {root: v.name for root, v in variable_of.items()}
        atoms = []
        for number, relation in enumerate(self.flat.inputs):
            atoms.append(self._atom(number, relation, offered[number]))
        residuals = []
        for condition in self.residuals:
            used = list(dict.fromkeys(_columns(condition)))
            roots = [name_of[self.classes.root((self.owner[c.index], c))] for c in used]
            positions = {c.index: i for i, c in enumerate(used)}
            residuals.append(Residual(tuple(roots), remap_columns(condition, lambda i, at=positions: at[i])))  # type: ignore[misc]
        key_names = tuple(name_of[self.classes.root(k)] for k in keys)
        query = self._query(atoms, offered, key_names, residuals)
        return Block(tuple(atoms), tuple(variable_of.values()), key_names, tuple(residuals), answers, query)

    def _variables(
        self,
    ) -> tuple[dict[tuple[int, Expression], Variable], list[list[tuple[str, Expression]]]]:
        variable_of: dict[tuple[int, Expression], Variable] = {}
        offered: list[list[tuple[str, Expression]]] = [[] for _ in self.flat.inputs]
        taken: set[str] = set()
        for root, members in self.classes.members().items():
            name = self._name(members, taken)
            rejects = self.classes.rejects_null(root)
            nullable = not rejects and all(is_nullable(e) for _, e in members)
            variable_of[root] = Variable(name, root[1].type, nullable)
            first: dict[int, Expression] = {}
            for atom, expression in members:
                if rejects and is_nullable(expression):
                    self.local[atom].append(Call("isnotnull", (expression,), BOOLEAN))
                elif not nullable and is_nullable(expression):
                    # Equal (<=>) to something that is never NULL.
                    self.local[atom].append(Call("isnotnull", (expression,), BOOLEAN))
                if atom in first:
                    self.local[atom].append(Call("<=>", (first[atom], expression), BOOLEAN))
                else:
                    first[atom] = expression
                    offered[atom].append((name, expression))
        return variable_of, offered

    def _name(self, members: Iterable[tuple[int, Expression]], taken: set[str]) -> str:
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

    def _atom(self, number: int, relation: Relation, variables: list[tuple[str, Expression]]) -> BlockAtom:
        start = self.flat.start[number]
        condition = conjunction(tuple(dict.fromkeys(self.local[number])))
        lifts = [(factor, lifted(factor)) for factor in self.lifts[number]]
        reads = {c for e in (condition, *(e for _, e in variables), *(e for _, e in lifts)) for c in columns_of(e)}
        positions = {c: c - start for c in reads}
        pruned = relation
        if isinstance(relation, Scan):
            kept = sorted(reads)
            positions = {c: i for i, c in enumerate(kept)}
            fields = [relation.fields[c - start] for c in kept]
            columns = tuple(Column(c - start, f.type, f.nullable) for c, f in zip(kept, fields, strict=True))
            pruned = Project(relation, columns, tuple(f.name for f in fields))

        def move(e: Expression) -> Expression:
            return remap_columns(e, lambda i: positions[i])

        name = relation.table if isinstance(relation, Scan) else type(relation).__name__.lower()
        return BlockAtom(
            f"{name}#{number}" if self._is_ambiguous(number, name) else name,
            pruned,
            move(condition),
            tuple((v, move(e)) for v, e in variables),
            tuple(Lift(move(e), _number_of(f)) for f, e in lifts),
        )

    def _is_ambiguous(self, number: int, name: str) -> bool:
        names = [r.table if isinstance(r, Scan) else type(r).__name__.lower() for r in self.flat.inputs]
        return names.count(name) > 1 and names.index(name) != number

    def _query(
        self,
        atoms: list[BlockAtom],
        offered: list[list[tuple[str, Expression]]],
        keys: tuple[str, ...],
        residuals: list[Residual],
    ) -> JoinQuery:
        planned, dependencies = [], []
        for number, (atom, relation) in enumerate(zip(atoms, self.flat.inputs, strict=True)):
            facts = self.facts_of(relation)
            own = tuple(v for v, _ in atom.variables)
            planned.append(Atom(atom.name, str(number), own, facts.updatable, facts.rows))
            key = facts.key
            if key is None and isinstance(relation, Aggregate):
                key = tuple(range(len(relation.keys)))
            if key is not None:
                start = self.flat.start[number]
                by_column = {e.index - start: v for v, e in offered[number] if isinstance(e, Column)}
                if all(c in by_column for c in key):
                    determinant = frozenset(by_column[c] for c in key)
                    dependencies.append(Dependency(determinant, frozenset(own) - determinant))
        together = tuple(frozenset(r.variables) for r in residuals)
        return JoinQuery(tuple(planned), tuple(dict.fromkeys(keys)), tuple(dependencies), together)


def _number_of(factor: Factor) -> Number:
    if not factor.values:
        return Number.COUNT
    return Number.FLOAT if is_floating(factor.values[0].type) else Number.EXACT


def _columns(expression: Expression) -> list[Column]:
    return [e for e in walk(expression) if isinstance(e, Column)]
