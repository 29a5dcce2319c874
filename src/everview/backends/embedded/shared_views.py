"""Identical stored views of different trees, kept once.

A tree that comes looks for views that are there already and identical to some of its own (``tree.view_identity``). It takes
those instead, loads only the rest, and is then in a group with their trees (``tree.tree_backed_operator``). A tree that goes
leaves what others use to them.

A group moves as one. So a tree does not share with one that its input depends on, or that depends on it: the DAG would have a
cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from everview.backends.embedded.dependencies import needed_for
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked, TreeGroup
from everview.backends.embedded.tree.tree_state import TreeState
from everview.backends.embedded.tree.view_identity import (
    Described,
    Identity,
    describe_view,
    may_be_shared,
    occurrences,
)
from everview.backends.embedded.tree.view_map import ViewMap
from everview.planner.moments_block import packed, unpacked
from everview.trigger.tree_program import TreeProgram, TreeViewDefinition
from everview.trigger.verify import verify_tree


@dataclass(frozen=True, slots=True)
class _Holder:
    """A tree that has a view, under which name, and in which order of keys and parts."""

    tree: TreeBacked
    name: str
    described: Described

    @property
    def map(self) -> ViewMap:
        return self.tree.state.maps[self.name]


class SharedViews:
    """The trees of a graph that may share views, and the groups they form.

    Args:
        users: Names the user views over a tree.
    """

    def __init__(self, users: Callable[[Operator], tuple[str, ...]]) -> None:
        self._users = users
        self._trees: list[TreeBacked] = []
        self._described: dict[TreeBacked, tuple[TreeProgram, dict[Identity, _Holder]]] = {}

    @property
    def groups(self) -> tuple[TreeGroup, ...]:
        """Each once."""
        return tuple(dict.fromkeys(t.group for t in self._trees if t.group is not None))

    def borrow(self, tree: TreeBacked) -> frozenset[int]:
        """Gives a tree that is still empty the views that others have already; returns the atoms that need not be loaded.

        A view of its own gets its content from the atoms in it that are loaded, which are joined with all that is borrowed:

            V = Σ over its loaded atoms i of  atom i ⊗ borrowed views ⊗ loaded atoms before i

        A view that has no such atom is loaded as it would be alone, and so is all below it.
        """
        if tree.loading is not None or not self._recognizes(tree):
            return frozenset()
        others = self._partners(tree)
        held = {identity: holder for other in reversed(others) for identity, holder in self._views(other).items()}
        program = tree.program
        found: dict[str, tuple[_Holder, _Holder]] = {}
        for identity, own in self._views(tree).items():
            known = held.get(identity)
            if known is not None and (known.map.is_result or own.name != program.result):
                found[own.name] = own, known
        while True:
            covered = frozenset(a for name in found for a in program.view(name).atoms)
            own_names = (program.stored | {program.result}) - found.keys()
            bare = (v for v in program.views if v.name in own_names and v.indicates is None and v.atoms <= covered)
            missing = next(bare, None)
            if missing is None:
                break
            found = {name: h for name, h in found.items() if not program.view(name).atoms & missing.atoms}
        if found:
            views = [_in_order_of(program, n, o.described, k.described) for n, (o, k) in found.items()]
            maps = tree.state.maps | {name: known.map for name, (_, known) in found.items()}
            tree.adopt(tree.state_over(_with_views(program, views), maps, frozenset(found)))
        return covered

    def add(self, tree: TreeBacked) -> None:
        """Lets a tree, loaded and not yet used by anybody, share what others have."""
        if self._recognizes(tree):
            partners = self._partners(tree)
            self._trees.append(tree)
            if partners:
                self._regroup([*partners, tree])

    def _recognizes(self, tree: TreeBacked) -> bool:
        """Whether the tree's views have identities; numbers its atoms when asked first."""
        if tree.program.partitions:
            return False  # rows move between its parts when it says so
        if tree.atoms is None:
            if any(len(set(atom.lifts)) < len(atom.lifts) for atom in tree.program.block.atoms):
                return False  # what a part is the sum of would not tell it from the others
            known = [identity for other in self._trees for identity in self._views(other)]
            tree.atoms = occurrences(tree.program, tree.inputs, known)
        return True

    def _partners(self, tree: TreeBacked) -> list[TreeBacked]:
        """The trees that a new one would be in a group with: it has views in common with some of them."""
        own = self._views(tree).keys()
        partners: list[TreeBacked] = []
        for other in self._trees:
            if other not in partners and own & self._views(other).keys():
                wider = [*partners, *(other.group.members if other.group is not None else (other,))]
                if not _depend_on_each_other([*wider, tree]):
                    partners = wider
        return [t for t in self._trees if t in partners]

    def remove(self, gone: Iterable[Operator]) -> None:
        """Lets trees go; others keep what they shared with them."""
        leaving = {o for o in gone if isinstance(o, TreeBacked)}
        left = dict.fromkeys(t.group for t in self._trees if t in leaving and t.group is not None)
        self._trees = [t for t in self._trees if t not in leaving]
        for tree in leaving:
            tree.group = None
            self._described.pop(tree, None)
        for group in left:
            staying = [m for m in group.members if m not in leaving]
            self._regroup(staying)
            for tree in staying:
                for view in tree.state.maps.values():
                    view.release_indexes()
            for tree in staying:
                tree.ask_for_indexes()

    def let_go(self, tree: TreeBacked) -> None:
        """Lets a tree leave its group and go on alone, with copies of its views."""
        state = tree.state
        copies = {name: view.copy(is_result=name == state.program.result) for name, view in state.maps.items()}
        self.remove([tree])
        tree.adopt(tree.state_over(state.program, copies, frozenset()))

    def _views(self, tree: TreeBacked) -> dict[Identity, _Holder]:
        """The views of a tree that may be shared."""
        program = tree.state.program
        known = self._described.get(tree)
        if known is not None and known[0] is program:
            return known[1]
        assert tree.atoms is not None, "the tree may share"
        found: dict[Identity, _Holder] = {}
        for view in program.views:
            if may_be_shared(program, view):
                described = describe_view(program, view, tree.atoms)
                found.setdefault(described.identity, _Holder(tree, view.name, described))
        self._described[tree] = program, found
        return found

    def _regroup(self, members: Sequence[TreeBacked]) -> None:
        """Makes groups of the trees that have views in common, and gives every common view one map and one owner."""
        ordered = [t for t in self._trees if t in members]
        states: dict[TreeBacked, TreeState] = {}
        groups: list[list[TreeBacked]] = []
        for group in _connected(ordered, lambda t: self._views(t).keys()):
            groups.append(group)
            states.update(self._states(group))
        for tree, state in states.items():
            tree.adopt(state)
        for group in groups:
            made = TreeGroup(group, self._users) if len(group) > 1 else None
            for tree in group:
                tree.group = made

    def _states(self, group: list[TreeBacked]) -> Iterator[tuple[TreeBacked, TreeState]]:
        """The trees that go on over other maps than before, or own others."""
        holders: dict[Identity, list[_Holder]] = {}
        for tree in group:
            for identity, holder in self._views(tree).items():
                holders.setdefault(identity, []).append(holder)
        chosen: dict[Identity, _Holder] = {}
        for identity, candidates in holders.items():
            # A result logs what its entries were before the transaction, which every other view can do without.
            chosen[identity] = next((h for h in candidates if h.map.is_result), candidates[0])
        for tree in group:
            maps, views, borrowed = dict(tree.state.maps), [], set()
            for identity, holder in self._views(tree).items():
                keeper = chosen[identity]
                maps[holder.name] = keeper.map
                views.append(_in_order_of(tree.state.program, holder.name, holder.described, keeper.described))
                if holders[identity][0].tree is not tree:
                    borrowed.add(holder.name)
            program = _with_views(tree.state.program, views)
            before = tree.state
            is_same = all(before.maps[name] is held for name, held in maps.items())
            if not is_same or borrowed != before.borrowed:
                yield tree, tree.state_over(program, maps, frozenset(borrowed))


