"""Checks what a trigger program must satisfy as a whole, after every pass over it: lowering, text tests, sharing.

- Every name is defined once, and before it is used; a scan has the columns of what it scans.
- A statement has the delta rule of its node, for each of its inputs; every collection leads to the root, so that a change of
  every input reaches it.
- In a view tree, deltas are computed before they are used. What is joined is stored, and is found by the keys that are known at
  that moment: all of them for a look-up, some for a slice, none for a scan. Predicates are checked once, where their variables
  are known, and are those that the view made says. Every atom that changes comes to the result.

A failure is our own bug, never the user's.
"""

from __future__ import annotations

from everview.errors import InternalError
from everview.relational.expressions import columns_of
from everview.relational.nodes import Join, JoinKind, Scan, Schema
from everview.relational.schema import schema
from everview.relational.traverse import inputs, scans_of
from everview.relational.verify import verify
from everview.trigger.lower_tree import restrict
from everview.trigger.operator_rules import rules_of
from everview.trigger.program import (
    Anew,
    Apply,
    CheckSingle,
    Collection,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Program,
    ThresholdFilter,
    TreeBlock,
    scans,
)
from everview.trigger.tree_program import (
    AccessKind,
    Add,
    AddIndicator,
    Compute,
    CountDegrees,
    LiftRows,
    SeeAs,
    Split,
    TreeProgram,
    TreeViewDefinition,
    Trigger,
    TurnKeys,
)


def verify_program(program: Program) -> None:
    """Raises ``InternalError`` if the program of a view is not well-formed."""
    known: dict[str, Schema] = {}
    for given in program.inputs:
        _require(given.name not in known, given.name, "an input that is there twice")
        known[given.name] = given.fields
    given_names = frozenset(known)
    for collection in program.collections:
        _require(collection.name not in known, collection.name, "a name that is defined twice")
        for scan in _every_scan(collection):
            fields = known.get(scan.table)
            _require(fields is not None, collection.name, f"{scan.table} is used before it is defined")
            # A table may have got columns behind its own, for tests of text, that a scan does not read.
            whole = fields[: len(scan.fields)] if scan.table in given_names and fields is not None else fields
            _require(scan.fields == whole, collection.name, f"{scan.table} has other columns than its scan")
        _verify_statement(collection)
        known[collection.name] = collection.fields
    _require(program.root in known, program.root, "a root that is not defined")
    needed = {program.root}
    for collection in reversed(program.collections):
        _require(collection.name in needed, collection.name, "nothing reads it, and it is not the root")
        needed |= {scan.table for scan in scans(collection.statement)}
    for given in program.inputs:
        _require(given.name in needed, given.name, "its changes do not reach the root")


def _every_scan(collection: Collection) -> tuple[Scan, ...]:
    """What a statement reads, and what the plan behind a tree reads."""
    statement = collection.statement
    if isinstance(statement, Apply | CheckSingle):
        is_flat = all(isinstance(i, Scan) for i in inputs(statement.node))
        _require(is_flat, collection.name, "a node over something else than scans")
    if isinstance(statement, TreeBlock | FactorizedBlock):
        atoms = (statement.lowered.program if isinstance(statement, TreeBlock) else statement.planned).block.atoms
        _require(all(isinstance(a.input, Scan) for a in atoms), collection.name, "an atom that is no scan")
        own, behind = scans(statement), scans_of(statement.source)
        _require({s.table for s in own} == {s.table for s in behind}, collection.name, "a source over other inputs")
        return *own, *behind
    return scans(statement)


