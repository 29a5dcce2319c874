"""From a view tree to a trigger program: the delta trees of F-IVM (figure 7), one statement a view on the path to the root.

For a change of an atom, every view above its leaf gets

    δV[keys] = Σ  δchild ⨂ siblings        (the delta of a product is linear in the changed factor)

Siblings are joined in the order that keeps deltas small: those with all keys bound first, then those with most of them bound. A
block with several atoms over one relation has a trigger for each; they run one after another, so that atom i meets the new
contents of the atoms before it and the old ones of those after it, whose sum is the delta of the whole product.
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.planner.block import Block, Monomial, Residual
from everview.planner.view_tree import Indicator, Leaf, Node, View, ViewTree, atoms_below
from everview.trigger.program import Access, AccessKind, Add, Compute, Lift, Program, Statement, Trigger, ViewDefinition

RESULT = "result"


def lower_tree(block: Block, tree: ViewTree, stored: frozenset[str], *, keeps_result: bool = True) -> Program:
    """The program that maintains the tree's views named in ``stored``, and the result unless it is only passed on.

    Several roots (a disconnected query) are joined in one more view, the result.
    """
    root = _single_root(block, tree)
    kept = stored | {root.name} if keeps_result else stored - {root.name}
    if len(tree.roots) > 1:
        kept |= {r.name for r in tree.roots}
    return lower_views(block, (root,), kept, root.name)


def lower_views(
    block: Block, roots: tuple[Node, ...], stored: frozenset[str], result: str, counted: frozenset[str] = frozenset()
) -> Program:
    """The program that maintains the ``stored`` views of trees that stay apart; those ``counted`` hold multiplicities only."""
    names = {a.name: i for i, a in enumerate(block.atoms)}
    definitions: dict[str, ViewDefinition] = {}
    for node in (n for root in roots for n in _nodes(root)):
        atoms = frozenset(names[a.name] for a in atoms_below(node))
        payload = restrict(() if node.name in counted else block.monomials, atoms)
        definitions[node.name] = ViewDefinition(node.name, _keys(node), payload, atoms)
    placed = _place_residuals(block.residuals, roots)
    triggers = tuple(
        Trigger(i, _statements(block, roots, atom.name, definitions, placed, stored, counted))
        for i, atom in enumerate(block.atoms)
    )
    return Program(block, tuple(definitions.values()), stored, result, triggers)


def restrict(monomials: Iterable[Monomial], atoms: frozenset[int]) -> tuple[Monomial, ...]:
    """What the monomials say about some atoms, each once, the count first."""
    kept: dict[Monomial, None] = {frozenset(): None}
    for monomial in monomials:
        kept[frozenset(pair for pair in monomial if pair[0] in atoms)] = None
    return tuple(kept)


def _single_root(block: Block, tree: ViewTree) -> Node:
    free = tuple(dict.fromkeys(block.keys))
    if len(tree.roots) == 1:
        (root,) = tree.roots
        if isinstance(root, View) and set(root.keys) == set(free):
            return root
    keys = [k for r in tree.roots for k in _keys(r)]
    return View(RESULT, (), free, tuple(k for k in keys if k not in free), tree.roots)


def _keys(node: Node) -> tuple[str, ...]:
    return node.keys


def _nodes(node: Node) -> Iterable[Node]:
    if isinstance(node, View):
        for child in node.children:
            yield from _nodes(child)
    yield node


def _place_residuals(residuals: Iterable[Residual], roots: tuple[Node, ...]) -> dict[str, tuple[Residual, ...]]:
    """For each view the predicates that are checked where its children meet: the lowest view that knows all variables."""
    placed: dict[str, list[Residual]] = {}
    for residual in residuals:
        variables = frozenset(residual.variables)
        at = next((found for root in roots if (found := _lowest(root, variables)) is not None), None)
        assert at is not None, f"the variables {residual.variables} never meet"
        placed.setdefault(at.name, []).append(residual)
    return {name: tuple(found) for name, found in placed.items()}


def _lowest(node: Node, variables: frozenset[str]) -> View | None:
    if not isinstance(node, View):
        return None
    for child in node.children:
        found = _lowest(child, variables)
        if found is not None:
            return found
    known = {k for child in node.children for k in child.keys}
    return node if variables <= known else None


def _path(node: Node, atom: str) -> list[Node] | None:
    """The nodes from the atom's leaf up to this one."""
    if isinstance(node, Leaf):
        return [node] if node.atom.name == atom else None
    if isinstance(node, Indicator):
        return None
    for child in node.children:
        below = _path(child, atom)
        if below is not None:
            return [*below, node]
    return None


def _statements(
    block: Block,
    roots: tuple[Node, ...],
    atom: str,
    definitions: dict[str, ViewDefinition],
    placed: dict[str, tuple[Residual, ...]],
    stored: frozenset[str],
    counted: frozenset[str],
) -> tuple[Statement, ...]:
    path = next((found for root in roots if (found := _path(root, atom)) is not None), None)
    assert path is not None, f"{atom} is in no view"
    is_changing = next(a.updatable for a in block.query.atoms if a.name == atom)
    statements: list[Statement] = [Lift(path[0].name)]
    if path[0].name in stored:
        statements.append(Add(path[0].name))
    for child, view in zip(path, path[1:], strict=False):
        assert isinstance(view, View)
        siblings = [c for c in view.children if c is not child]
        if not is_changing and any(s.name not in stored for s in siblings):
            break  # nothing comes this way any more, and so nothing is kept for it
        monomials = () if view.name in counted else block.monomials
        statements.append(_compute(monomials, view, child, siblings, definitions, placed.get(view.name, ())))
        if view.name in stored:
            statements.append(Add(view.name))
    return tuple(statements)


def _compute(
    monomials: tuple[Monomial, ...],
    view: View,
    child: Node,
    siblings: list[Node],
    definitions: dict[str, ViewDefinition],
    residuals: tuple[Residual, ...],
) -> Compute:
    known = set(child.keys)
    atoms = definitions[child.name].atoms
    waiting = list(residuals)
    first = _ready(waiting, known)
    joins = []
    todo = list(siblings)
    while todo:
        sibling = min(todo, key=lambda s: _expense(s, known))
        todo.remove(sibling)
        bound = tuple(k for k in sibling.keys if k in known)
        kind = _KINDS[_expense(sibling, known)[0]]
        known |= set(sibling.keys)
        atoms |= definitions[sibling.name].atoms
        payload = restrict(monomials, atoms)
        joins.append(Access(sibling.name, kind, bound, payload, _ready(waiting, known)))
    assert not waiting, "a predicate's variables were summed out too early"
    return Compute(view.name, child.name, tuple(joins), first)


_KINDS = (AccessKind.LOOKUP, AccessKind.SLICE, AccessKind.SCAN)


def _expense(node: Node, known: set[str]) -> tuple[int, int]:
    """How a join with the node is found, the cheapest way first, and how many variables it brings."""
    new = len(set(node.keys) - known)
    if not new:
        return 0, 0
    return (1 if new < len(set(node.keys)) else 2), new


def _ready(waiting: list[Residual], known: set[str]) -> tuple[Residual, ...]:
    ready = tuple(r for r in waiting if set(r.variables) <= known)
    waiting[:] = [r for r in waiting if r not in ready]
    return ready
