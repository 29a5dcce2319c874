"""What the compiler makes of a sub-expression, and what the modules of kernels offer it.

A *kernel* computes cells from the cells of the arguments. Strict kernels see the values alone: NULLs, and 0 beneath them,
are added to their result, so the result's values must be a new array. The others (``sees_nulls``) get the number of rows
first, and return cells with their NULLs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import UNBOUNDED, Cells
from everview.backends.embedded.expressions.frame import RowFrame
from everview.relational.expressions import Call, Literal
from everview.relational.types import DataType

Run = Callable[[RowFrame], Cells]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled sub-expression."""

    run: Run
    type: DataType
    can_fail: bool = False
    bound: int = UNBOUNDED
    """A bound on the magnitude of its values, for all batches."""
    literal: Literal | None = None

    def retyped(self, data_type: DataType) -> Compiled:
        """The same cells as values of another type."""
        return replace(self, type=data_type)

    @property
    def is_null_literal(self) -> bool:
        """Whether the value is NULL for every row."""
        return self.literal is not None and self.literal.value is None


@dataclass(frozen=True, slots=True)
class Native:
    """A kernel and what is known about its results."""

    kernel: Callable[..., Cells]
    can_fail: bool = False
    """Whether it may have suspects that have no value."""
    bound: int = UNBOUNDED
    sees_nulls: bool = False


Builder = Callable[[Call, tuple[Compiled, ...], Dictionary], Native | Compiled | None]
"""From a call and its compiled arguments to its kernel, to one of the arguments, or to None: only the definition has it."""
