"""Whose time it was: the seconds that operators have taken, shared out among the views.

An operator's time belongs to the views that it works for: those whose rows are computed from its output, except through another
view that they read by name, which has its own account. Where several views share an operator, each has an equal part of its
time, so that the seconds of all views add up to those of all operators. A group of trees takes in a change for all of them at
once: its time is the trees', in equal parts. What a transaction does besides (checking rows, the tables, making it final) is
no view's.

Operators only count their seconds; they are shared out when somebody asks, and before views come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.catalog import ViewDefinition
from everview.relational.traverse import tables_of


class Timed(Protocol):
    """A view with an account."""

    definition: ViewDefinition
    root: Operator
    seconds: float


def share_out(views: Mapping[str, Timed], operators: Iterable[Operator]) -> None:
    """Moves the seconds of the operators to the accounts of the views, by key (names in small letters)."""
    users: dict[int, list[Timed]] = {}
    for view in views.values():
        for operator in own_operators(view, views):
            users.setdefault(id(operator), []).append(view)
    for operator in operators:
        found = users.get(id(operator), [])
        for view in found:
            view.seconds += operator.seconds / len(found)
        operator.spent += operator.seconds
        operator.seconds = 0.0


def own_operators(view: Timed, views: Mapping[str, Timed]) -> list[Operator]:
    """The operators that work for a view itself, each once, or as often as trees of a group are among them."""
    read = [views[name.lower()].root for name in tables_of(view.definition.plan) if name.lower() in views]
    seen = {id(root) for root in read}
    stack, found = [view.root], []
    while stack:
        operator = stack.pop()
        if id(operator) in seen:
            continue
        seen.add(id(operator))
        found.append(operator)
        stack.extend(operator.inputs)
        if isinstance(operator, TreeBacked) and operator.group is not None:
            found.append(operator.group)
    return found