def _verify_statement(collection: Collection) -> None:
    statement = collection.statement
    match statement:
        case Apply(node=node, rules=rules):
            verify(node)
            is_single = isinstance(node, Join) and node.kind is JoinKind.SINGLE
            _require(not is_single, collection.name, "a single join, which is to be checked and split")
            own = rules_of(node, keeps_slices=statement.keeps_slices)
            _require(rules == own, collection.name, "another delta rule than its node has")
            made = schema(node)
        case CheckSingle(node=join, rules=rules):
            verify(join)
            _require(join.kind is JoinKind.SINGLE, collection.name, "a check of another join than a single one")
            _require(rules == rules_of(join), collection.name, "another delta rule than its node has")
            made = schema(join.left)
        case NestedFilter(outer=outer, inner=inner):
            pairs = (*statement.groups, *((c.outer, c.inner) for c in statement.compared))
            is_alike = all(outer.fields[o].type == inner.fields[i].type for o, i in pairs)
            _require(
                is_alike, collection.name, "a nested aggregate over columns of other types than it is compared with"
            )
            made = outer.fields
        case ThresholdFilter(rows=rows, value=value, condition=condition):
            _require(
                columns_of(condition) <= set(range(len(value.fields) + 1)),
                collection.name,
                "a threshold that reads other columns",
            )
            made = rows.fields
        case TreeBlock(lowered=lowered, source=source):
            verify(source)
            made = schema(source)
            verify_tree(lowered.program)
            if lowered.loading is not None:
                verify_tree(lowered.loading)
                _require(lowered.program.stored <= lowered.loading.stored, collection.name, "a view that is not loaded")
        case FactorizedBlock(planned=planned, source=source):
            verify(source)
            made = schema(source)
            verify_tree(planned.factorized.program)
            if planned.factorized.loading is not None:
                verify_tree(planned.factorized.loading)
        case MatrixBlock(source=source):
            verify(source)
            made = schema(source)
        case Anew(plan=plan):
            verify(plan)
            made = schema(plan)
    types = tuple(f.type for f in made), tuple(f.type for f in collection.fields)
    _require(types[0] == types[1], collection.name, f"columns of the types {types[1]}, made as {types[0]}")


def verify_tree(program: TreeProgram) -> None:
    """Raises ``InternalError`` if the program of a view tree is not well-formed."""
    names = [v.name for v in program.views]
    _require(len(set(names)) == len(names), "a tree", "a view that is defined twice")
    _require(program.stored <= set(names), "a tree", "a stored view that is not defined")
    _require(not program.result or program.result in names, "a tree", "a result that is not defined")
    atoms = range(len(program.block.atoms))
    _require([t.atom for t in program.triggers] == list(atoms), "a tree", "an atom without a trigger, or with two")
    _require(program.passing <= program.stored, "a tree", "a passing view that is not stored")
    for twin, stored in program.twins:
        is_one = stored in program.stored and twin not in program.stored
        _require(is_one, twin, f"a twin of {stored}, which is to be the stored one")
    for trigger in program.triggers:
        _verify_trigger(program, trigger)
    _require(len(program.sizes) == (len(atoms) if program.partitions else 0), "a tree", "an atom that is not counted")
    for partition in program.partitions:
        for moves in (partition.to_heavy, partition.to_light):
            for trigger in (moves.gain, moves.loss):
                _verify_statements(program, trigger, f"moves of {partition.heavy}")
    if program.result:
        checked = set(program.view(program.result).residuals)
        _require(checked == set(program.block.residuals), "a tree", "a predicate that is checked nowhere")


def _verify_trigger(program: TreeProgram, trigger: Trigger) -> None:
    name = program.block.atoms[trigger.atom].name
    first = trigger.statements[0] if trigger.statements else None
    _require(isinstance(first, LiftRows), name, "a trigger that does not begin with its leaf")
    assert isinstance(first, LiftRows)
    variables = {v for v, _ in program.block.atoms[trigger.atom].variables}
    _require(set(_view(program, first.target).keys) == variables, name, "a leaf with other keys than its atom")
    made = _verify_statements(program, trigger, name)
    is_changing = program.block.query.atoms[trigger.atom].updatable
    is_taken = not program.result or program.result in made or trigger.atom in program.followers
    _require(not is_changing or is_taken, name, "its changes do not reach the result")


