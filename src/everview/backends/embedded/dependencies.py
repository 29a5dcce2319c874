"""What depends on what in the DAG of operators: walks over inputs, and over groups of trees that move as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.explode import ExplodeOperator
from everview.backends.embedded.operators.stateless import FilterOperator, ProjectOperator, UnionAllOperator
from everview.backends.embedded.sources import ConstantOperator, ScanOperator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked
from everview.backends.embedded.vectors import Batch


def below(root: Operator) -> Iterator[Operator]:
    """The operator and all it depends on, each once."""
    return _reached([root], with_groups=False)


def needed_for(roots: Iterable[Operator]) -> Iterator[Operator]:
    """Operators and all that has to run for them: what they depend on, and the groups of trees, whole."""
    return _reached(roots, with_groups=True)


def _reached(roots: Iterable[Operator], *, with_groups: bool) -> Iterator[Operator]:
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        operator = stack.pop()
        if id(operator) not in seen:
            seen.add(id(operator))
            stack.extend(operator.inputs)
            if with_groups and isinstance(operator, TreeBacked) and operator.group is not None:
                stack.append(operator.group)
                stack.extend(operator.group.members)
            yield operator


def in_order(operators: Iterable[Operator]) -> list[Operator]:
    """The operators with inputs before users and groups before their trees, otherwise as they were."""
    order: list[Operator] = []
    seen: set[int] = set()

    def visit(operator: Operator) -> None:
        if id(operator) in seen:
            return
        seen.add(id(operator))
        for before in operator.inputs:
            visit(before)
        if isinstance(operator, TreeBacked) and operator.group is not None:
            visit(operator.group)
        order.append(operator)

    for operator in operators:
        visit(operator)
    return order


def content_of(operator: Operator, known: dict[int, Batch]) -> Batch:
    """The operator's content, computed once for all that is being built."""
    if id(operator) not in known:
        known[id(operator)] = operator.content()
    return known[id(operator)]


def forgets(operator: Operator) -> bool:
    """Whether the operator's content would be computed from a table that keeps no rows."""
    if isinstance(operator, ScanOperator):
        return not operator.source.table.definition.retain
    if operator.arrangement is not None or type(operator).content is not Operator.content:
        return False
    return any(forgets(i) for i in operator.inputs)


_LINEAR = (ScanOperator, ConstantOperator, FilterOperator, ProjectOperator, UnionAllOperator, ExplodeOperator)


def kept(root: Operator) -> Operator:
    """The root of a view that is read: its rows are kept from then on, where computing them again would take long."""
    if _is_costly_to_read(root):
        root.arranged().is_asked_by_users = True
    return root


def _is_costly_to_read(operator: Operator) -> bool:
    """Whether the operator's content is kept nowhere, and computing it is more than a pass over what is."""
    if operator.arrangement is not None or type(operator).content is not Operator.content:
        return False
    return not isinstance(operator, _LINEAR) or any(_is_costly_to_read(i) for i in operator.inputs)
