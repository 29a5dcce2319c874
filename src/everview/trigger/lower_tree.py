"""From a view tree to a trigger program: the delta trees of F-IVM (figure 7), one statement a view on the path to the root.

For a change of an atom, every view above its leaf gets

    δV[keys] = Σ  δchild ⨂ siblings        (the delta of a product is linear in the changed factor)

The paths, and the order in which siblings are joined, are those of ``planner.delta_tree``; the costs in ``explain`` come from
there, too. A block with several atoms over one relation has a trigger for each. They run one after another, so that atom i
meets the new contents of the atoms before it and the old ones of those after it: their sum is the delta of the whole product.

The indicators of an atom are more factors that a change of it changes, so its trigger goes on with a path for each of their
places in the tree. An indicator that stands in several places is stored once and is new for all of them as soon as its first
path begins. The places therefore come from the root down: what the path from a place meets of the same indicator stands above,
and has had its turn:

    δ(W ⊗ I) = W ⊗ δI ⊎ δW ⊗ I'        for a view W that has I below it, too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.planner.block import Block, Monomial, Residual
from everview.planner.delta_tree import DeltaStep, Lookup, delta_path, indicator_paths
from everview.planner.view_tree import Indicator, InnerView, Leaf, ViewNode, ViewTree, atoms_below
from everview.trigger.tree_program import (
    Access,
    AccessKind,
    Add,
    AddIndicator,
    Compute,
    LiftRows,
    TreeProgram,
    TreeStatement,
    TreeViewDefinition,
    Trigger,
)

RESULT = "result"


def lower_tree(block: Block, tree: ViewTree, stored: frozenset[str], *, keeps_result: bool = True) -> TreeProgram:
    """The program that maintains the tree's views named in ``stored``, and the result unless it is only passed on.

    Several roots (a disconnected query) are joined in one more view, the result.
    """
    root = _single_root(block, tree)
    kept = stored | {root.name} if keeps_result else stored - {root.name}
    if len(tree.roots) > 1:
        kept |= {r.name for r in tree.roots}
    return lower_views(block, (root,), kept, root.name)


def lower_views(
    block: Block,
    roots: tuple[ViewNode, ...],
    stored: frozenset[str],
    result: str,
    *,
    counted: frozenset[str] = frozenset(),
) -> TreeProgram:
    """The program that maintains the ``stored`` views of trees that stay apart; those ``counted`` hold multiplicities only."""
    names = {a.name: i for i, a in enumerate(block.atoms)}
    held_by = _held_by_leaves([n for root in roots for n in _nodes(root)], stored)
    stored -= held_by.keys()
    definitions: dict[str, TreeViewDefinition] = {}
    placed = _place_residuals(block.residuals, roots)
    for node in (n for root in roots for n in _nodes(root)):
        atoms = frozenset(names[a.name] for a in atoms_below(node))
        payload = restrict(() if node.name in counted else block.monomials, atoms)
        indicates = names[node.atom.name] if isinstance(node, Indicator) else None
        checked = tuple(r for n in _nodes(node) for r in placed.get(n.name, ()))
        indicated = frozenset(names[n.atom.name] for n in _nodes(node) if isinstance(n, Indicator))
        definitions[node.name] = TreeViewDefinition(
            node.name, _keys(node), payload, atoms, indicates, checked, indicated
        )
    lowering = _Lowering(block, roots, stored, counted, held_by, definitions, placed)
    triggers = tuple(Trigger(i, tuple(lowering.statements(atom.name))) for i, atom in enumerate(block.atoms))
    return TreeProgram(block, tuple(definitions.values()), stored, result, triggers)


def restrict(monomials: Iterable[Monomial], atoms: frozenset[int]) -> tuple[Monomial, ...]:
    """What the monomials say about some atoms, each once, the count first."""
    kept: dict[Monomial, None] = {frozenset(): None}
    for monomial in monomials:
        kept[frozenset(pair for pair in monomial if pair[0] in atoms)] = None
    return tuple(kept)


def _held_by_leaves(nodes: list[ViewNode], stored: frozenset[str]) -> dict[str, str]:
    """The stored indicators over all variables of an atom whose leaf is stored as well, with that leaf.

    Such an atom hangs above the view that it bounds, beside a view that has that one below it: where the indicator is of use to
    changes, the leaf is joined with and stored, too.
    """
    leaves = {n.atom.name: n.name for n in nodes if isinstance(n, Leaf) and n.name in stored}
    return {
        n.name: leaves[n.atom.name]
        for n in nodes
        if isinstance(n, Indicator) and n.name in stored and n.atom.name in leaves and n.keys == n.atom.variables
    }


def _single_root(block: Block, tree: ViewTree) -> ViewNode:
    free = tuple(dict.fromkeys(block.keys))
    if len(tree.roots) == 1:
        (root,) = tree.roots
        if isinstance(root, InnerView) and set(root.keys) == set(free):
            return root
    keys = [k for r in tree.roots for k in _keys(r)]
    return InnerView(RESULT, (), free, tuple(k for k in keys if k not in free), tree.roots)


def _keys(node: ViewNode) -> tuple[str, ...]:
    return node.keys


def _nodes(node: ViewNode) -> Iterable[ViewNode]:
    if isinstance(node, InnerView):
        for child in node.children:
            yield from _nodes(child)
    yield node


def _place_residuals(residuals: Iterable[Residual], roots: tuple[ViewNode, ...]) -> dict[str, tuple[Residual, ...]]:
    """For each view the predicates that are checked where its children meet: the lowest view that knows all variables."""
    placed: dict[str, list[Residual]] = {}
    for residual in residuals:
        variables = frozenset(residual.variables)
        at = next((found for root in roots if (found := _lowest(root, variables)) is not None), None)
        assert at is not None, f"the variables {residual.variables} never meet"
        placed.setdefault(at.name, []).append(residual)
    return {name: tuple(found) for name, found in placed.items()}


def _lowest(node: ViewNode, variables: frozenset[str]) -> InnerView | None:
    if not isinstance(node, InnerView):
        return None
    for child in node.children:
        found = _lowest(child, variables)
        if found is not None:
            return found
    known = {k for child in node.children for k in child.keys}
    return node if variables <= known else None


@dataclass(frozen=True, slots=True)
class _Lowering:
    block: Block
    roots: tuple[ViewNode, ...]
    stored: frozenset[str]
    counted: frozenset[str]
    held_by: dict[str, str]
    """Indicators that are not stored, with the leaf that has what they have."""
    definitions: dict[str, TreeViewDefinition]
    placed: dict[str, tuple[Residual, ...]]

    def statements(self, atom: str) -> Iterator[TreeStatement]:
        """What a change of the atom runs: its leaf's path, then those of its indicators."""
        tree, dependencies = ViewTree(self.roots, ()), self.block.query.dependencies
        leaf = next(n for root in self.roots for n in _nodes(root) if isinstance(n, Leaf) and n.atom.name == atom)
        is_changing = next(a.updatable for a in self.block.query.atoms if a.name == atom)
        yield LiftRows(leaf.name)
        if leaf.name in self.stored:
            yield Add(leaf.name)
        yield from self._climb(delta_path(tree, atom, dependencies), is_changing=is_changing)
        begun: dict[str, list[tuple[DeltaStep, ...]]] = {}
        for path in indicator_paths(tree, atom, dependencies):
            begun.setdefault(path[0].child.name, []).append(path)
        for name, places in begun.items():
            if self._place(places[0][0].child) not in self.stored:
                assert not is_changing, f"what {name} has is not known"
                continue
            yield AddIndicator(name, leaf.name)
            for path in places:
                yield from self._climb(path, is_changing=is_changing)

    def _climb(self, path: tuple[DeltaStep, ...], *, is_changing: bool) -> Iterator[TreeStatement]:
        for step in path:
            if not is_changing and any(self._place(s) not in self.stored for s in step.siblings):
                return  # nothing comes this way any more, and so nothing is kept for it
            yield self._compute(step)
            if step.view.name in self.stored:
                yield Add(step.view.name)

    def _place(self, node: ViewNode) -> str:
        """The view that has what the node has."""
        return self.held_by.get(node.name, node.name)

    def _compute(self, step: DeltaStep) -> Compute:
        monomials = () if step.view.name in self.counted else self.block.monomials
        return compute_step(step, self.definitions, monomials, self.placed.get(step.view.name, ()), place=self._place)


