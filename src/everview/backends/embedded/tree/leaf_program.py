"""An atom's condition, key variables and lifts as instructions of a leaf.

What the instructions cannot say (functions of strings, say) is computed beforehand by the general evaluator, over all rows, if
it cannot fail; otherwise the atom has no leaf program. Programs are for rows without NULL: other batches take the general
evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import Vectorised, compile_vectorised
from everview.backends.embedded.expressions.words import word_writer
from everview.backends.embedded.tree.kernels.leaves import LEAF_WORDS, LeafOp
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.embedded.tree.without_null_tests import without_null_tests
from everview.backends.embedded.vectors import NARROW_PRECISION, Ints, Kind, kind_of
from everview.planner.block import Block
from everview.relational.bounds import exact_bound, scale_of
from everview.relational.expressions import (
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    SparkExpression,
    columns_of,
)
from everview.relational.failing import can_fail
from everview.relational.types import BOOLEAN, FLOAT64, Date, Decimal, Null, is_integral

RAW = 0
KEPT = 1


class NoLeafProgram(Exception):
    """The atom must be evaluated in the general way."""


@dataclass(frozen=True, slots=True)
class Input:
    """What a register is filled with before the program runs: a column, the weights (-1), or an evaluated expression."""

    register: int
    column: int
    evaluate: Vectorised | None = None


@dataclass(frozen=True, slots=True)
class LeafProgram:
    """Instructions over the registers of a trigger and ``registers`` of its own.

    ``buffers`` are the registers that need memory; the others are inputs. Without a condition the kept rows are the raw ones.
    """

    code: Ints
    inputs: tuple[Input, ...]
    buffers: tuple[int, ...]
    registers: int
    columns: tuple[int, ...]
    """The columns in which a NULL means that the program cannot run."""
    is_filtered: bool


def leaf_program(
    block: Block, number: int, keys: Sequence[str], leaf: LeafRegisters, first: int, dictionary: Dictionary
) -> LeafProgram:
    """The program that fills the leaf registers of a trigger, its own registers numbered from ``first``.

    Raises:
        NoLeafProgram: some expression cannot be compiled, nor be computed beforehand.
    """
    return _Compiler(dictionary, first).compile(block, number, keys, leaf)


@dataclass(slots=True)
class _Compiler:
    dictionary: Dictionary
    next_register: int
    code: list[int] = field(default_factory=list)
    inputs: dict[tuple[int, Expression | None], Input] = field(default_factory=dict)
    buffers: list[int] = field(default_factory=list)
    known: dict[tuple[int, Expression], int] = field(default_factory=dict)
    columns: set[int] = field(default_factory=set)
    renames: dict[int, int] = field(default_factory=dict)
    chosen: int | None = None
    """The register with the positions of the kept rows."""

    def compile(self, block: Block, number: int, keys: Sequence[str], leaf: LeafRegisters) -> LeafProgram:
        atom = block.atoms[number]
        if leaf.elements:
            raise NoLeafProgram
        condition = self.simplified(atom.condition)
        if condition != TRUE:
            mask = self.value(condition, RAW)
            self.chosen = self.emit(LeafOp.FILTER, RAW, mask, KEPT)
        by_name = dict(atom.variables)
        for name, registers in zip(keys, leaf.keys, strict=True):
            if kind_of(by_name[name].type) not in (Kind.INT, Kind.CODE):
                raise NoLeafProgram
            self.output(registers[0], self.value(self.simplified(by_name[name]), KEPT))
            for flag in registers[1:]:  # the word that says NULL
                self.output(flag, self.emit(LeafOp.FILL, KEPT))
        for lift, register in leaf.lifts:
            (value,) = atom.lifts[lift].expressions
            self.output(register, self.lifted(self.simplified(value)))
        self.output(leaf.weights, self.taken(self.input(-1)))
        buffers = tuple(dict.fromkeys(self.buffers))
        code = self.renamed()
        read = leaf.registers | set(code.reshape(-1, LEAF_WORDS)[:, 2:5].ravel().tolist())
        inputs = tuple(i for i in self.inputs.values() if i.register in read)
        buffers = tuple(self.renames.get(b, b) for b in buffers)
        columns = tuple(sorted(self.columns))
        return LeafProgram(code, inputs, buffers, self.next_register, columns, self.chosen is not None)

    def simplified(self, e: Expression) -> Expression:
        """What the expression is where no column is NULL; those that it tests are noted."""
        return without_null_tests(e, lambda tested: self.columns.update(columns_of(tested)))

    def new(self) -> int:
        self.next_register += 1
        return self.next_register - 1

    def emit(self, op: LeafOp, frame: int, a: int = 0, b: int = 0, c: int = 0, constant: int = 0) -> int:
        target = self.new()
        self.code.extend((int(op), target, a, b, c, constant, frame))
        self.buffers.append(target)
        return target

    def output(self, wanted: int, register: int) -> None:
        """Lets the trigger's register be the computed one."""
        for known in list(self.inputs.values()):
            if known.register == register:
                self.inputs[(-3 - wanted, None)] = Input(wanted, known.column, known.evaluate)
                return
        if register in self.renames:  # two of the trigger's registers hold the same values
            register = self.emit(LeafOp.ADD_CONSTANT, KEPT, register)
        self.renames[register] = wanted

    def renamed(self) -> Ints:
        """The code with the trigger's registers in place of those that were computed for them."""
        code = np.array(self.code, dtype=np.int64).reshape(-1, LEAF_WORDS)
        for line in code:
            last = 3 if line[0] == LeafOp.FILTER else 5  # a frame, not a register
            line[1:last] = [self.renames.get(int(r), int(r)) for r in line[1:last]]
        return np.ascontiguousarray(code.reshape(-1))

    def input(self, column: int, expression: Expression | None = None) -> int:
        key = (column, expression)
        if key not in self.inputs:
            evaluate = None if expression is None else compile_vectorised(expression, self.dictionary)
            self.inputs[key] = Input(self.new(), column, evaluate)
        return self.inputs[key].register

    def taken(self, register: int) -> int:
        """An input, at the kept rows."""
        if self.chosen is None:
            return register
        return self.emit(LeafOp.TAKE, KEPT, register, self.chosen)

    def value(self, expression: Expression, frame: int) -> int:
        key = (frame, expression)
        if key not in self.known:
            self.known[key] = self._compile(expression, frame)
        return self.known[key]

    def lifted(self, e: Expression) -> int:
        """The value of a lift, which is 0 where it is NULL."""
        if not isinstance(e, Case) or not (isinstance(e.otherwise, Literal) and e.otherwise.value is None):
            return self.value(e, KEPT)
        if any(_is_null(chosen) for _, chosen in e.branches):
            return self.value(e, KEPT)
        register = self.emit(LeafOp.FILL, KEPT)
        for condition, chosen in reversed(e.branches):
            mask, value = self.value(condition, KEPT), self.lifted(chosen)
            register = self.emit(LeafOp.SELECT, KEPT, mask, value, register)
        return register

    def _compile(self, e: Expression, frame: int) -> int:
        match e:
            case Column():
                if kind_of(e.type) is Kind.WIDE:
                    raise NoLeafProgram
                self.columns.add(e.index)
                register = self.input(e.index)
                return register if frame == RAW else self.taken(register)
            case Literal():
                return self.emit(LeafOp.FILL, frame, constant=self._constant(e))
            case Cast():
                compiled = self._cast(e, frame)
            case Case():
                compiled = self._case(e, frame)
            case Call():
                rule = _CALLS.get(e.function)
                compiled = None if rule is None else rule(self, e, frame)
            case SparkExpression():
                raise NoLeafProgram
        return self._beforehand(e, frame) if compiled is None else compiled

    def _beforehand(self, e: Expression, frame: int) -> int:
        if can_fail(e) or kind_of(e.type) is Kind.WIDE:
            raise NoLeafProgram
        register = self.input(-2, e)
        return register if frame == RAW else self.taken(register)

    def _constant(self, literal: Literal) -> int:
        if literal.value is None or kind_of(literal.type) is Kind.WIDE:
            raise NoLeafProgram
        word = word_writer(literal.type, self.dictionary)(literal.value)
        if isinstance(word, float):
            return int(np.float64(word + 0.0).view(np.int64))
        return int(word)

    def _cast(self, cast: Cast, frame: int) -> int | None:
        source = cast.child.type
        if cast.type == source or (is_integral(cast.type) and is_integral(source) and exact_bound(cast) is not None):
            return self.value(cast.child, frame)
        if cast.type == FLOAT64 and is_integral(source):
            return self.emit(LeafOp.TO_FLOAT, frame, self.value(cast.child, frame))
        if isinstance(cast.type, Decimal) and exact_bound(cast) is not None and source != BOOLEAN:
            return self._scaled(cast.child, scale_of(cast.type), frame)
        return None

    def _scaled(self, e: Expression, scale: int, frame: int) -> int:
        places = scale - scale_of(e.type)
        register = self.value(e, frame)
        return self.emit(LeafOp.MULTIPLY_CONSTANT, frame, register, constant=_power(places)) if places else register

    def _case(self, case: Case, frame: int) -> int | None:
        parts = [*(v for _, v in case.branches), case.otherwise]
        if any(_is_null(p) for p in parts):
            return None
        register = self.value(case.otherwise, frame)
        for condition, chosen in reversed(case.branches):
            register = self.emit(
                LeafOp.SELECT, frame, self.value(condition, frame), self.value(chosen, frame), register
            )
        return register


