"""Advice that was tried: the view is planned again as if something were declared, and only what lowers a cost is told.

Advice to PARTITION BY changes the query's meaning, so it is told apart and not tried.

Candidates are keys (columns by which a table is searched and of which its rows have no value twice), ``static`` for tables that
have never changed, maintaining by deltas what is computed anew by the user's own wish, and PARTITION BY for windows over all
rows. A foreign key is no candidate: it changes what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from everview.planner.block_join_builder import Facts, FactsOf
from everview.relational.nodes import Relation, Scan, Window
from everview.relational.unique_keys import UniqueKey
from everview.trigger.program import Anew, Apply
from everview.trigger.row_cost import Cost, PlannedView, RowCost
from everview.trigger.summary import SpreadOf, key_places

Replan = Callable[[FactsOf, bool], PlannedView | None]
"""The view planned again with these facts, by deltas if that is asked for; None if it cannot be."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be declared: in words, and as what the planner would then know of a relation."""

    text: str
    table: str
    facts: Callable[[Facts], Facts]
    by_deltas: bool = False


def advice_lines(view: PlannedView, replan: Replan, spread_of: SpreadOf, unchanged: Sequence[str]) -> list[str]:
    """What to declare, with what it gains.

    Args:
        view: As it is.
        replan: Plans it again.
        spread_of: The rows that are there.
        unchanged: Tables that have rows and have not changed since, though others have.
    """
    costs = view.row_costs()
    if max((c.cost for c in costs), default=Cost.CONSTANT) <= Cost.LOGARITHMIC:
        return []
    tried = [f"  {line}" for line in _of_declarations(view, costs, replan, spread_of, unchanged)]
    untried = [f"  {line}" for line in _of_windows(view)]
    return [
        *(["advice, each tried by planning the view again:", *tried] if tried else []),
        *(["advice, which only you can try:", *untried] if untried else []),
    ]


def _of_declarations(
    view: PlannedView, costs: Sequence[RowCost], replan: Replan, spread_of: SpreadOf, unchanged: Sequence[str]
) -> Iterator[str]:
    candidates = [*_keys(view, costs, spread_of), *(_static(t) for t in unchanged)]
    if any(isinstance(c.statement, Anew) for c in view.program.collections):
        candidates.append(Candidate("leave out strategy='recompute' or refresh='full'", "", lambda f: f, True))
    told = False
    for candidate in candidates:
        gain = _gain(costs, replan, view.facts_of, (candidate,))
        if gain:
            told = True
            yield f"{candidate.text}: {gain}"
    if told or len(candidates) < 2:
        return
    needed = tuple(candidates)
    if gain := _gain(costs, replan, view.facts_of, needed):
        for candidate in candidates:
            fewer = tuple(c for c in needed if c is not candidate)
            if _gain(costs, replan, view.facts_of, fewer) == gain:
                needed = fewer
        yield f"{', and '.join(c.text for c in needed)}: {gain}"


def _keys(view: PlannedView, costs: Sequence[RowCost], spread_of: SpreadOf) -> Iterator[Candidate]:
    for scan, columns in key_places(costs):
        spread = spread_of(scan, columns)
        if spread is None or not spread.rows or not spread.is_unique:
            continue
        known, fields = view.facts_of(scan).keys, [scan.fields[c] for c in columns]
        has_primary = any(not key.present for key in known)
        kind = "UNIQUE" if has_primary or any(f.nullable for f in fields) else "PRIMARY KEY"
        key = UniqueKey(frozenset(columns), frozenset(c for c in columns if scan.fields[c].nullable))
        names = ", ".join(f.name for f in fields)
        yield Candidate(f"declare {scan.table} ({names}) as {kind}", scan.table, _with_key(key))


def _with_key(key: UniqueKey) -> Callable[[Facts], Facts]:
    return lambda facts: replace(facts, keys=(*facts.keys, key))


def _static(table: str) -> Candidate:
    return Candidate(f"create {table} with static=True", table, lambda facts: replace(facts, updatable=False))


def _gain(costs: Sequence[RowCost], replan: Replan, facts_of: FactsOf, candidates: Sequence[Candidate]) -> str:
    """What becomes cheaper with the declarations, for tables that still change; nothing if something becomes dearer."""

    def supposed(relation: Relation) -> Facts:
        facts = facts_of(relation)
        for candidate in candidates:
            if isinstance(relation, Scan) and relation.table.lower() == candidate.table.lower():
                facts = candidate.facts(facts)
        return facts

    planned = replan(supposed, any(c.by_deltas for c in candidates))
    after = {} if planned is None else {c.table: c for c in planned.row_costs()}
    pairs = [(c, after[c.table]) for c in costs if c.table in after]
    if any(_key(new) > _key(old) for old, new in pairs):
        return ""
    return ", ".join(f"{old.table} {old} → {new}" for old, new in pairs if _key(new) < _key(old))


def _key(cost: RowCost) -> int:
    return int(cost.cost)


def _of_windows(view: PlannedView) -> Iterator[str]:
    for collection in view.program.collections:
        match collection.statement:
            case Apply(node=Window(partition=(), functions=functions)):
                names = ", ".join(dict.fromkeys(f"{f.function}(…)" for f in functions))
                yield (
                    f"{names} is computed anew over all rows after every change: with PARTITION BY, "
                    f"{Cost.LINEAR} → {Cost.PARTITION}"
                )
            case _:
                pass
