"""The relational algebra over bags: the narrow waist between Spark's front end and our engines.

A relation is a bag of rows. Every node says what bag it denotes; rows are positional and ``names`` are only for people:
they do not take part in equality, so that two views that call the same thing differently share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from everview.relational.expressions import TRUE, Expression
from everview.relational.node import Node, node
from everview.relational.types import BOOLEAN, DataType, Row


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a schema."""

    name: str
    type: DataType
    nullable: bool = True


Schema = tuple[Field, ...]


class _Relation(Node):
    """Base of the closed union ``Relation``."""

    __slots__ = ()


@node
class Scan(_Relation):
    """The current content of a table or view of the database."""

    table: str
    fields: Schema


@node
class Values(_Relation):
    """A constant bag."""

    rows: tuple[Row, ...]
    fields: Schema

    def _key(self) -> tuple[object, ...]:
        return (repr(self.rows), tuple((f.type, f.nullable) for f in self.fields))


@node
class Filter(_Relation):
    """The rows on which ``condition`` is true (neither false nor NULL)."""

    child: Relation
    condition: Expression

    def _check(self) -> None:
        assert self.condition.type == BOOLEAN, self.condition


@node
class Project(_Relation):
    """One row of expression values for every row of the child; duplicates are kept."""

    child: Relation
    expressions: tuple[Expression, ...]
    names: tuple[str, ...] = field(compare=False)

    def _check(self) -> None:
        assert len(self.expressions) == len(self.names), self.names


class JoinKind(Enum):
    """What becomes of pairs, and of rows without a partner.

    Output columns are left ++ right, except SEMI and ANTI (left only) and MARK (left ++ one boolean).
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    """Every left row once, with whether it has a partner (EXISTS as a value)."""
    SINGLE = "single"
    """LEFT, but a second partner is an error (a scalar subquery that returns two rows)."""


@node
class Join(_Relation):
    """Pairs of rows on which ``condition`` (over left ++ right columns) is true, and what ``kind`` adds to them."""

    left: Relation
    right: Relation
    kind: JoinKind
    condition: Expression = TRUE
    mark: str = field(default="exists", compare=False)

    def _check(self) -> None:
        assert self.condition.type == BOOLEAN, self.condition


@node
class AggregateCall(Node):
    """``function(DISTINCT args) FILTER (WHERE filter)``; NULL arguments are skipped as Spark does.

    ``function`` is one of ``definitions/aggregates.py`` or, with ``is_ring``, the name of a ring of ``algebra/registry.py``:
    Σ_rows Π_i lift_i(args_i) in that ring.
    """

    function: str
    args: tuple[Expression, ...]
    type: DataType
    distinct: bool = False
    filter: Expression | None = None
    is_ring: bool = False


@node
class Aggregate(_Relation):
    """One row a group: key values, then aggregates. Without keys: exactly one row, also for an empty child."""

    child: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...] = field(compare=False)

    def _check(self) -> None:
        assert len(self.keys) + len(self.aggregates) == len(self.names), self.names


@node
class Distinct(_Relation):
    """Each row once."""

    child: Relation


@node
class UnionAll(_Relation):
    """The sum of the bags. Column names are those of the first input."""

    inputs: tuple[Relation, ...]

    def _check(self) -> None:
        assert self.inputs


@node
class ExceptAll(_Relation):
    """Monus: each row max(0, left count - right count) times."""

    left: Relation
    right: Relation


@node
class IntersectAll(_Relation):
    """Each row min(left count, right count) times."""

    left: Relation
    right: Relation


@node
class UnionMax(_Relation):
    """Each row max(left count, right count) times."""

    left: Relation
    right: Relation


@node
class SortKey(Node):
    """One term of an ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = True


class FrameUnit(Enum):
    """Whether frame offsets count rows or differences of the order value."""

    ROWS = "rows"
    RANGE = "range"


@node
class Frame(Node):
    """The rows a window aggregate sees: from ``lower`` to ``upper``, relative to the current row.

    None is unbounded, the literal 0 the current row (with RANGE: its peers), other literals are offsets, negative ones
    preceding. ``zone`` is the session time zone, in which a day of a RANGE over timestamps is a day.
    """

    unit: FrameUnit
    lower: Expression | None
    upper: Expression | None
    zone: str | None = None


@node
class WindowCall(Node):
    """One window function over the partition and order of its ``Window``."""

    function: str
    args: tuple[Expression, ...]
    type: DataType
    frame: Frame
    ignore_nulls: bool = False
    filter: Expression | None = None


@node
class Window(_Relation):
    """Every row of the child with the values of the window functions appended.

    Ties in ``order`` are broken by the child's whole row, so that the answer is a function of the child's bag.
    """

    child: Relation
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    functions: tuple[WindowCall, ...]
    names: tuple[str, ...] = field(compare=False)

    def _check(self) -> None:
        assert len(self.functions) == len(self.names), self.names


@node
class TopK(_Relation):
    """The rows from ``offset`` on, at most ``limit`` of them, in the given order; ties are broken by the whole row."""

    child: Relation
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0


@node
class Generate(_Relation):
    """Every row of the child once for each element of an array, the element appended (after its position, if asked).

    With ``outer``, a row whose array is empty or NULL appears once, with NULLs.
    """

    child: Relation
    array: Expression
    outer: bool
    with_position: bool
    names: tuple[str, ...] = field(compare=False)


@node
class Recursive(_Relation):
    """R₀ = anchor, Rᵢ₊₁ = step(Rᵢ, inputs), and all of them together, until one is empty: WITH RECURSIVE … UNION ALL.

    ``step`` is a plan over scans of ``RECURSION``, which stands for Rᵢ, and of ``input_name(k)``, for the k-th of ``inputs``.
    It is computed at most ``limit`` times; where there are rows left then, that is an error, as in Spark.
    """

    anchor: Relation
    inputs: tuple[Relation, ...]
    step: Relation
    limit: int


@node
class SparkQuery(_Relation):
    """Spark's answer to a query that the algebra has no nodes for, over relations that the query knows by ``names``.

    ``text`` is the query, in the time zone and with the settings of the session that gave it its meaning; None for a DataFrame.
    The process that made the view has the resolved query under the name ``frame``.
    """

    inputs: tuple[Relation, ...]
    names: tuple[str, ...]
    fields: Schema
    text: str | None
    frame: str
    zone: str
    settings: tuple[tuple[str, str], ...]

    def _check(self) -> None:
        assert len(self.inputs) == len(self.names), self.names


RECURSION = "__recursion"


def input_name(number: int) -> str:
    """What the step of a ``Recursive`` calls its inputs."""
    return f"__input{number}"


Relation = (
    Scan
    | Values
    | Filter
    | Project
    | Join
    | Aggregate
    | Distinct
    | UnionAll
    | ExceptAll
    | IntersectAll
    | UnionMax
    | Window
    | TopK
    | Generate
    | Recursive
    | SparkQuery
)
