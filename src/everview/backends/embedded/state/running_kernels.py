"""The kernels of running sums and running extremes, over the nodes of ordered sums."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import is_below
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.ordered_sums_kernels import (
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
"""How many running sums of a node are within bounds: none, all, or some."""


@inlined
def _is_within(low: Word, high: Word, bounds: Ints) -> Word:
    """Whether a number of 128 bits is between two, both included: ``bounds`` has their words."""
    return not is_less(low, high, bounds[0], bounds[1]) and not is_less(bounds[2], bounds[3], low, high)


@kernel
def _side_of(nodes: Ints, node: Word, place: Word, low: Word, high: Word, bounds: Ints) -> Word:
    """Whether all running sums of a node, which begin at a number, are within bounds, or none, or some."""
    least, greatest = low + nodes[node, place], low + nodes[node, place + 2]
    least_high = high + nodes[node, place + 1] + is_below(least, low)
    greatest_high = high + nodes[node, place + 3] + is_below(greatest, low)
    if is_less(greatest, greatest_high, bounds[0], bounds[1]) or is_less(bounds[2], bounds[3], least, least_high):
        return OUT
    if _is_within(least, least_high, bounds) and _is_within(greatest, greatest_high, bounds):
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
def sum_turns(nodes: Ints, meta: Ints, stack: Ints, first: Word, last: Word, bounds: Ints, out: Ints) -> Word:
    """The ranks from ``first`` to ``last`` at which it turns whether the running sum, from ``first`` on, is within bounds.

    Before the first entry that counts, it is not. Only nodes whose running sums lie on both sides of a bound are opened, which
    is one path for each turn. Returns how many turns there are; ``out`` gets as many of them as it has room for.
    """
    own, total, count, last_part = own_at(meta), total_at(meta), 0, meta[PAYLOAD_WORDS] - 2
    low, high, rows, is_in = 0, 0, 0, False
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
            turned = rows > 0 and _is_within(after, after_high, bounds)
        else:
            is_whole = base >= first and base + size <= last
            side = MIXED
            if is_whole and rows + more == 0:
                side = OUT
            elif is_whole and rows > 0:
                side = _side_of(nodes, node, bounds_at(meta), low, high, bounds)
            if side == MIXED:
                depth = _open(nodes, stack, depth, node, base)
                continue
            turned = side == IN
            rows += more
        low, high = after, after_high
        if turned != is_in:
            if count < len(out):
                out[count] = base
            count += 1
            is_in = turned
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