def _is_null(e: Expression) -> bool:
    return isinstance(e.type, Null) or (isinstance(e, Literal) and e.value is None)


def _power(places: int) -> int:
    if places > 18:
        raise NoLeafProgram
    return int(10**places)


def _is_plain(e: Expression) -> bool:
    return e.type in (BOOLEAN, Date()) or is_integral(e.type) or isinstance(e.type, Decimal)


def _comparable(call: Call) -> bool:
    return all(_is_plain(a) for a in call.args)


def _order(is_strict: bool, is_swapped: bool) -> Callable[[_Compiler, Call, int], int | None]:
    def rule(compiler: _Compiler, call: Call, frame: int) -> int | None:
        if not _comparable(call):
            return None
        left, right = reversed(call.args) if is_swapped else call.args
        scale = max(scale_of(left.type), scale_of(right.type))
        if isinstance(right, Literal) and right.value is not None:
            bound = _literal_word(compiler, right, scale)
            register = compiler._scaled(left, scale, frame)
            if is_strict:
                return compiler.emit(LeafOp.LESS_CONSTANT, frame, register, constant=bound)
            return _negated(compiler, frame, LeafOp.GREATER_CONSTANT, register, bound)
        if isinstance(left, Literal) and left.value is not None:
            bound = _literal_word(compiler, left, scale)
            register = compiler._scaled(right, scale, frame)
            if is_strict:
                return compiler.emit(LeafOp.GREATER_CONSTANT, frame, register, constant=bound)
            return _negated(compiler, frame, LeafOp.LESS_CONSTANT, register, bound)
        a, b = compiler._scaled(left, scale, frame), compiler._scaled(right, scale, frame)
        return compiler.emit(LeafOp.LESS if is_strict else LeafOp.LESS_EQUAL, frame, a, b)

    return rule


