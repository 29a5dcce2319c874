"""Databases with a view by heavy and light parts, streams of changes for them, and a checker that walks their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.tree.block_layout import words_per_key
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.tree.tree_state import TreeState
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.planner.skew_plan import Element, RelationPart, SkewPlan
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.expressions import Call, Column, Expression, conjunction
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, INT64, DataType, Row

COUNT = AggregateCall("count", (), INT64)
TRIANGLE = {"r": "ab", "s": "bc", "t": "ca"}
Rows = Mapping[str, Sequence[tuple[Row, int]]]
"""By table, rows and their weights."""


def joined(
    shape: Sequence[tuple[str, str]], kinds: Mapping[str, DataType] | None = None, number: DataType = INT64
) -> tuple[Relation, list[Column]]:
    """An inner join of (table, variables), each table with one more column ``w``; and the columns ``w``."""
    plan: Relation | None = None
    first: dict[str, Column] = {}
    weights = []
    for table, variables in shape:
        types = [(kinds or {}).get(v, INT64) for v in variables]
        fields = [Field(f"c{i}", t, True) for i, t in enumerate(types)]
        scan = Scan(table, (*fields, Field("w", number, True)))
        start = 0 if plan is None else len(schema(plan))
        equal: list[Expression] = []
        for i, (v, kind) in enumerate(zip(variables, types, strict=True)):
            own = Column(start + i, kind)
            if v in first:
                equal.append(Call("=", (first[v], own), BOOLEAN))
            first.setdefault(v, own)
        weights.append(Column(start + len(variables), number))
        plan = scan if plan is None else Join(plan, scan, JoinKind.INNER, conjunction(tuple(equal)))
    assert plan is not None
    return plan, weights


@dataclass
class SkewDatabase:
    """A database with one view; ``held`` are the rows of its tables."""

    plan: Relation
    options: ViewOptions = field(default_factory=lambda: ViewOptions(strategy="skew"))
    backend: EmbeddedBackend = field(default_factory=EmbeddedBackend)
    held: dict[str, Counter[Row]] = field(default_factory=dict)
    static: dict[str, list[tuple[Row, int]]] = field(default_factory=dict)
    """Rows of tables that do not change after the view is made."""

    def __post_init__(self) -> None:
        for scan in _scans(self.plan):
            if scan.table not in self.held:
                self.backend.create_table(TableDefinition(scan.table, scan.fields, static=scan.table in self.static))
                self.held[scan.table] = Counter()
        self.fields = {s.table: s.fields for s in _scans(self.plan)}
        if self.static:
            self.apply(self.static)
        self.add_view("v", self.options)

    def add_view(self, name: str, options: ViewOptions) -> None:
        """One more view of the same query."""
        self.backend.create_view(ViewDefinition(name, self.plan, None, "UTC", options=options))

    def apply(self, rows: Rows) -> None:
        """One transaction."""
        changes = [
            Change(
                table,
                ChangeKind.WEIGHTED,
                rows_to_arrow([r for r, _ in given], self.fields[table]),
                pa.array([w for _, w in given], pa.int64()),
            )
            for table, given in rows.items()
            if given
        ]
        self.backend.apply(changes)
        for table, given in rows.items():
            for row, weight in given:
                self.held[table][row] += weight
                if not self.held[table][row]:
                    del self.held[table][row]

    def answer(self, name: str = "v") -> Counter[Row]:
        """The bag of a view."""
        return Counter(rows_from_arrow(self.backend.read(name), schema(self.plan)))

    @property
    def operator(self) -> TreeOperator:
        """The operator of the block."""
        found = [o for o in below(self.backend._views["v"].root) if isinstance(o, TreeOperator)]
        return found[-1]

    @property
    def listing(self) -> FactorizedOperator:
        """The operator of a view that stays factorized."""
        root = self.backend._views["v"].root
        assert isinstance(root, FactorizedOperator)
        return root


def count_joined(shape: Sequence[tuple[str, str]], held: Mapping[str, Counter[Row]]) -> int:
    """The number of joined rows, by its definition; NULL joins nothing."""
    combinations: Counter[tuple[tuple[str, object], ...]] = Counter({(): 1})
    shared = {v for v, times in Counter(v for _, variables in shape for v in variables).items() if times > 1}
    for table, variables in shape:
        found: Counter[tuple[tuple[str, object], ...]] = Counter()
        own: Counter[tuple[object, ...]] = Counter()
        for row, weight in held[table].items():
            own[tuple(x for v, x in zip(variables, row, strict=False) if v in shared)] += weight
        for known, times in combinations.items():
            bound = dict(known)
            for values, weight in own.items():
                pairs = list(zip((v for v in variables if v in shared), values, strict=True))
                if all(value is not None and bound.get(v, value) == value for v, value in pairs):
                    found[tuple(sorted({**bound, **dict(pairs)}.items()))] += times * weight
        combinations = found
    return sum(combinations.values())


def check_invariants(operator: TreeOperator | FactorizedOperator) -> None:
    """Walks the state: sizes, degrees, parts and auxiliary views are what they say they are."""
    plan, state = operator.skew, operator.state
    assert plan is not None
    partitions = state.partitions
    if partitions is None:
        return
    stored = dict(state.program.twins)
    names = {p: plan.name_of(p) for i in range(len(plan.query.atoms)) for p in plan.parts_of(i)}
    parts = {p: _counts(state, stored.get(name, name)) for p, name in names.items()}
    size = sum(len(parts[p]) for p, name in names.items() if name not in stored)
    assert not any(len(state.maps[name]) for name in state.program.passing), "a change that has not passed"
    assert partitions.size == size
    assert partitions.base // 4 <= size < partitions.base
    for partition in state.program.partitions:
        theta = partitions.threshold(partition)
        own = [p for p in parts if p.atom == partition.atom]
        variables = plan.query.atoms[partition.atom].variables
        place = [k.variables for k in plan.partitions[partition.atom]].index(partition.variables)
        degrees: Counter[Row] = Counter()
        heavy = set(_counts(state, partition.heavy))
        for part in own:
            for key in parts[part]:
                value = tuple(key[variables.index(v)] for v in partition.variables)
                degrees[value] += 1
                assert (value in heavy) == part.heavy[place], "a value is in one part"
        assert degrees == Counter(_counts(state, partition.degrees))
        assert heavy <= degrees.keys()
        for value, degree in degrees.items():
            assert degree >= theta / 2 if value in heavy else degree < 1.5 * theta
    for view in plan.views:
        held = {e: parts[e] if isinstance(e, RelationPart) else _counts(state, plan.name_of(e)) for e in view.parts}
        assert _counts(state, view.name) == _joined_parts(plan, view.parts, view.keys, held)


def _joined_parts(
    plan: SkewPlan, chosen: Sequence[Element], keys: Iterable[str], contents: Mapping[Element, dict[Row, int]]
) -> dict[Row, int]:
    combinations: dict[tuple[tuple[str, object], ...], int] = {(): 1}
    for part in chosen:
        variables = plan.variables_of(part)
        found: Counter[tuple[tuple[str, object], ...]] = Counter()
        known_variables = {v for known in combinations for v, _ in known}
        by = [v for v in variables if v in known_variables]
        matching: dict[Row, list[tuple[dict[str, object], int]]] = {}
        for values, count in contents[part].items():
            own = dict(zip(variables, values, strict=True))
            matching.setdefault(tuple(own[v] for v in by), []).append((own, count))  # type: ignore[misc]
        for known, times in combinations.items():
            bound = dict(known)
            for own, count in matching.get(tuple(bound[v] for v in by), []):  # type: ignore[misc]
                found[tuple(sorted({**bound, **own}.items()))] += times * count
        combinations = found
    summed: Counter[Row] = Counter()
    for known, times in combinations.items():
        summed[tuple(dict(known)[k] for k in keys)] += times  # type: ignore[misc]  # key words
    return {k: v for k, v in summed.items() if v}


def _counts(state: TreeState, name: str) -> dict[Row, int]:
    """The content of a view: its key words by variable, and the count."""
    view, map_ = state.program.view(name), state.maps[name]
    words = words_per_key(state.program.block, view.keys)
    found = {}
    for entry in map_.entries[map_.live_slots()].tolist():
        key = tuple(tuple(entry[w] for w in words[v]) for v in view.keys)
        found[key] = entry[map_.offsets[0]]
    return found  # type: ignore[return-value]  # a value is its words


def _scans(plan: Relation) -> list[Scan]:
    match plan:
        case Scan():
            return [plan]
        case Join():
            return [*_scans(plan.left), *_scans(plan.right)]
        case Aggregate() | Filter() | Project():
            return _scans(plan.child)
        case _:
            raise AssertionError("tests have joins below an aggregate")
