"""The terms of a stage that changes of its inputs move, and what they will look up first.

Each term is taken once for each input that has changed: inputs before it are taken with their change, inputs behind it without,
so that each pair of rows is seen once (``terms``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.backends.spark.far_rows import Rows
from everview.backends.spark.key_lookups import Wanted
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.restrict import Restriction, Source, TermSources, source_of
from everview.backends.spark.stages import Grouped, Stage, StageProgram, TreeView, scanned
from everview.backends.spark.terms import Leaf, Term
from everview.relational.nodes import Scan

Relations = Mapping[str, StoredRelation]


@dataclass(frozen=True, slots=True)
class ChangedTerms:
    """The terms whose delta is not surely empty.

    Attributes:
        picked: Numbers of terms, each with the number of a changed input.
        terms: The terms themselves.
        starts: The changed inputs.
        sources: What the inputs of the terms stand for.
    """

    picked: tuple[tuple[int, int], ...]
    terms: tuple[Term, ...]
    starts: tuple[int, ...]
    sources: TermSources


def changed_terms(stage: Stage, changes: Mapping[str, Rows], relations: Relations) -> ChangedTerms:
    """What changes of the inputs, by name, make of a stage."""
    picked: list[tuple[int, int]] = []
    sources: list[tuple[Source | None, ...]] = []
    for number, term in enumerate(stage.terms):
        for start, leaf in enumerate(term.inputs):
            if isinstance(leaf, Scan) and leaf.table in changes:
                own = tuple(_source(other, i, start, changes, relations) for i, other in enumerate(term.inputs))
                if any(s is not None and s.is_empty() for s in own):
                    continue
                picked.append((number, start))
                sources.append(own)
    terms, starts = tuple(stage.terms[number] for number, _ in picked), tuple(start for _, start in picked)
    return ChangedTerms(tuple(picked), terms, starts, tuple(sources))


def moved_stage(stage: Stage, changes: Mapping[str, Rows]) -> Stage:
    """What the changes move of a stage: its rows before floats are cut, where there are such and no change is far."""
    if not isinstance(stage, Grouped | TreeView):
        return stage
    is_far = any(isinstance(changes.get(i.table), StoredRelation) for i in scanned(stage.terms))
    return stage if stage.uncut is None or is_far else stage.uncut


def _source(leaf: Leaf, position: int, start: int, changes: Mapping[str, Rows], relations: Relations) -> Source | None:
    if not isinstance(leaf, Scan):
        return None
    change = changes.get(leaf.table)
    if position == start:
        return source_of(None, change)
    return source_of(relations[leaf.table], change if position < start else None)


def first_look_ups(
    program: StageProgram, changes: Mapping[str, Rows], relations: Relations, restriction: Restriction, limit: int
) -> Iterator[Wanted]:
    """The look-ups that moving a program will begin with, as far as the changes tell.

    Those of the terms' first round, and of the payloads of groups whose key is known from the change alone. ``limit`` is the
    number of rows above which a segment is large.
    """
    for stage in program.stages:
        changed = changed_terms(moved_stage(stage, changes), changes, relations)
        yield from restriction.first_round(changed.terms, changed.starts, changed.sources)
        if isinstance(stage, Grouped) and (state := relations[stage.state_name]).remote(limit):
            yield from restriction.groups_of(state, stage.key_count, changed.terms, changed.starts, changed.sources)