def _negated(compiler: _Compiler, frame: int, op: LeafOp, register: int, constant: int) -> int:
    return compiler.emit(LeafOp.NOT, frame, compiler.emit(op, frame, register, constant=constant))


def _literal_word(compiler: _Compiler, literal: Literal, scale: int) -> int:
    word = compiler._constant(literal) * _power(scale - scale_of(literal.type))
    if not -(1 << 63) < word < 1 << 63:
        raise NoLeafProgram
    return word


def _equal(compiler: _Compiler, call: Call, frame: int) -> int | None:
    left, right = call.args
    if isinstance(left, Literal):
        left, right = right, left
    kinds = {kind_of(left.type), kind_of(right.type)}
    if kinds == {Kind.CODE} and str(left.type) == "string" == str(right.type):
        if isinstance(right, Literal) and right.value is not None and isinstance(left, Column):
            code = compiler._constant(right)
            return compiler.emit(LeafOp.EQUAL_CONSTANT, frame, compiler.value(left, frame), constant=code)
        return None
    if not _comparable(call):
        return None
    scale = max(scale_of(left.type), scale_of(right.type))
    a = compiler._scaled(left, scale, frame)
    if isinstance(right, Literal) and right.value is not None:
        return compiler.emit(LeafOp.EQUAL_CONSTANT, frame, a, constant=_literal_word(compiler, right, scale))
    return compiler.emit(LeafOp.EQUAL, frame, a, compiler._scaled(right, scale, frame))