def _verify_statements(program: TreeProgram, trigger: Trigger, name: str) -> set[str]:
    """Returns the views whose deltas are made."""
    first = trigger.statements[0]
    made, added = {first.target}, set[str]()
    for i, statement in enumerate(trigger.statements[1:], start=1):
        target = _view(program, statement.target)
        following = trigger.statements[i + 1] if i + 1 < len(trigger.statements) else None
        match statement:
            case LiftRows() | TurnKeys():
                _require(False, name, "a second leaf")
            case Split():
                _require(statement.source in made, name, f"δ{statement.source} is split before it is made")
                keys = _view(program, statement.keys)
                is_known = keys.name in program.stored and set(keys.keys) <= set(target.keys)
                _require(is_known, name, f"the heavy keys {keys.name} are not known")
                made |= {target.name, _view(program, statement.heavy).name}
            case CountDegrees():
                _require(statement.source in added, name, f"{statement.source} is counted before it is added to")
                _require(target.name in program.stored, name, f"{target.name} counts, and is not stored")
            case Add():
                _require(
                    target.name in made & program.stored, name, f"{target.name} is added to, and not made or stored"
                )
                is_turned = all(set(order) == set(target.payload) for order in statement.turns)
                _require(is_turned, name, f"{target.name} has other sums than are added to it")
                added.add(target.name)
            case AddIndicator():
                leaf = _view(program, statement.source)
                is_own = (target.indicates, target.atoms, leaf.name) == (trigger.atom, frozenset(), first.target)
                _require(is_own, name, f"{target.name} is no indicator of the atom")
                is_known = target.name in program.stored or (leaf.name in added and target.keys == leaf.keys)
                _require(is_known and target.name not in made, name, f"what {target.name} has is not known")
                made.add(target.name)
                added |= {target.name} & program.stored
            case SeeAs():
                source = _view(program, statement.source)
                _require(source.name in made, name, f"δ{source.name} is renamed before it is made")
                is_alike = (len(target.keys), len(target.payload)) == (len(source.keys), len(source.payload))
                _require(is_alike, name, f"{target.name} has other keys or sums than {source.name}")
                made.add(target.name)
            case Compute():
                _require(statement.source in made, name, f"δ{statement.source} is used before it is made")
                _verify_compute(program, statement, name)
                made.add(target.name)
                is_added = isinstance(following, Add) and following.target == target.name
                is_added |= isinstance(first, TurnKeys)  # those are added in the end
                _require(
                    is_added or target.name not in program.stored, name, f"{target.name} is stored, and not added to"
                )
    given = {first.target} if isinstance(first, TurnKeys) else set()  # the heavy keys change with one half of a move
    _require(made & program.stored - given == added - given, name, "a stored view that has changed and is not added to")
    return made


def _verify_compute(program: TreeProgram, compute: Compute, name: str) -> None:
    source = _view(program, compute.source)
    known, atoms = set(source.keys), source.atoms
    checked = list(compute.residuals)
    _require(all(set(r.variables) <= known for r in checked), name, "a predicate over variables that are not known yet")
    for access in compute.joins:
        view = _view(program, access.view)
        _require(program.is_joinable(access.view), name, f"{access.view} is joined, and not stored")
        _require(
            access.is_indicator or not atoms & view.atoms, name, f"{access.view} has an atom that is joined already"
        )
        _require(
            set(access.bound) == known & set(view.keys), name, f"{access.view} is bound by other keys than are known"
        )
        is_whole = set(access.bound) == set(view.keys)
        kind = AccessKind.LOOKUP if is_whole else AccessKind.SLICE if access.bound else AccessKind.SCAN
        if access.kind is AccessKind.RANGE:
            is_open = access.ordered is not None and {access.ordered} == set(view.keys) - set(access.bound)
            _require(is_open and not access.is_indicator, name, f"a range in {access.view} that leaves other keys open")
        else:
            _require(access.kind is kind, name, f"a {access.kind.value} in {access.view} that is a {kind.value}")
        known |= set(view.keys)
        atoms |= frozenset() if access.is_indicator else view.atoms
        payloads = restrict(program.block.monomials, atoms), restrict((), atoms)
        is_counted = not program.result  # the upper views of a factorized result count rows only
        fits = access.payload == payloads[0] or (is_counted and access.payload == payloads[1])
        _require(fits, name, f"the join with {access.view} carries another payload on")
        checked += access.residuals
        _require(all(set(r.variables) <= known for r in access.residuals), name, "a predicate over unknown variables")
        known -= {access.ordered}
    target = _view(program, compute.target)
    _require(set(target.keys) <= known, name, f"{target.name} has keys that are not known")
    _require(target.atoms == atoms, name, f"{target.name} is made of other atoms than it says")
    below = [r for view in (compute.source, *(a.view for a in compute.joins)) for r in _view(program, view).residuals]
    every = [*below, *checked]
    _require(len(set(every)) == len(every), name, "a predicate that is checked twice")
    _require(set(every) == set(target.residuals), name, f"{target.name} checks other predicates than it says")


def _view(program: TreeProgram, name: str) -> TreeViewDefinition:
    found = next((v for v in program.views if v.name == name), None)
    _require(found is not None, name, "a view that is not defined")
    assert found is not None
    return found


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise InternalError(f"malformed trigger program at {where}: {what}.")
