"""The running example of F-IVM on the embedded engine: its database, its views, and what the trees of views hold.

Everything goes through ``create_view`` and ``apply``; only the look into the tree is from below. A leaf of our trees has the
variables of its own relation summed out already: ``R[A]`` is the paper's V with superscript @B and subscript R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

import everview as ev
from everview.backends.embedded.arrow_columns import vector_to_arrow
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.tree.block_layout import key_layout
from everview.backends.embedded.tree.factorized_operator import FactorizedOperator
from everview.backends.embedded.tree.join_tree_operator import JoinTreeOperator
from everview.backends.embedded.tree.layout import COUNTED, EXACT, FLOATING
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Ints
from everview.planner.join_query import JoinQuery
from everview.planner.plan_tree import Indicators, TreePlan, plan_tree
from everview.planner.variable_order import parse_order
from everview.trigger import plan_block, plan_factorized
from everview.trigger.format_tree_program import format_trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

View: TypeAlias = dict[Any, Any]
"""A view as the paper writes it: key → payload, the variables of a key in alphabetical order. A key of one variable stands by
itself, and so does a payload that is only a count."""

SCHEMAS = {"R": ("A", "B"), "S": ("A", "C", "E"), "T": ("C", "D")}
FIGURE_6: Mapping[str, Sequence[tuple[str, ...]]] = {
    "R": [("a1", "b1"), ("a1", "b2"), ("a2", "b3"), ("a3", "b4")],
    "S": [("a1", "c1", "e1"), ("a1", "c1", "e2"), ("a1", "c2", "e3"), ("a2", "c2", "e4")],
    "T": [("c1", "d1"), ("c2", "d2"), ("c2", "d3"), ("c3", "d4")],
}
JOINED = "R NATURAL JOIN S NATURAL JOIN T"
COUNT_SQL = f"SELECT SUM(1) AS n FROM {JOINED}"
"""Example 3."""

CHAIN = {"R": ("A", "B"), "S": ("B", "C"), "T": ("C", "D")}
CHAIN_KEYS = {"S": "B", "T": "C"}
CHAIN_ROWS = {
    "R": [("a1", "b1"), ("a2", "b1"), ("a3", "b2"), ("a1", "b3"), ("a4", "b9")],
    "S": [("b1", "c1"), ("b2", "c1"), ("b3", "c2"), ("b4", "c3")],
    "T": [("c1", "d1"), ("c2", "d1"), ("c4", "d2")],
}
"""Example 27."""
TRIANGLE = {"R": ("A", "B"), "S": ("B", "C"), "T": ("C", "A")}
TRIANGLE_SQL = "SELECT COUNT(*) AS n FROM R JOIN S ON R.B = S.B JOIN T ON S.C = T.C AND T.A = R.A"
TRIANGLE_ROWS = {
    "R": [("a1", "b1"), ("a1", "b2"), ("a2", "b9")],
    "S": [("b1", "c1"), ("b2", "c1"), ("b3", "c1"), ("b1", "c2")],
    "T": [("c1", "a1"), ("c1", "a2"), ("c2", "a1")],
}
"""Example 31."""
MATRIX_SCHEMAS = {f"A{i}": (f"X{i}", f"X{i + 1}") for i in range(1, 5)}
MATRIX_SQL = "SELECT X1, X5, COUNT(*) AS v FROM A1 NATURAL JOIN A2 NATURAL JOIN A3 NATURAL JOIN A4 GROUP BY X1, X5"
"""Example 42: the payload of (i, j) is the value there."""


@contextmanager
def relations(
    spark: SparkSession,
    schemas: Mapping[str, Sequence[str]] = SCHEMAS,
    *,
    types: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
    static: str = "",
    retain: bool = True,
) -> Iterator[ev.Database]:
    """A database with these relations, empty; columns are strings unless ``types`` says otherwise; ``static``: names."""
    with ev.connect(spark=spark) as db:
        for name, columns in schemas.items():
            declared = ", ".join(f"{c} {(types or {}).get(c, 'STRING')} NOT NULL" for c in columns)
            is_static = name in static.split()
            db.create_table(
                name, declared, primary_key=(keys or {}).get(name), static=is_static, retain=retain or is_static
            )
        yield db


def weighted(columns: Sequence[str], rows: Mapping[tuple[Any, ...], int]) -> list[dict[str, Any]]:
    """A relation over Z as rows with weights: {(a1, b1) → 2}."""
    return [{**dict(zip(columns, row, strict=True)), "_weight": weight} for row, weight in rows.items()]


def along(patch: pytest.MonkeyPatch, order: str, *, inline: bool = False, indicators: Indicators | None = None) -> None:
    """Trees of views made from now on follow the paper's order, and every view of it stays one, unless ``inline``."""

    def planned(query: JoinQuery, **options: Any) -> TreePlan:
        chosen = options if indicators is None else {**options, "indicators": indicators}
        return plan_tree(query, **{**chosen, "order": parse_order(query, order), "inline": inline})

    for module in (plan_block, plan_factorized):
        patch.setattr(module, "plan_tree", partial(planned))