def _logic(op: LeafOp) -> Callable[[_Compiler, Call, int], int | None]:
    def rule(compiler: _Compiler, call: Call, frame: int) -> int | None:
        a, b = (compiler.value(x, frame) for x in call.args)
        return compiler.emit(op, frame, a, b)

    return rule


def _not(compiler: _Compiler, call: Call, frame: int) -> int | None:
    return compiler.emit(LeafOp.NOT, frame, compiler.value(call.args[0], frame))


def _is_exact_in_a_word(call: Call) -> bool:
    """Whether a result that fits 64 bits, which is checked, is neither rounded nor too large for its type."""
    if not isinstance(call.type, Decimal) or call.type.precision <= NARROW_PRECISION:
        return False
    if not all(isinstance(a.type, Decimal) for a in call.args):
        return False
    scales = [scale_of(a.type) for a in call.args]
    return call.type.scale == sum(scales) if call.function == "*" else call.type.scale >= max(scales)


def _arithmetic(op: LeafOp, for_floats: LeafOp) -> Callable[[_Compiler, Call, int], int | None]:
    def rule(compiler: _Compiler, call: Call, frame: int) -> int | None:
        left, right = call.args
        if call.type == FLOAT64:
            a, b = compiler.value(left, frame), compiler.value(right, frame)
            return compiler.emit(for_floats, frame, a, b)
        if exact_bound(call) is None and not _is_exact_in_a_word(call):
            return None
        scale = scale_of(call.type)
        if op is LeafOp.MULTIPLY:
            return compiler.emit(op, frame, compiler.value(left, frame), compiler.value(right, frame))
        a, b = compiler._scaled(left, scale, frame), compiler._scaled(right, scale, frame)
        return compiler.emit(op, frame, a, b)

    return rule


def _year_of(compiler: _Compiler, call: Call, frame: int) -> int | None:
    (day,) = call.args
    return compiler.emit(LeafOp.YEAR, frame, compiler.value(day, frame)) if isinstance(day.type, Date) else None


_CALLS: dict[str, Callable[[_Compiler, Call, int], int | None]] = {
    "<": _order(is_strict=True, is_swapped=False),
    ">": _order(is_strict=True, is_swapped=True),
    "<=": _order(is_strict=False, is_swapped=False),
    ">=": _order(is_strict=False, is_swapped=True),
    "=": _equal,
    "<=>": _equal,
    "and": _logic(LeafOp.AND),
    "or": _logic(LeafOp.OR),
    "not": _not,
    "+": _arithmetic(LeafOp.ADD, LeafOp.FLOAT_ADD),
    "-": _arithmetic(LeafOp.SUBTRACT, LeafOp.FLOAT_SUBTRACT),
    "*": _arithmetic(LeafOp.MULTIPLY, LeafOp.FLOAT_MULTIPLY),
    "year": _year_of,
}
