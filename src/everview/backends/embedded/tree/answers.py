"""From payloads to the answers of aggregates: counts, sums and averages read off the parts of a result view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as PythonDecimal
from typing import TypeAlias

import numpy as np

from everview.algebra.moments import CentralMoments, FeatureProduct, Floats
from everview.algebra.registry import ring_named
from everview.algebra.ring import Payloads
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.moments import finish_moments
from everview.backends.embedded.operators.ring_sums import ring_answers
from everview.backends.embedded.operators.sums import (
    SUM_WORDS,
    answer_vector,
    divide_half_up,
    finish_exact_sum,
    finish_float_sum,
)
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.accumulate import FLOAT_COUNTERS, MINUS, NAN, PLUS, float_totals
from everview.backends.embedded.tree.layout import BIG, FLOAT_RANGE, PLUS_UNIT, SPECIAL_BITS
from everview.backends.embedded.tree.machine import range_error
from everview.backends.embedded.vectors import Bools, Ints, Kind, Vector, kind_of
from everview.planner.block import Answer, Block, Monomial, Number
from everview.planner.block import Terms as BlockTerms
from everview.planner.moments_block import packed
from everview.planner.moments_part import MomentsPart
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.functions.decimals import CONTEXT
from everview.relational.nodes import AggregateCall
from everview.relational.types import INT64, Decimal, Value, is_floating

Finish = Callable[[Ints], Vector]
PAIR_BITS = 100
"""The rounding errors of a double-double are so far below the largest number in it, with some to spare for many additions."""
_ENOUGH = 2.0**40
_EXPONENT = (1 << 11) - 1
CountTerms: TypeAlias = tuple[tuple[int, int], ...]
"""Coefficient and word of counts that are added up."""
Terms: TypeAlias = tuple[tuple[int, int, bool], ...]
"""Coefficient, first word, and whether the part is a count."""


def finishers(
    block: Block, payload: Sequence[Monomial], offsets: Sequence[int], dictionary: Dictionary, *, bears_loss: bool
) -> tuple[Finish, ...]:
    """For each answer of the block a function from payload rows to the column of answers.

    Args:
        block: Whose answers.
        payload: The parts of the result view.
        offsets: The first word of each part in a payload row.
        dictionary: Where strings and nested values get their codes.
        bears_loss: Whether answers are given that have too few digits, as nothing can stand in for the tree.
    """
    place, cells = _word_of_each(block, payload, offsets)
    return tuple(_finisher(block, answer, place, cells, dictionary, bears_loss=bears_loss) for answer in block.answers)


@dataclass(frozen=True, slots=True)
class Cell:
    """A sum that is one of moments.

    Attributes:
        error: The word of its rounding error.
        squares: Of the features that are multiplied in it, if two are, the words of the sums of their squares.
        marks: Of the same, the words of the largest that these sums have been.
    """

    error: int
    squares: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()


def _word_of_each(
    block: Block, payload: Sequence[Monomial], offsets: Sequence[int]
) -> tuple[dict[Monomial, int], dict[int, Cell]]:
    """The word of each monomial; and of the sums that are moments, which have no note, by their word what is known of them."""
    place: dict[Monomial, int] = {}
    cells: dict[int, Cell] = {}
    for part, at in zip(packed(block, payload), offsets, strict=True):
        if not isinstance(part, MomentsPart):
            place[part] = at
            continue
        assert block.moments is not None, "a block with moments"
        place |= {cell: at + i for i, cell in enumerate(block.moments.cells(part))}
        count, size = len(part.features), part.size
        pairs: list[tuple[int, ...]] = [()] * count
        pairs += [(i, j) for i in range(count) for j in range(i, count)] if part.degree == 2 else []
        square = {p[0]: at + i for i, p in enumerate(pairs) if p and p[0] == p[1]}
        for i, pair in enumerate(pairs):
            marks = tuple(at + 2 * size + f for f in pair)
            cells[at + i] = Cell(at + size + i, tuple(square[f] for f in pair), marks)
    return place, cells


def number_reader(block: Block, payload: Sequence[Monomial], offsets: Sequence[int]) -> Callable[[Ints], Floats] | None:
    """A function from payload rows to all answers at once, where these are numbers of rows and sums in moments; else None.

    Each is a double-double: [row, answer, 2]. The sum of no rows is 0 here, and not NULL.
    """
    place, cells = _word_of_each(block, payload, offsets)
    words, errors = [], []
    for answer in block.answers:
        terms = answer.valid if answer.call.function == "count" else answer.sums[0] if answer.sums else ()
        if answer.call.function not in ("count", "sum") or len(terms) != 1 or terms[0][0] != 1:
            return None
        word = place[terms[0][1]]
        if answer.call.function == "sum" and word not in cells:
            return None
        words.append(word)
        errors.append(cells[word].error if word in cells else -1)
    chosen, lacking = np.array(words, dtype=np.int64), np.array(errors, dtype=np.int64)
    is_sum = lacking >= 0

    def read(rows: Ints) -> Floats:
        found: Floats = np.zeros((len(rows), len(chosen), 2))
        numbers = rows.view(np.float64)
        found[:, ~is_sum, 0] = rows[:, chosen[~is_sum]]
        found[:, is_sum, 0] = numbers[:, chosen[is_sum]]
        found[:, is_sum, 1] = numbers[:, lacking[is_sum]]
        return found

    return read


def always_fit(block: Block) -> bool:
    """Whether no answer can fail as long as every sum stays within 64 bits and every float is finite."""
    return all(_always_fits(block, answer) for answer in block.answers)


def _always_fits(block: Block, answer: Answer) -> bool:
    if answer.call.is_ring:
        return False
    summed = _summed(answer)
    if summed is not Summed.NUMBERS or answer.call.function in ("avg", "try_sum", "try_avg"):
        return summed is not Summed.FLOATS  # whose digits may turn out to be too few
    (terms,) = answer.sums
    if any(block.number_of(m) is Number.FLOAT for _, m in terms):
        return True
    total = sum(abs(c) for c, _ in terms)
    if isinstance(answer.call.type, Decimal):
        return bool(total << 63 < 10**answer.call.type.precision)
    return answer.call.type == INT64 and total <= 1


def _finisher(
    block: Block,
    answer: Answer,
    place: dict[Monomial, int],
    cells: dict[int, Cell],
    dictionary: Dictionary,
    *,
    bears_loss: bool,
) -> Finish:
    call = answer.call
    valid = tuple((c, place[m]) for c, m in answer.valid)
    if call.is_ring:
        ring = ring_named(call.function).ring
        (((_, monomial),),) = answer.sums
        words = slice(place[monomial], place[monomial] + ring.width)

        def finish_ring(rows: Ints) -> Vector:
            payloads = np.ascontiguousarray(rows[:, words]).view(ring.dtype)
            return ring_answers(call, payloads, _counts(rows, valid), dictionary)

        return finish_ring
    sums = tuple(_places(block, terms, place) for terms in answer.sums)
    match _summed(answer):
        case Summed.ROWS:
            return lambda rows: Vector(INT64, _counts(rows, valid))
        case Summed.TRUTHS:
            (truths,) = answer.sums
            return _finish_truths(call, tuple((c, place[m]) for c, m in truths), valid)
        case Summed.FLOATS:
            return _finish_moments(call, sums, valid, cells, bears_loss=bears_loss)
        case _:
            (terms,) = sums
    if is_floating(call.args[0].type):
        if len(terms) == 1 and terms[0][0] == 1 and terms[0][1] in cells:
            first, error = terms[0][1], cells[terms[0][1]].error
            return lambda rows: finish_float_sum(call, _settled(rows, first, error), _counts(rows, valid))

        def finish_float(rows: Ints) -> Vector:
            sums, counters = _floats(rows, terms, cells)
            return finish_float_sum(call, float_totals(sums, counters), _counts(rows, valid))

        return finish_float
    is_plain = call.function == "sum" and len(terms) == 1 and terms[0][0] == 1 and not terms[0][2]
    is_wide = kind_of(call.type) is Kind.WIDE
    if not is_plain or not _always_fits(block, answer):
        return lambda rows: finish_exact_sum(call, _exact(rows, terms), _counts(rows, valid))
    at = terms[0][1]

    def finish_plain(rows: Ints) -> Vector:
        """The general way would check what is plain to see: sums within 64 bits fit."""
        low = rows[:, at]
        if not (rows[:, at + 1] == low >> 63).all():
            return finish_exact_sum(call, _exact(rows, terms), _counts(rows, valid))
        values = rows[:, at : at + 2].copy() if is_wide else low.copy()
        return answer_vector(call, values, _counts(rows, valid) == 0)

    return finish_plain


def _summed(answer: Answer) -> Summed:
    declared = sum_aggregate(answer.call)
    assert declared is not None, f"{answer.call.function} is a function of sums"
    return declared.summed


def _finish_truths(call: AggregateCall, truths: CountTerms, valid: CountTerms) -> Finish:
    """MIN and MAX of booleans: whether all are true, and whether one is."""

    def finish(rows: Ints) -> Vector:
        true, counted = _counts(rows, truths), _counts(rows, valid)
        holds = (true == counted) if call.function == "min" else (true > 0)
        return answer_vector(call, holds.astype(np.int64), counted == 0)

    return finish


def _finish_moments(
    call: AggregateCall, sums: tuple[Terms, ...], valid: CountTerms, cells: Mapping[int, Cell], *, bears_loss: bool
) -> Finish:
    declared = sum_aggregate(call)
    assert declared is not None, f"{call.function} is a function of sums"
    products = declared.products
    words = [at for terms in sums for _, at, is_count in terms if not is_count]
    noted = [at + 2 for at in words if at not in cells]
    marked = [cells[at] for at in words if at in cells and cells[at].marks]

    def finish(rows: Ints) -> Vector:
        read = [_floats(rows, terms, cells) for terms in sums]
        finite = {p: np.all(counters == 0, axis=1) for p, (_, counters) in zip(products, read, strict=True)}
        pairs = {product: pair for product, (pair, _) in zip(products, read, strict=True)}
        counts = _counts(rows, valid)
        if not bears_loss:
            is_finite = np.logical_and.reduce([*finite.values()])
            largest = np.maximum(_noted(rows, noted), _marked(rows, marked))
            _check_digits(largest, counts, pairs, is_finite)
        return finish_moments(call, counts, pairs, finite)

    return finish


def _noted(rows: Ints, words: list[int]) -> Floats:
    """The scale of the largest number that has been in sums with notes; 0 where none was large."""
    top = (rows[:, words] >> SPECIAL_BITS & _EXPONENT).max(axis=1, initial=0)
    return np.where(top > 0, np.ldexp(1.0, top - 1023), 0.0)


def _marked(rows: Ints, cells: Sequence[Cell]) -> Floats:
    """The largest that sums of products have been, of those that were large and have become smaller; 0 where none has."""
    largest = np.zeros(len(rows))
    numbers = rows.view(np.float64)
    for cell in cells:
        has_lost = np.any(numbers[:, cell.marks] > np.abs(numbers[:, cell.squares]), axis=1)
        scale = np.sqrt(np.prod(numbers[:, cell.marks], axis=1))
        largest = np.where(has_lost & (scale >= BIG), np.maximum(largest, scale), largest)
    return largest


def _check_digits(largest: Floats, counts: Ints, sums: Mapping[FeatureProduct, Payloads], finite: Bools) -> None:
    """Large numbers have been in a sum, and their rounding errors still are: what is left must be far above these.

    Raises:
        TreeOutgrown: it is not.
    """
    is_noted = finite & (counts > 0) & (largest > 0)
    if not is_noted.any():
        return
    chosen = {product: pair[is_noted] for product, pair in sums.items()}
    moments = CentralMoments(counts[is_noted], chosen)
    errors = np.ldexp(largest[is_noted], -PAIR_BITS)
    for product in chosen:
        if len(product) == 2 and (np.abs(moments.central(*product)) < errors * _ENOUGH).any():
            raise range_error(FLOAT_RANGE)


def row_finishers(
    block: Block, payload: Sequence[Monomial], offsets: Sequence[int]
) -> tuple[Callable[[list[int]], Value], ...] | None:
    """For each answer a function from the words of one payload row to its value; None where an answer needs more than that."""
    place, _ = _word_of_each(block, payload, offsets)
    found = [_row_finisher(block, answer, place) for answer in block.answers]
    return tuple(f for f in found if f is not None) if None not in found else None


def _row_finisher(block: Block, answer: Answer, place: dict[Monomial, int]) -> Callable[[list[int]], Value] | None:
    valid = tuple((c, place[m]) for c, m in answer.valid)
    if answer.call.is_ring:
        return None
    if answer.call.function == "count":
        return lambda words: sum(c * words[at] for c, at in valid)
    is_average = answer.call.function == "avg"
    if (not is_average and answer.call.function != "sum") or is_floating(answer.call.type):
        return None
    terms = _places(block, answer.sums[0], place)
    scale = answer.call.type.scale if isinstance(answer.call.type, Decimal) else None
    factor = 1
    if is_average:
        argument = answer.call.args[0].type
        if scale is None or not isinstance(argument, Decimal):
            return None
        factor = 10 ** (scale - argument.scale)

    def finish(words: list[int]) -> Value:
        count = total = 0
        for coefficient, at in valid:
            count += coefficient * words[at]
        if not count:
            return None
        for coefficient, at, is_count in terms:
            total += coefficient * (words[at] if is_count else (words[at + 1] << 64) + (words[at] & _LOW))
        if is_average:
            total = divide_half_up(total * factor, count)
        return total if scale is None else CONTEXT.scaleb(PythonDecimal(total), -scale)

    return finish


_LOW = (1 << 64) - 1


def _places(block: Block, terms: BlockTerms, place: dict[Monomial, int]) -> Terms:
    """Where the terms are; rounding errors that moments have in their products have no place of their own."""
    return tuple((c, place[m], block.number_of(m) is Number.COUNT) for c, m in terms if m in place)


def _counts(rows: Ints, terms: CountTerms) -> Ints:
    if len(terms) == 1 and terms[0][0] == 1:
        return rows[:, terms[0][1]].copy()
    total = np.zeros(len(rows), dtype=np.int64)
    for coefficient, at in terms:
        total += coefficient * rows[:, at]
    return total


def _exact(rows: Ints, terms: Terms) -> Ints:
    totals = np.zeros((len(rows), SUM_WORDS), dtype=np.int64)
    if len(terms) == 1 and terms[0][0] == 1:
        _, at, is_count = terms[0]
        totals[:, 0] = rows[:, at]
        totals[:, 1] = rows[:, at] >> 63 if is_count else rows[:, at + 1]
        totals[:, 2] = totals[:, 1] >> 63
        return totals
    slots = np.arange(len(rows), dtype=np.int64)
    for coefficient, at, is_count in terms:
        words = rows[:, at].copy() if is_count else np.ascontiguousarray(rows[:, at : at + 2])
        weights = np.full(len(rows), coefficient, dtype=np.int64)
        wide.scatter_add_wide(totals, slots, words, weights, words=SUM_WORDS)
    return totals


def _floats(rows: Ints, terms: Terms, cells: Mapping[int, Cell]) -> tuple[np.ndarray, Ints]:
    sums = np.zeros((len(rows), 2), dtype=np.float64)
    counters = np.zeros((len(rows), FLOAT_COUNTERS), dtype=np.int64)
    for coefficient, at, is_count in terms:
        if is_count:
            sums[:, 0] += coefficient * rows[:, at].astype(np.float64)
            continue
        words = np.stack((rows[:, at], rows[:, cells[at].error if at in cells else at + 1]), axis=1)
        parts = words.view(np.float64)
        total, error = sums[:, 0].copy(), sums[:, 1]
        value = parts[:, 0] * coefficient
        new = total + value
        part = new - total
        sums[:, 1] = error + parts[:, 1] * coefficient + ((total - (new - part)) + (value - part))
        sums[:, 0] = new
        if at in cells:
            continue
        special = (rows[:, at + 2] << 64 - SPECIAL_BITS) >> 64 - SPECIAL_BITS
        if not special.any():
            continue
        nans = _lowest_digit(special)
        rest = (special - nans) // PLUS_UNIT
        plus = _lowest_digit(rest)
        minus = (rest - plus) // PLUS_UNIT
        counters[:, [PLUS, MINUS] if coefficient > 0 else [MINUS, PLUS]] += np.stack((plus, minus), axis=1)
        counters[:, NAN] += nans
    return sums, counters


def _settled(rows: Ints, at: int, error: int) -> Floats:
    """The sums in one word, with their rounding errors in another."""
    sums: Floats = rows[:, at].view(np.float64) + rows[:, error].view(np.float64)
    return sums


def _lowest_digit(numbers: Ints) -> Ints:
    """The lowest digit to the base of ``PLUS_UNIT``, between minus and plus half of it."""
    half = PLUS_UNIT // 2
    return (numbers + half) % PLUS_UNIT - half
