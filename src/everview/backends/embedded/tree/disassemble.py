"""The instructions of a trigger as text: what ``explain(mode="code")`` shows.

A register ``r5`` is a column of words, one a row of its frame ``f1``; views are written by name, ``V[r9]`` being the entries in
the slots that r9 holds. One line an instruction, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.backends.embedded.tree.instruction import decoded
from everview.backends.embedded.tree.instructions import LeaveMachine
from everview.backends.embedded.tree.kernels.leaves import LEAF_WORDS, LeafOp
from everview.backends.embedded.tree.leaf_program import LeafProgram
from everview.backends.embedded.tree.pauses import EntryPart, MaskPause, Pause, RangePause, RingPause
from everview.backends.embedded.tree.trigger_code import TriggerCode


def trigger_lines(trigger: TriggerCode, views: Sequence[str]) -> list[str]:
    """The instructions of an assembled trigger, over views with these names."""
    leaf = trigger.leaf
    keys = ", ".join(_tuple(words) for words in leaf.keys) or "none"
    lifts = "".join(f", lift {lift} in r{register}" for lift, register in leaf.lifts)
    lifts += "".join(f", lift {lift} in r{words[0]} … r{words[-1]}" for lift, words in leaf.elements)
    lines = [f"f0: keys in {keys}, weights in r{leaf.weights}{lifts}"]
    return lines + [
        _paused(trigger.pauses[one.number], views) if isinstance(one, LeaveMachine) else one.text(views)
        for one in decoded(trigger.code)
    ]


def _tuple(registers: Sequence[int]) -> str:
    return f"({', '.join(f'r{r}' for r in registers)})"


def _paused(pause: Pause, views: Sequence[str]) -> str:
    match pause:
        case MaskPause():
            columns = _tuple([r for words in pause.columns for r in words])
            text = f"f{pause.frame}.r{pause.mask} := a predicate over {columns}, which NumPy computes"
        case RingPause(left=left, right=right):
            other = (
                f"{views[right.view]}[r{right.slots}] word {right.place}"
                if isinstance(right, EntryPart)
                else f"r{right.register}[r{right.rows}]"
            )
            product = f"r{left.register}[r{left.rows}] * {other}"
            text = f"f{pause.frame}.r{pause.target} := {product} in the ring of {pause.ring}"
        case RangePause(access=access):
            text = (
                f"f{pause.frame}.r{pause.target} := Σ of ranges of {views[pause.view]} in the order of {access.ordered}"
            )
    return f"{LeaveMachine.name:<9} {text}"


def leaf_lines(leaf: LeafProgram, columns: Sequence[str]) -> list[str]:
    """The instructions of a leaf program, over a relation with these columns."""
    lines = []
    for i in leaf.inputs:
        source = (
            "weights" if i.column == -1 else f"column {columns[i.column]}" if i.column >= 0 else "evaluated beforehand"
        )
        lines.append(f"r{i.register} = {source}")
    for op, target, a, b, c, constant, frame in leaf.code.reshape(-1, LEAF_WORDS).tolist():
        name = LeafOp(op)
        lines.append(f"{name.name.lower():<17} {_leaf_text(name, target, (a, b, c), constant)}{_KEPT[frame]}")
    return lines


_KEPT = ("", "    -- kept rows")
_CONSTANT = (
    LeafOp.LESS_CONSTANT,
    LeafOp.GREATER_CONSTANT,
    LeafOp.EQUAL_CONSTANT,
    LeafOp.ADD_CONSTANT,
    LeafOp.MULTIPLY_CONSTANT,
)
_UNARY = (LeafOp.NOT, LeafOp.NEGATE, LeafOp.YEAR, LeafOp.TO_FLOAT)


def _leaf_text(op: LeafOp, target: int, sources: tuple[int, int, int], constant: int) -> str:
    a, b, c = sources
    if op is LeafOp.FILL:
        return f"r{target} := {constant}"
    if op is LeafOp.FILTER:
        return f"r{target} := positions where r{a}"
    if op is LeafOp.TAKE:
        return f"r{target} := r{a}[r{b}]"
    if op is LeafOp.SELECT:
        return f"r{target} := r{b} where r{a} else r{c}"
    if op in _CONSTANT:
        return f"r{target} := r{a}, {constant}"
    return f"r{target} := r{a}" if op in _UNARY else f"r{target} := r{a}, r{b}"