def tree_of(db: ev.Database, view: str = "q") -> TreeOperator | JoinTreeOperator | FactorizedOperator:
    """The tree that maintains a view."""
    root = db._core.backend._graph.roots[view]  # type: ignore[attr-defined]
    return next(o for o in below(root) if isinstance(o, TreeOperator | JoinTreeOperator | FactorizedOperator))


def listed_from(db: ev.Database, view: str = "q") -> tuple[tuple[str, str], ...]:
    """The free variables in the order in which a factorized result lists them, each with the view it comes from."""
    plan = tree_of(db, view).plan
    assert plan is not None
    return plan.tree.enumerate_from


def trigger_of(db: ev.Database, relation: str, view: str = "q") -> str:
    """The statements of a relation's trigger."""
    program = tree_of(db, view).program
    atom = next(i for i, a in enumerate(program.block.atoms) if a.name == relation)
    trigger = next(t for t in program.triggers if t.atom == atom)
    return "\n".join(line.strip() for line in format_trigger(program, trigger))


def contents(db: ev.Database, view: str = "q") -> dict[str, View]:
    """What each stored view of the tree holds."""
    operator = tree_of(db, view)
    program, dictionary = operator.program, db._core.backend._dictionary  # type: ignore[attr-defined]
    found: dict[str, View] = {}
    for name, stored in operator.state.maps.items():
        entries = stored.entries[stored.live_slots()]
        keys = program.view(name).keys
        columns: list[list[Any]] = []
        if keys:
            vectors = key_layout(program.block, keys).unpack(entries[:, : stored.key_words])
            in_order = [v for _, v in sorted(zip(keys, vectors, strict=True), key=lambda pair: pair[0])]
            columns = [vector_to_arrow(v, dictionary).to_pylist() for v in in_order]
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(entries)
        payloads = list(zip(*(_part(stored, entries, p) for p in range(len(stored.kinds))), strict=True))
        found[name] = {_bare(k): _bare(p) for k, p in zip(rows, payloads, strict=True)}
    return found


def changes(before: Mapping[str, View], after: Mapping[str, View]) -> dict[str, View]:
    """The deltas of views whose payloads are counts: what was added to each, without what did not change."""
    deltas = {
        name: {k: view.get(k, 0) - before[name].get(k, 0) for k in {**before[name], **view}}
        for name, view in after.items()
    }
    return {name: {k: n for k, n in delta.items() if n} for name, delta in deltas.items()}


def moved(before: Mapping[str, View], after: Mapping[str, View]) -> dict[str, View]:
    """The same of the views that changed only."""
    return {name: delta for name, delta in changes(before, after).items() if delta}


def as_payloads(view: View, keys: int) -> View:
    """A view with all but its first keys moved into relational payloads (section 8.3): key → relation."""
    moved: View = {}
    for key, count in view.items():
        whole = key if isinstance(key, tuple) else (key,)
        moved.setdefault(_bare(whole[:keys]), {})[_bare(whole[keys:])] = count
    return moved


def matrices(p: int) -> dict[str, np.ndarray]:
    """Four matrices of small positive numbers."""
    rng = np.random.default_rng(42)
    return {f"A{i}": rng.integers(1, 6, (p, p)) for i in range(1, 5)}


def as_view(matrix: np.ndarray) -> View:
    """A matrix as the paper encodes it: (i, j) → value."""
    return {(int(i), int(j)): int(matrix[i, j]) for i, j in np.ndindex(*matrix.shape)}


def _part(view: ViewMap, entries: Ints, part: int) -> list[Any]:
    kind, at = view.kinds[part], view.offsets[part]
    if kind == COUNTED:
        return list(entries[:, at].tolist())
    if kind == EXACT:
        lows, highs = entries[:, at].tolist(), entries[:, at + 1].tolist()
        return [(high << 64) + (low % 2**64) for low, high in zip(lows, highs, strict=True)]
    assert kind == FLOATING, "no ring of a user is in the paper's examples"
    return list(np.ascontiguousarray(entries[:, at : at + 2]).view(np.float64).sum(axis=1).tolist())


def _bare(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values
