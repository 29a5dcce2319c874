"""Join queries in a short notation, and Hypothesis strategies for them."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import strategies as st

from everview.planner.join_query import Atom, Dependency, JoinQuery


def join_query(
    text: str,
    dependencies: str = "",
    *,
    static: str = "",
    together: tuple[str, ...] = (),
    rows: dict[str, float] | None = None,
) -> JoinQuery:
    """``Q[A, C] = R[A, B] S[A, C]``, dependencies such as ``A -> B; B C -> D``; ``static`` names atoms that never change."""
    head, body = text.split("=")
    atoms = tuple(
        Atom(name, name, _words(variables), name not in static.split(), (rows or {}).get(name, 1000.0))
        for name, variables in re.findall(r"(\w+)\[([^\]]*)\]", body)
    )
    rules = tuple(_dependency(d) for d in dependencies.split(";") if d)
    free = _words(re.findall(r"\[([^\]]*)\]", head)[0])
    return JoinQuery(atoms, free, rules, tuple(frozenset(t.split()) for t in together))


def only_updates_to(query: JoinQuery, names: str) -> JoinQuery:
    """The query with these atoms as the only ones that change."""
    atoms = tuple(replace(a, updatable=a.name in names.split()) for a in query.atoms)
    return replace(query, atoms=atoms)


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))


def _dependency(text: str) -> Dependency:
    determinant, dependent = text.split("->")
    return Dependency(frozenset(determinant.split()), frozenset(dependent.split()))


@st.composite
def join_queries(
    draw: st.DrawFn, *, dependencies: bool = False, together: bool = False, max_atoms: int = 5, least_arity: int = 0
) -> JoinQuery:
    """Queries of a few atoms over up to six variables; dependencies are within atoms, as keys are."""
    count = draw(st.integers(1, max_atoms))
    schemas = [
        tuple(draw(st.lists(st.sampled_from("ABCDEF"), min_size=least_arity, max_size=4, unique=True)))
        for _ in range(count)
    ]
    atoms = tuple(
        Atom(f"R{i}", f"R{i}", schema, draw(st.booleans()) or i == 0, draw(st.sampled_from([1.0, 50.0, 1000.0, 1e6])))
        for i, schema in enumerate(schemas)
    )
    used = sorted({v for schema in schemas for v in schema})
    free = tuple(draw(st.lists(st.sampled_from(used), unique=True, max_size=4))) if used else ()
    rules: list[Dependency] = []
    for schema in schemas:
        if dependencies and len(schema) > 1 and draw(st.booleans()):
            size = draw(st.integers(1, len(schema) - 1))
            rules.append(Dependency(frozenset(schema[:size]), frozenset(schema[size:])))
    sets: list[frozenset[str]] = []
    if together and len(used) > 1:
        some = st.frozensets(st.sampled_from(used), min_size=2, max_size=3)
        sets = draw(st.lists(some, max_size=2))
    return JoinQuery(atoms, free, tuple(rules), tuple(sets))
