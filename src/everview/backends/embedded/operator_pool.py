"""All operators of a database. What is equal is there once, whichever view asked for it.

An operator is determined by what it computes from which inputs. A new one takes in the contents of its inputs before it joins
the others. A new view tree shares stored views with the trees that are there, if it may (``shared_views``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from everview.backends.embedded.dependencies import content_of, in_order
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.shared_views import SharedViews
from everview.backends.embedded.sources import ScanOperator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.tree_operator import TreeOperator
from everview.backends.embedded.vectors import Batch


class OperatorPool:
    """Operators in an order in which inputs come before their users.

    Args:
        users: Names the user views over an operator.
    """

    def __init__(self, users: Callable[[Operator], tuple[str, ...]] = lambda _: ()) -> None:
        self.operators: list[Operator] = []
        self.generation = 0
        """Grows whenever an operator comes or goes."""
        self._shared: dict[Hashable, Operator] = {}
        self._keys: dict[Operator, Hashable] = {}
        self._sharing = SharedViews(users)

    def shared(
        self, key: Hashable, make: Callable[[], Operator], contents: dict[int, Batch], *, shares: bool
    ) -> Operator:
        """The operator with this key, made and loaded if there is none.

        Args:
            key: What it computes, from which operators.
            make: Makes it.
            contents: The contents of operators, as far as they are known, by identity.
            shares: Whether a view tree may be in step with those of other views.
        """
        known = self._shared.get(key)
        if known is not None:
            return known
        made = make()
        may_share = shares and isinstance(made, TreeBacked) and not _is_alone(made)
        borrowed = self._sharing.borrow(made) if may_share and isinstance(made, TreeBacked) else frozenset()
        given = [None if a in borrowed else content_of(i, contents) for a, i in enumerate(made.inputs)]
        contents[id(made)] = _loaded(made, given)
        made.commit()
        self._shared[key] = made
        self._keys[made] = key
        self.operators.append(made)
        if may_share and isinstance(made, TreeBacked):
            self._sharing.add(made)
        self.generation += 1
        return made

    def keep_only(self, needed: set[int]) -> None:
        """Removes the operators that are not needed (by identity), and the arrangements that nothing looks rows up in."""
        self.forget([o for o in self.operators if id(o) not in needed and o in self._keys])
        searches = [s for o in self.operators for s in o.searches()]
        searched = {id(s) for s in searches} | {id(s.whole) for s in searches}
        for operator in self.operators:
            kept = operator.arrangement
            if kept is not None and not kept.is_asked_by_users and id(kept) not in searched:
                operator.arrangement = None
            if id(operator.in_table) not in searched:
                operator.in_table = None
        for source in {id(o.source): o.source for o in self.operators if isinstance(o, ScanOperator)}.values():
            source.release({id(s.reader) for s in searches})

    def forget(self, gone: list[Operator]) -> None:
        """Removes operators that nothing reads."""
        dropped = {id(o) for o in gone}
        for operator in gone:
            key = self._keys.pop(operator)
            if self._shared.get(key) is operator:
                del self._shared[key]
            if isinstance(operator, ScanOperator):
                operator.source.forget(operator.columns)
        self._sharing.remove(gone)
        self.operators = [o for o in self.operators if id(o) not in dropped]
        self.put_in_order()

    def set_apart(self, operators: Iterable[Operator]) -> None:
        """Lets nobody else share operators, which stay as they are for the views that have them."""
        for operator in operators:
            if self._shared.get(self._keys[operator]) is operator:
                del self._shared[self._keys[operator]]
        self._sharing.remove(operators)

    def put_in_order(self) -> None:
        """Puts the groups of trees where they belong, as they are now."""
        groups = self._sharing.groups
        if groups or any(isinstance(o, TreeGroup) for o in self.operators):
            self.operators = in_order([*(o for o in self.operators if not isinstance(o, TreeGroup)), *groups])
        self.generation += 1

    def let_go(self, tree: TreeBacked) -> None:
        """Lets a tree leave its group, with a copy of what it shares: its numbers are beyond what a tree can sum."""
        self._sharing.let_go(tree)
        self.put_in_order()


def _loaded(operator: Operator, contents: Sequence[Batch | None]) -> Batch:
    """Fills an operator; a tree does not read the inputs (None) of what it has borrowed."""
    if isinstance(operator, TreeBacked):
        return operator.load(contents)
    return operator.load([c for c in contents if c is not None])


def _is_alone(tree: TreeBacked) -> bool:
    """Whether a tree shares nothing: rows stand in for it, or may have to at any moment."""
    return isinstance(tree, TreeOperator) and (tree.rows is not None or tree.program.block.may_leave_tree)
