"""The machine that runs triggers: one unit of compiled code, the same for every query.

It runs instructions (`instructions`) over registers: columns of words, one word a row of their frame. An instruction first asks
for what it needs (rows of a frame, room in a map) and stops if that is missing; it is then run again from its start.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.backends.embedded.tree.instruction import SIZE
from everview.backends.embedded.tree.instructions import (
    APPEND,
    BY_TABLE,
    CLEAR,
    COMPACT,
    CROSS,
    EACH,
    GATHER,
    GROUP,
    HELD,
    JOIN,
    KEY,
    LIFT_MOMENTS,
    LOOKUP,
    MULTIPLY,
    MULTIPLY_MOMENT_ROWS,
    MULTIPLY_MOMENTS,
    MULTIPLY_ROWS,
    PART,
    PAUSE,
    REPEAT,
    SCAN,
    SLICE,
    SUM,
    SUM_MORE,
    TAKE,
    TAKE_MOMENTS,
    TURN,
    UPSERT,
)
from everview.backends.embedded.tree.kernels.entries import has_room, keep_held, turn_indicator, upsert_rows
from everview.backends.embedded.tree.kernels.grouping import group_rows, number_rows, sum_groups
from everview.backends.embedded.tree.kernels.joins import (
    cross_rows,
    find_entries,
    join_rows,
    scan_entries,
    slice_entries,
)
from everview.backends.embedded.tree.kernels.moment_products import multiply_moment_rows, multiply_moments
from everview.backends.embedded.tree.kernels.moments import lift_moments, take_moments
from everview.backends.embedded.tree.kernels.parts import tell_parts
from everview.backends.embedded.tree.kernels.probing import entry_at
from everview.backends.embedded.tree.kernels.products import multiply_by_table, multiply_entries, multiply_rows
from everview.backends.embedded.tree.layout import (
    AMOUNT,
    AT,
    COUNT,
    DONE,
    INDEX_BUILT,
    INDEXES,
    NEED,
    NEED_INDEX,
    NEED_MAP,
    NEED_ROWS,
    NEED_SCRATCH,
    PAIRS_AT_ONCE,
    PAUSED,
    SCRATCH_MASK,
    UNKNOWN_OPCODE,
    WHICH,
    WORK,
)


@inlined
def _stop(environment: Word, need: Word, which: Word, amount: Word) -> None:
    store(environment, NEED, need)
    store(environment, WHICH, which)
    store(environment, AMOUNT, amount)


@kernel
def run(start: Word, end: Word, registers: Word, rows: Word, capacities: Word, views: Word, environment: Word) -> Word:
    """Runs the instructions from one address to another; returns the address at which it stopped, saying why."""
    code = start
    store(environment, NEED, DONE)
    while code < end:
        if IS_CHECKED:
            store(environment, AT, code)
        op, work, trouble = load(code, 0), -1, 0
        if op == GROUP.opcode or op == EACH.opcode or op == GATHER.opcode or op == APPEND.opcode:
            out, more = load(code, GROUP.out), load(rows, load(code, GROUP.frame))
            wanted = more + (load(rows, out) if load(code, GROUP.known) >= 0 else 0)
            if wanted > load(capacities, out):
                _stop(environment, NEED_ROWS, out, wanted)
                return code
            if op == GROUP.opcode or op == GATHER.opcode:
                if 2 * wanted > load(environment, SCRATCH_MASK):
                    _stop(environment, NEED_SCRATCH, 0, 2 * wanted)
                    return code
                group_rows(code, registers, rows, environment)
            else:
                number_rows(code, registers, rows)
            work = load(code, GROUP.frame)
        elif op == SUM.opcode or op == SUM_MORE.opcode:
            trouble = sum_groups(code, registers, rows)
        elif op == LOOKUP.opcode:
            work, wanted = load(code, LOOKUP.out), load(rows, load(code, LOOKUP.frame))
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            find_entries(code, registers, rows, views)
        elif op == SLICE.opcode:
            work, number, index = load(code, SLICE.out), load(code, SLICE.map), load(code, SLICE.index)
            if load(load(load(load(views, number), INDEXES), index), INDEX_BUILT) == 0:
                _stop(environment, NEED_INDEX, number, index)
                return code
            wanted = slice_entries(code, registers, rows, capacities, views)
            if wanted > 0:
                _stop(environment, NEED_ROWS, work, wanted)
                return code
        elif op == SCAN.opcode:
            work = load(code, SCAN.out)
            wanted = load(rows, load(code, SCAN.frame)) * load(load(views, load(code, SCAN.map)), COUNT)
            if load(code, SCAN.cursor) >= 0 and wanted > PAIRS_AT_ONCE:
                wanted = PAIRS_AT_ONCE
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            scan_entries(code, registers, rows, views)
        elif op == TAKE.opcode:
            count, origin = load(rows, load(code, TAKE.frame)), load(registers, load(code, TAKE.rows))
            source, target = load(registers, load(code, TAKE.source)), load(registers, load(code, TAKE.target))
            for i in range(count):
                store(target, i, load(source, load(origin, i)))
        elif op == KEY.opcode:
            count, view = load(rows, load(code, KEY.frame)), load(views, load(code, KEY.map))
            slots, target = load(registers, load(code, KEY.slots)), load(registers, load(code, KEY.target))
            word = load(code, KEY.word)
            for i in range(count):
                store(target, i, load(entry_at(view, load(slots, i)), word))
        elif op == MULTIPLY.opcode:
            trouble = multiply_entries(code, registers, rows, views)
        elif op == LIFT_MOMENTS.opcode:
            trouble = lift_moments(code, registers, rows)
        elif op == MULTIPLY_MOMENTS.opcode:
            multiply_moments(code, registers, rows, views)
        elif op == MULTIPLY_MOMENT_ROWS.opcode:
            multiply_moment_rows(code, registers, rows)
        elif op == TAKE_MOMENTS.opcode:
            take_moments(code, registers, rows)
        elif op == UPSERT.opcode:
            work, number = load(code, UPSERT.frame), load(code, UPSERT.map)
            if not has_room(load(views, number), load(rows, work)):
                _stop(environment, NEED_MAP, number, load(rows, work))
                return code
            trouble = upsert_rows(code, registers, rows, views)
        elif op == COMPACT.opcode:
            out, count = load(code, COMPACT.out), load(rows, load(code, COMPACT.frame))
            if count > load(capacities, out):
                _stop(environment, NEED_ROWS, out, count)
                return code
            mask, chosen, kept = load(registers, load(code, COMPACT.mask)), load(registers, load(code, COMPACT.rows)), 0
            for i in range(count):
                if load(mask, i) != 0:
                    store(chosen, kept, i)
                    kept += 1
            store(rows, out, kept)
        elif op == CROSS.opcode:
            work, cursor, first = load(code, CROSS.out), load(code, CROSS.cursor), 0
            if cursor >= 0:
                first = load(rows, cursor)
            wanted = load(rows, load(code, CROSS.a)) * load(rows, load(code, CROSS.b)) - first
            if cursor >= 0 and wanted > PAIRS_AT_ONCE:
                wanted = PAIRS_AT_ONCE
            if wanted > load(capacities, work):
                _stop(environment, NEED_ROWS, work, wanted)
                return code
            cross_rows(code, registers, rows, first, wanted)
        elif op == CLEAR.opcode:
            for k in range(load(code, CLEAR.frames)):
                store(rows, load(code, CLEAR.frames + 1 + k), 0)
        elif op == REPEAT.opcode:
            if load(rows, load(code, REPEAT.cursor)) != 0:
                code -= load(code, REPEAT.back) * 8
                continue
        elif op == JOIN.opcode:
            work, wanted = load(code, JOIN.out), 2 * load(rows, load(code, JOIN.b))
            if wanted > load(environment, SCRATCH_MASK):
                _stop(environment, NEED_SCRATCH, 0, wanted)
                return code
            wanted = join_rows(code, registers, rows, capacities, environment)
            if wanted > 0:
                _stop(environment, NEED_ROWS, work, wanted)
                return code
        elif op == MULTIPLY_ROWS.opcode:
            trouble = multiply_rows(code, registers, rows)
        elif op == HELD.opcode:
            keep_held(code, registers, rows, views)
        elif op == TURN.opcode:
            turn_indicator(code, registers, rows, views)
        elif op == PART.opcode:
            tell_parts(code, registers, rows, views)
        elif op == BY_TABLE.opcode:
            multiply_by_table(code, registers, rows, views)
        elif op == PAUSE.opcode:
            _stop(environment, PAUSED, load(code, PAUSE.number), 0)
            return code + load(code, SIZE) * 8
        else:
            trouble = UNKNOWN_OPCODE
        if trouble != 0:
            _stop(environment, trouble, 0, 0)
            return code
        if work >= 0:  # the frame whose rows the instruction has read or made
            store(environment, WORK, load(environment, WORK) + load(rows, work))
        code += load(code, SIZE) * 8
    return code