def compute_step(
    step: DeltaStep,
    definitions: Mapping[str, TreeViewDefinition],
    monomials: Iterable[Monomial],
    residuals: Iterable[Residual],
    place: Callable[[ViewNode], str] = lambda node: node.name,
) -> Compute:
    """The statement of a step: ``residuals`` are checked in it, each as soon as its variables are known."""
    known = set(step.child.keys)
    atoms = definitions[step.child.name].atoms
    monomials, waiting = tuple(monomials), list(residuals)
    first = _ready(waiting, known)
    joins = []
    for lookup in step.lookups:
        known |= set(lookup.adds)
        atoms |= definitions[lookup.node.name].atoms
        payload, ready = restrict(monomials, atoms), _ready(waiting, known)
        is_indicator = isinstance(lookup.node, Indicator)
        joins.append(Access(place(lookup.node), _kind(lookup), lookup.by, payload, ready, is_indicator=is_indicator))
    assert not waiting, "a predicate's variables were summed out too early"
    return Compute(step.view.name, step.child.name, tuple(joins), first)


def _kind(lookup: Lookup) -> AccessKind:
    """How a join finds its matches, by what is known of the keys."""
    if not lookup.adds:
        return AccessKind.LOOKUP
    return AccessKind.SLICE if lookup.by else AccessKind.SCAN


def _ready(waiting: list[Residual], known: set[str]) -> tuple[Residual, ...]:
    ready = tuple(r for r in waiting if set(r.variables) <= known)
    waiting[:] = [r for r in waiting if r not in ready]
    return ready
