"""Give one-sided conditions to the inputs of a join, but for those that can fail."""

from __future__ import annotations

from dataclasses import replace

from everview.relational.expressions import Expression, conjunction, conjuncts
from everview.relational.failing import can_fail
from everview.relational.nodes import Filter, Join, JoinKind, Relation, UnionAll
from everview.relational.rules.push_filter_into_join import push_filter_into_join
from everview.relational.rules.push_join_condition import push_join_condition


def push_safe_condition(relation: Relation) -> Relation | None:
    """``push_filter_into_join`` and ``push_join_condition`` for the conjuncts that have a value for every row.

    For joins that outer joins and marks were split into: Spark evaluates the condition of an outer join for rows that meet, so
    what can fail stays in the join, where a row without a partner is never tested.

    >>> from everview.relational.rule_examples import L, R, a, b, both, c, d, equal, less, plus, show
    >>> plan = Join(L, R, JoinKind.INNER, both(equal(a, c), both(less(plus(b, 1), 5), less(d, 7))))
    >>> show(plan)
    inner join on ((a = c) and (((b + 1) < 5) and (d < 7)))
      scan l [a, b]
      scan r [c, d]
    >>> show(push_safe_condition(plan))
    inner join on ((a = c) and ((b + 1) < 5))
      scan l [a, b]
      filter (d < 7)
        scan r [c, d]
    """
    match relation:
        case Filter(child=Join(kind=JoinKind.INNER) as join):
            every = (*conjuncts(join.condition), *conjuncts(relation.condition))
            joined = replace(join, condition=conjunction(tuple(dict.fromkeys(every))))
            return push_safe_condition(joined) or joined
        case Filter():
            return push_filter_into_join(relation)
        case Join():
            parts = conjuncts(relation.condition)
            risky = tuple(p for p in parts if can_fail(p))
            rule = push_filter_into_join if relation.kind is JoinKind.INNER else push_join_condition
            pushed = rule(replace(relation, condition=conjunction(tuple(p for p in parts if p not in risky))))
            return pushed if pushed is None or not risky else _with_parts(pushed, risky)
        case _:
            return None


def _with_parts(pushed: Relation, parts: tuple[Expression, ...]) -> Relation:
    """What a rule made of a join, with further conjuncts of its condition."""
    match pushed:
        case UnionAll(inputs=(unmatched, Join() as join)):
            return UnionAll((unmatched, _with_parts(join, parts)))
        case Join():
            return replace(pushed, condition=conjunction((*conjuncts(pushed.condition), *parts)))
        case _:
            raise AssertionError(f"a rule for joins makes {type(pushed).__name__}")
