"""The instructions of a trigger as text: what ``explain(mode="code")`` shows.

A register ``r5`` is a column of words, one a row of its frame ``f1``; views are written by name, ``V[r9]`` being the entries in
the slots that r9 holds. One line an instruction, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from everview.backends.embedded.tree.layout import (
    COUNTED,
    EXACT,
    FIRST_RING,
    FLOAT_VALUES,
    FLOATING,
    INT_VALUES,
    PAIRS_AT_ONCE,
    RING_FLOATS,
    RING_INTS,
    RING_MASK,
    RING_PAIRS,
    WIDE_VALUES,
    Op,
    words_of,
)
from everview.backends.embedded.tree.leaf_kernels import LEAF_WORDS, LeafOp
from everview.backends.embedded.tree.leaf_program import LeafProgram
from everview.backends.embedded.tree.pauses import MaskPause, Pause, RingPause
from everview.backends.embedded.tree.trigger_code import TriggerCode
from everview.backends.embedded.vectors import Ints

_KINDS = {
    COUNTED: "count",
    EXACT: "exact",
    FLOATING: "float",
    INT_VALUES: "integers",
    WIDE_VALUES: "wide integers",
    FLOAT_VALUES: "floats",
}


_RING_WORDS = {RING_INTS: "integers", RING_FLOATS: "floats", RING_PAIRS: "double-doubles"}


def _kind(kind: int) -> str:
    if kind < FIRST_RING:
        return _KINDS[kind]
    return f"element of {words_of(kind)} words, {_RING_WORDS[kind & RING_MASK]}"


def trigger_lines(trigger: TriggerCode, views: Sequence[str]) -> list[str]:
    """The instructions of an assembled trigger, over views with these names."""
    leaf = trigger.leaf
    keys = ", ".join(_tuple(words) for words in leaf.keys) or "none"
    lifts = "".join(f", lift {lift} in r{register}" for lift, register in leaf.lifts)
    lifts += "".join(f", lift {lift} in r{words[0]} … r{words[-1]}" for lift, words in leaf.elements)
    lines = [f"f0: keys in {keys}, weights in r{leaf.weights}{lifts}"]
    for op, operands in instructions(trigger.code):
        is_pause = op == Op.PAUSE
        lines.append(_paused(trigger.pauses[operands[0]], views) if is_pause else _line(Op(op), operands, views))
    return lines


def instruction_text(code: Ints, at: int, views: Sequence[str]) -> str:
    """The instruction at a word of the code."""
    op, count = int(code[at]), int(code[at + 1])
    return " ".join(_line(Op(op), code[at + 2 : at + count].tolist(), views).split())


def instructions(code: Ints) -> Iterator[tuple[int, list[int]]]:
    """The instructions in the order in which they run: the code of each with its operands."""
    words, at = code.tolist(), 0
    while at < len(words):
        yield words[at], words[at + 2 : at + words[at + 1]]
        at += words[at + 1]


def _line(op: Op, operands: list[int], views: Sequence[str]) -> str:
    shape = _SHAPES.get(op)
    text = ", ".join(map(str, operands)) if shape is None else shape(operands, views)
    return f"{op.name.lower():<9} {text}"


def _tuple(registers: Sequence[int]) -> str:
    return f"({', '.join(f'r{r}' for r in registers)})"


def _group(x: list[int], _views: Sequence[str]) -> str:
    frame, out, numbers, count = x[:4]
    old, new = x[4 : 4 + count], x[4 + count :]
    return f"f{out} := f{frame} by {_tuple(old)}, keys in {_tuple(new)}, group of each row in r{numbers}"


def _gather(x: list[int], views: Sequence[str]) -> str:
    return f"{_group(x[:-1], views)}, beside the f{x[-1]} that there are".replace(":=", "+=")


def _append(x: list[int], views: Sequence[str]) -> str:
    return f"{_each(x[:-1], views)}, after the f{x[-1]} that there are".replace(":=", "+=")


def _sum_more(x: list[int], views: Sequence[str]) -> str:
    return _sum(x[:-1], views).replace(":=", "+=")


def _each(x: list[int], _views: Sequence[str]) -> str:
    frame, out, numbers, count = x[:4]
    old, new = x[4 : 4 + count], x[4 + count :]
    return f"f{out} := f{frame} row by row, {_tuple(old)} in {_tuple(new)}, number of each row in r{numbers}"


def _sum(x: list[int], _views: Sequence[str]) -> str:
    frame, out, numbers, kind, source, weights, target = x
    weighted = f" * r{weights}" if weights >= 0 else ""
    return f"f{out}.r{target} := Σ by r{numbers} of f{frame}.r{source}{weighted} ({_kind(kind)})"


def _lookup(x: list[int], views: Sequence[str]) -> str:
    view, frame, out, rows, slots, _ = x[:6]
    return f"f{out} := f{frame} * {views[view]} by {_tuple(x[6:])}, rows in r{rows}, slots in r{slots}"


def _slice(x: list[int], views: Sequence[str]) -> str:
    view, frame, out, rows, slots, index, _ = x[:7]
    by = f"{views[view]} index {index} by {_tuple(x[7:-1])}"
    return f"f{out} := f{frame} * {by}, rows in r{rows}, slots in r{slots}{_up_to(x[-1])}"


def _scan(x: list[int], views: Sequence[str]) -> str:
    view, frame, out, rows, slots, cursor = x
    return f"f{out} := f{frame} * all of {views[view]}, rows in r{rows}, slots in r{slots}{_up_to(cursor)}"


def _up_to(cursor: int) -> str:
    return "" if cursor < 0 else f", the next {PAIRS_AT_ONCE} from f{cursor} on"


def _clear(x: list[int], _views: Sequence[str]) -> str:
    return ", ".join(f"f{frame} := no rows" for frame in x)


def _repeat(x: list[int], _views: Sequence[str]) -> str:
    return f"goes {x[1]} words back until f{x[0]} is through"


def _take(x: list[int], _views: Sequence[str]) -> str:
    frame, rows, source, target = x
    return f"f{frame}.r{target} := r{source}[r{rows}]"


def _key(x: list[int], views: Sequence[str]) -> str:
    frame, view, slots, word, target = x
    return f"f{frame}.r{target} := {views[view]}[r{slots}] word {word}"


def _multiply(x: list[int], views: Sequence[str]) -> str:
    frame, rows, view, slots, kind_a, a, kind_b, b, target = x[:9]
    left = f"r{a}[r{rows}]" if rows >= 0 else f"r{a}"
    return f"f{frame}.r{target} := {left} ({_kind(kind_a)}) * {views[view]}[r{slots}] word {b} ({_kind(kind_b)})"


def _upsert(x: list[int], views: Sequence[str]) -> str:
    view, frame, slots, count = x[:4]
    keys, parts = x[4 : 4 + count], x[4 + count :]
    return f"{views[view]}[{', '.join(f'r{k}' for k in keys)}] += f{frame} {_tuple(parts)}, slots in r{slots}"


def _compact(x: list[int], _views: Sequence[str]) -> str:
    frame, mask, out, rows = x
    return f"f{out} := f{frame} where r{mask}, rows in r{rows}"


def _held(x: list[int], views: Sequence[str]) -> str:
    frame, view, rows, slots = x
    return f"f{frame} := f{frame} where {views[view]}[r{slots}] has a count, rows in r{rows}, slots in r{slots}"


def _turn(x: list[int], views: Sequence[str]) -> str:
    frame, view, slots, counts, target = x
    return f"f{frame}.r{target} := what adding r{counts} has made of {views[view]}[r{slots}]: 1 there now, -1 no more, else 0"


def _paused(pause: Pause, views: Sequence[str]) -> str:
    match pause:
        case MaskPause():
            columns = _tuple([r for words in pause.columns for r in words])
            text = f"f{pause.frame}.r{pause.mask} := a predicate over {columns}, which NumPy computes"
        case RingPause(left=left, right=right):
            product = f"r{left.register}[r{left.rows}] * {views[right.view]}[r{right.slots}] word {right.place}"
            text = f"f{pause.frame}.r{pause.target} := {product} in the ring of {pause.ring}"
    return f"{Op.PAUSE.name.lower():<9} {text}"


_SHAPES: dict[Op, Callable[[list[int], Sequence[str]], str]] = {
    Op.GROUP: _group,
    Op.EACH: _each,
    Op.GATHER: _gather,
    Op.APPEND: _append,
    Op.SUM_MORE: _sum_more,
    Op.CLEAR: _clear,
    Op.REPEAT: _repeat,
    Op.SUM: _sum,
    Op.LOOKUP: _lookup,
    Op.SLICE: _slice,
    Op.SCAN: _scan,
    Op.TAKE: _take,
    Op.KEY: _key,
    Op.MULTIPLY: _multiply,
    Op.UPSERT: _upsert,
    Op.COMPACT: _compact,
    Op.HELD: _held,
    Op.TURN: _turn,
}


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
