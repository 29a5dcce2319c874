"""The kernels of running sums and running extremes, over the nodes of ordered sums."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import is_below, multiply_high
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.ordered_nodes import (
    KEY,
    KEY_WORDS,
    LEFT,
    PAYLOAD_WORDS,
    RIGHT,
    ROOT,
    SIZE,
    bounds_at,
    is_less,
    own_at,
    total_at,
)
from everview.backends.embedded.vectors import Ints

OUT, IN, MIXED = range(3)
"""How many running sums of a node are between lines: none, all, or some."""

LINE = 4
"""Words of a line: where it starts, and its slope by rows, 128 bits each, low word first."""


@inlined
def _is_below_line(low: Word, high: Word, rows: Word, line: Ints, at: Word) -> Word:
    """Whether a number of 128 bits is below a start and a slope times the rows: the line has the words of both at a place."""
    slope = line[at + 2]
    rise = slope * rows
    start = line[at] + rise
    start_high = line[at + 1] + multiply_high(slope, rows) + line[at + 3] * rows + is_below(start, rise)
    return is_less(low, high, start, start_high)


@inlined
def _is_within(low: Word, high: Word, rows: Word, lines: Ints) -> Word:
    """Whether a running sum of so many rows is not below the first line, and below the second."""
    return not _is_below_line(low, high, rows, lines, 0) and _is_below_line(low, high, rows, lines, LINE)


@kernel
def _side_of(nodes: Ints, node: Word, place: Word, low: Word, high: Word, rows: Word, more: Word, lines: Ints) -> Word:
    """Whether all running sums of a node, which begin at a number and some rows, are between lines, or none, or some."""
    least, greatest = low + nodes[node, place], low + nodes[node, place + 2]
    least_high = high + nodes[node, place + 1] + is_below(least, low)
    greatest_high = high + nodes[node, place + 3] + is_below(greatest, low)
    first, last = rows + 1, rows + more
    low_end, low_start = (first, last) if lines[3] < 0 else (last, first)
    high_end, high_start = (first, last) if lines[LINE + 3] < 0 else (last, first)
    if _is_below_line(greatest, greatest_high, low_start, lines, 0):
        return OUT
    if not _is_below_line(least, least_high, high_end, lines, LINE):
        return OUT
    is_above = not _is_below_line(least, least_high, low_end, lines, 0)
    if is_above and _is_below_line(greatest, greatest_high, high_start, lines, LINE):
        return IN
    return MIXED


@inlined
def _open(nodes: Ints, stack: Ints, depth: Word, node: Word, base: Word) -> Word:
    """Puts what a node is made of on the stack, what comes first on top; the entry itself has the node's number negated."""
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    middle = base + nodes[left, SIZE]
    if right != 0:
        stack[depth], stack[depth + 1] = right, middle + 1
        depth += 2
    stack[depth], stack[depth + 1] = -node, middle
    depth += 2
    if left != 0:
        stack[depth], stack[depth + 1] = left, base
        depth += 2
    return depth


@kernel
def sum_turns(nodes: Ints, meta: Ints, stack: Ints, first: Word, last: Word, lines: Ints, out: Ints) -> Word:
    """The ranks from ``first`` to ``last`` at which it turns whether the running sum, from ``first`` on, is between lines.

    Before the first entry that counts, it is not. Only nodes whose running sums may lie on both sides of a line are opened,
    which is one path for each turn where lines are level. Returns how many turns there are; ``out`` gets as many of them as it
    has room for, and ``stack`` the number of nodes that were opened.
    """
    own, total, count, last_part = own_at(meta), total_at(meta), 0, meta[PAYLOAD_WORDS] - 2
    low, high, rows, is_in, opened = 0, 0, 0, False, 0
    stack[0], stack[1] = meta[ROOT], 0
    depth = 2 if meta[ROOT] != 0 else 0
    while depth > 0:
        depth -= 2
        node, base = stack[depth], stack[depth + 1]
        is_single = node < 0
        if is_single:
            node = -node
        size = 1 if is_single else nodes[node, SIZE]
        if base + size <= first or base >= last:
            continue
        part = own if is_single else total
        more = nodes[node, part]
        added, added_high = nodes[node, part + last_part], nodes[node, part + last_part + 1]
        after = low + added
        after_high = high + added_high + is_below(after, low)
        turned = is_in
        if is_single:
            rows += more
            turned = rows > 0 and _is_within(after, after_high, rows, lines)
        else:
            is_whole = base >= first and base + size <= last
            side = MIXED
            if is_whole and rows + more == 0:
                side = OUT
            elif is_whole and rows > 0:
                side = _side_of(nodes, node, bounds_at(meta), low, high, rows, more, lines)
            if side == MIXED:
                depth = _open(nodes, stack, depth, node, base)
                opened += 1
                continue
            turned = side == IN
            rows += more
        low, high = after, after_high
        if turned != is_in:
            if count < len(out):
                out[count] = base
            count += 1
            is_in = turned
    stack[0] = opened
    return count


@kernel
def first_reaching(nodes: Ints, meta: Ints, first: Word, last: Word, least: Word) -> Word:
    """The first rank from ``first`` to ``last`` whose key ends with a word not below ``least``; ``last`` if there is none."""
    word = KEY + meta[KEY_WORDS] - 1
    greatest = bounds_at(meta)
    node, base, found = meta[ROOT], 0, last
    # Down to the first entry of the range: what the path leaves on its right comes after it, and better ones come later.
    while node != 0:
        left = nodes[node, LEFT]
        at = base + nodes[left, SIZE]
        if at < first:
            base = at + 1
            node = nodes[node, RIGHT]
            continue
        # What stands here is in the range, as far as it is before ``last``; what is left of it may be better.
        if at < found:
            if nodes[node, word] >= least:
                found = at
            elif nodes[node, RIGHT] != 0 and nodes[nodes[node, RIGHT], greatest] >= least:
                inner, start = nodes[node, RIGHT], at + 1
                while True:
                    before = nodes[inner, LEFT]
                    if before != 0 and nodes[before, greatest] >= least:
                        inner = before
                        continue
                    here = start + nodes[before, SIZE]
                    if nodes[inner, word] >= least:
                        found = min(found, here)
                        break
                    inner, start = nodes[inner, RIGHT], here + 1
        node = left
    return found


@kernel
def reach(nodes: Ints, meta: Ints, first: Ints, last: Ints, least: Word, out: Ints) -> None:
    """The same for many ranges."""
    for i in range(len(first)):
        out[i] = first_reaching(nodes, meta, first[i], last[i], least)


@kernel
def reach_all(
    nodes: Ints, meta: Ints, first: Ints, last: Ints, least: Ints, most: Ints, start: Word, rows: Ints, ranks: Ints
) -> Word:
    """Of many ranges all ranks whose keys end with a word not below that range's ``least``, ``most`` of them at most.

    Writes pairs of a range and a rank, in order, and returns how many. Where there is no more room, ``first`` and ``most`` say
    what is left; ranges before ``start`` are passed over.
    """
    count = 0
    for i in range(start, len(first)):
        while most[i] > 0 and first[i] < last[i]:
            found = first_reaching(nodes, meta, first[i], last[i], least[i])
            if found < last[i]:
                if count == len(rows):
                    return count
                rows[count], ranks[count] = i, found
                count += 1
                most[i] -= 1
            first[i] = found + 1
    return count
