"""The text of the trigger program of a view tree: the same for the same program, for ``explain`` and golden files.

    on lineitem (l_orderkey, l_extendedprice, l_discount, l_shipdate)
      δlineitem[l_orderkey] := Σ #, l_extendedprice * (1 - l_discount)  where l_shipdate > date '1995-03-15'
      lineitem[l_orderkey] += δlineitem[l_orderkey]
      δresult[l_orderkey, o_orderdate] := Σ δlineitem[l_orderkey]
        * orders[l_orderkey, o_custkey, o_orderdate]    -- slice by l_orderkey
        * customer[o_custkey]                           -- look-up by o_custkey

``#`` is the number of rows, ``[condition]`` is 1 where it holds and else 0. Σ over a delta sums what its target has no key for.
Payloads are lists of monomials: what is multiplied across relations is written with the relation's name before it. Where all
sums of floats are the moments of some features (``planner.moments_block``), these stand as one: ``moments(x, y)`` are the sums
of x and y and those of x * x, x * y and y * y, and ``sums(x, y)`` the first two.
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.planner.block import Block, BlockAtom, Monomial, Residual, RingLift
from everview.planner.moments_block import packed
from everview.planner.moments_part import MomentsPart
from everview.relational.expressions import TRUE, Case, Expression, Literal
from everview.relational.format import format_expression
from everview.relational.schema import schema
from everview.trigger.tree_program import (
    Access,
    Add,
    AddIndicator,
    Compute,
    CountDegrees,
    KeyMoves,
    LiftRows,
    Partition,
    SeeAs,
    Split,
    TreeProgram,
    TreeStatement,
    TreeViewDefinition,
    Trigger,
    TurnKeys,
)

_INDENT = "  "


def format_tree_program(program: TreeProgram) -> str:
    """The stored views with their payloads, then a trigger for each relation."""
    lines = [*format_stored(program)]
    for trigger in program.triggers:
        atom = program.block.atoms[trigger.atom]
        lines += ["", f"on {atom.name} ({', '.join(_columns(atom))})", *format_trigger(program, trigger)]
    for partition in program.partitions:
        lines += ["", *format_partition(program, partition)]
    return "\n".join(lines)


def format_trigger(program: TreeProgram, trigger: Trigger) -> list[str]:
    """The statements of one trigger."""
    return [_INDENT + line for s in trigger.statements for line in _statement(program, trigger.atom, s)]


def format_partition(program: TreeProgram, partition: Partition) -> list[str]:
    """The internal triggers of a partition: for keys that turn heavy, and for those that turn light."""
    heavy = format_view(program.view(partition.heavy))
    degrees = format_view(program.view(partition.degrees))
    theta = f"N^{partition.epsilon:g}"
    return [
        f"when {degrees} ≥ 3/2 {theta} for a light key, δ{heavy} := 1 for it",
        *_moves(program, partition.to_heavy),
        f"when {degrees} < 1/2 {theta} for a heavy key, δ{heavy} := 1 for it",
        *_moves(program, partition.to_light),
        f"when the number of keys leaves [⌊N/4⌋, N), N is doubled or halved, and the same runs for all keys beyond {theta}",
    ]


def _moves(program: TreeProgram, moves: KeyMoves) -> list[str]:
    lines = format_trigger(program, moves.gain)
    return [*lines, f"{_INDENT}then, with -1 in place of 1", *format_trigger(program, moves.loss)]


def format_view(view: TreeViewDefinition) -> str:
    """A view with its keys."""
    return f"{view.name}[{', '.join(view.keys)}]"


def format_payload(block: Block, payload: Iterable[Monomial]) -> str:
    """The parts of a payload: its monomials, and its moments as one."""
    return ", ".join(
        _moments(block, part) if isinstance(part, MomentsPart) else format_monomial(block, part)
        for part in packed(block, tuple(payload))
    )


def _moments(block: Block, part: MomentsPart) -> str:
    """The features, whose sums are kept, and with degree 2 those of their products."""
    several = len({a for a, _ in part.features}) > 1
    texts = [
        f"{block.atoms[a].name}.{_bracketed(format_lift(block.atoms[a], i))}"
        if several
        else format_lift(block.atoms[a], i)
        for a, i in part.features
    ]
    return f"{'moments' if part.degree == 2 else 'sums'}({', '.join(texts)})"


def format_monomial(block: Block, monomial: Monomial) -> str:
    """A product of lifts of several relations; the empty product counts rows."""
    if not monomial:
        return "#"
    factors = [(block.atoms[a].name, format_lift(block.atoms[a], lift)) for a, lift in sorted(monomial)]
    if len(factors) == 1:
        return factors[0][1]
    return " * ".join(f"{name}.{_bracketed(text)}" for name, text in factors)


def format_lift(atom: BlockAtom, lift: int) -> str:
    """The number that a row of the relation contributes."""
    found = atom.lifts[lift]
    if isinstance(found, RingLift):
        return _element(found, _columns(atom))
    return _number(found.value, _columns(atom))


def _element(lift: RingLift, names: tuple[str, ...]) -> str:
    """The lift as a call of the aggregate, with a dot for an argument that another relation has."""
    given = dict(zip(lift.positions, (_plain(e, names) for e in lift.arguments), strict=True))
    return f"{lift.ring}({', '.join(given.get(p, '·') for p in range(lift.positions[-1] + 1))})"


def _number(value: Expression, names: tuple[str, ...]) -> str:
    match value:
        case Case(branches=((condition, chosen),), otherwise=Literal(value=None | 0 | 0.0)):
            mask = f"[{_plain(condition, names)}]"
            return mask if isinstance(chosen, Literal) and chosen.value == 1 else f"{mask} * {_number(chosen, names)}"
        case _:
            return _plain(value, names)


def _plain(expression: Expression, names: tuple[str, ...]) -> str:
    """Without the outermost parentheses."""
    text = format_expression(expression, names)
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def _bracketed(text: str) -> str:
    return text if " " not in text or text.startswith("[") else f"({text})"


def _columns(atom: BlockAtom) -> tuple[str, ...]:
    return tuple(f.name for f in schema(atom.input))


def format_stored(program: TreeProgram) -> Iterable[str]:
    """The stored views, and their payloads."""
    kinds = dict.fromkeys((*program.sizes, *(p.degrees for p in program.partitions)), "degrees")
    kinds |= {p.heavy: "heavy keys" for p in program.partitions}
    for view in program.views:
        if view.name not in program.stored:
            continue
        if view.indicates is not None:
            yield f"indicator {format_view(view)} of {program.block.atoms[view.indicates].name}"
        else:
            what = "result" if view.name == program.result else kinds.get(view.name, "view")
            passing = ", emptied after each trigger" if view.name in program.passing else ""
            yield f"{what} {format_view(view)}: {format_payload(program.block, view.payload)}{passing}"
    for twin, stored in program.twins:
        yield f"{format_view(program.view(twin))} is {format_view(program.view(stored))}"


def _statement(program: TreeProgram, atom: int, statement: TreeStatement) -> list[str]:
    view = format_view(program.view(statement.target))
    match statement:
        case LiftRows():
            return [f"δ{view} := {_lifted(program, atom, statement)}"]
        case Add(turns=turns):
            if len(set(turns)) < 2:
                return [f"{view} += {f'{len(turns)} ' if turns else ''}δ{view}"]
            return [f"{view} += δ{view}, {len(turns)} times, once for each turn of its sums around the triangle"]
        case SeeAs():
            return [f"δ{view} := δ{format_view(program.view(statement.source))}"]
        case AddIndicator():
            return _indicated(program, statement, view)
        case Compute():
            return _computed(program, statement, view)
        case Split():
            light, heavy, source, keys = (
                format_view(program.view(n))
                for n in (statement.target, statement.heavy, statement.source, statement.keys)
            )
            return [f"δ{heavy} := δ{source} * ∃ {keys}", f"δ{light} := δ{source} - δ{heavy}"]
        case CountDegrees():
            return [
                f"{view} += the keys that {format_view(program.view(statement.source))} has gained, less those lost"
            ]
        case TurnKeys():
            return []


def _indicated(program: TreeProgram, statement: AddIndicator, view: str) -> list[str]:
    source = format_view(program.view(statement.source))
    if statement.target not in program.stored:
        return [f"δ{view} := 1 for the keys that {source} has gained, -1 for those that it has lost"]
    return [
        f"{view} += Σ # of δ{source}",
        f"δ{view} := 1 for the keys that it has gained, -1 for those that it has lost",
    ]


def _lifted(program: TreeProgram, number: int, lift: LiftRows) -> str:
    atom = program.block.atoms[number]
    names = _columns(atom)
    renamed = [f"{v} = {_plain(e, names)}" for v, e in atom.variables if _plain(e, names) != v]
    where = "" if atom.condition == TRUE else f"  where {_plain(atom.condition, names)}"
    keys = f"  with {', '.join(renamed)}" if renamed else ""
    return f"Σ {format_payload(program.block, program.view(lift.target).payload)}{where}{keys}"


def _computed(program: TreeProgram, compute: Compute, target: str) -> list[str]:
    source = program.view(compute.source)
    known = {k for name in (compute.source, *(j.view for j in compute.joins)) for k in program.view(name).keys}
    sigma = "Σ " if known - set(program.view(compute.target).keys) else ""
    checked = _where(compute.residuals)
    head = f"δ{target} := {sigma}δ{format_view(source)}{checked}"
    joins = [
        f"* {'∃ ' if j.is_indicator and program.view(j.view).indicates is None else ''}"
        f"{format_view(program.view(j.view))}{_where(j.residuals)}"
        for j in compute.joins
    ]
    if len(joins) == 1 and not checked:
        return [f"{head} {joins[0]}    -- {_path(compute.joins[0])}"]
    width = max((len(j) for j in joins), default=0)
    return [head, *(f"{_INDENT}{j:<{width}}    -- {_path(a)}" for j, a in zip(joins, compute.joins, strict=True))]


def _path(access: Access) -> str:
    if access.ordered is not None:
        by = f" by {', '.join(access.bound)}" if access.bound else ""
        return f"range{by} in the order of {access.ordered}, summed in O(log N)"
    return f"{access.kind.value} by {', '.join(access.bound)}" if access.bound else f"{access.kind.value} of all"


def _where(residuals: tuple[Residual, ...]) -> str:
    found = [_plain(r.condition, r.variables) for r in residuals]
    return f" where {' and '.join(found)}" if found else ""