def _in_order_of(program: TreeProgram, name: str, own: Described, wanted: Described) -> TreeViewDefinition:
    """The view with its keys and parts as the map has them that it will use."""
    view = program.view(name)
    key_of = dict(zip(own.keys, view.keys, strict=True))
    part_of = dict(zip(own.payload, packed(program.block, view.payload), strict=True))
    keys = tuple(key_of[k] for k in wanted.keys)
    payload = unpacked(program.block, [part_of[p] for p in wanted.payload])
    return view if (keys, payload) == (view.keys, view.payload) else replace(view, keys=keys, payload=payload)


def _with_views(program: TreeProgram, views: Sequence[TreeViewDefinition]) -> TreeProgram:
    changed = {v.name: v for v in views}
    if all(program.view(name) is v for name, v in changed.items()):
        return program
    shared = replace(program, views=tuple(changed.get(v.name, v) for v in program.views))
    verify_tree(shared)
    return shared


def _connected(
    trees: Sequence[TreeBacked], views: Callable[[TreeBacked], Iterable[Identity]]
) -> list[list[TreeBacked]]:
    """The trees, those together that have views in common, directly or through others."""
    found: list[tuple[set[Identity], list[TreeBacked]]] = []
    for tree in trees:
        own, together = set(views(tree)), [tree]
        apart = []
        for known, members in found:
            if known & own:
                own |= known
                together = [*members, *together]
            else:
                apart.append((known, members))
        found = [*apart, (own, together)]
    order = {tree: i for i, tree in enumerate(trees)}
    return [sorted(members, key=order.__getitem__) for _, members in found]


def _depend_on_each_other(trees: Sequence[TreeBacked]) -> bool:
    """Whether the input of one of them is computed from the output of one, perhaps through a group."""
    members = {id(t) for t in trees}
    return any(id(o) in members for o in needed_for([i for t in trees for i in t.inputs]))
