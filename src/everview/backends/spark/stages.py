"""How a trigger program is executed: the stages that a transaction runs, each a sum of terms below one other operator.

==============  ==============================================================================  ======================
stage           what it computes                                                                what it keeps
==============  ==============================================================================  ======================
``Linear``      a sum of terms, perhaps exploded                                                its output, if asked
``Grouped``     a ring payload a group: counts and sums; also DISTINCT, EXCEPT, INTERSECT, MAX  the payload
``Partitioned`` anything that is a function of the rows with one key: other aggregates,         its output
                windows, top-k (whose key is empty)
==============  ==============================================================================  ======================

A stage's output is a Z-set that later stages scan by the stage's name. It is stored only where a rule reads it again: by a
join with another change, or to take back the old rows of a touched partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.backends.spark.terms import Term
from everview.relational.expressions import Expression
from everview.relational.nodes import Field, Generate, Relation, Scan, Schema, TopK
from everview.relational.types import INT64
from everview.trigger.program import Program

WEIGHT = Field("_weight", INT64, False)
INPUT = "@input"
"""The name under which the operator of a ``Partitioned`` stage, and the GENERATE of a ``Linear`` one, scan their input."""


@dataclass(frozen=True)
class Linear:
    """A sum of terms; with ``generate`` (over a scan of ``INPUT``), each of its rows exploded."""

    name: str
    fields: Schema
    terms: tuple[Term, ...]
    generate: Generate | None = None

    def reads_content(self) -> frozenset[str]:
        """The relations of which a delta needs more than their change."""
        return _joined_names(self.terms)


@dataclass(frozen=True)
class Grouped:
    """Groups by the first ``key_count`` outputs of the terms; payload j is Σ weight · output (key_count + j).

    ``outputs`` and ``weight`` are over key ++ payload: the row of a group, and how often it is there. Payload 0 counts the
    rows. With ``is_global`` the only group is always there. With ``is_single`` two rows in a group are an error.
    """

    name: str
    fields: Schema
    terms: tuple[Term, ...]
    key_count: int
    state: Schema
    outputs: tuple[Expression, ...]
    weight: Expression
    is_global: bool = False
    is_single: bool = False

    @property
    def state_name(self) -> str:
        """The stored relation of the payloads."""
        return f"{self.name}$"

    @property
    def keys(self) -> Schema:
        """The key columns of the state."""
        return self.state[: self.key_count]

    @property
    def payload(self) -> Schema:
        """The payload columns of the state."""
        return self.state[self.key_count :]

    def reads_content(self) -> frozenset[str]:
        """The relations of which a delta needs more than their change."""
        return _joined_names(self.terms)


@dataclass(frozen=True)
class Partitioned:
    """``operator`` over a scan of ``INPUT``, a function of the rows that agree on ``partition`` (over the terms' outputs).

    ``output_key`` is the same key over the operator's output.
    """

    name: str
    fields: Schema
    terms: tuple[Term, ...]
    partition: tuple[Expression, ...]
    operator: Relation
    output_key: tuple[Expression, ...]

    @property
    def first(self) -> int:
        """How many rows from the first on the operator keeps, if that is all it does; else 0."""
        top = self.operator
        return (top.limit or 0) if isinstance(top, TopK) and not top.offset and isinstance(top.child, Scan) else 0

    def reads_content(self) -> frozenset[str]:
        """The relations of which a delta needs more than their change: all, and the old output."""
        return _names(self.terms) | {self.name}


Stage = Linear | Grouped | Partitioned


@dataclass(frozen=True)
class StageProgram:
    """The stages of a view, each after what it scans; the last one's output is the view. They execute ``program``."""

    stages: tuple[Stage, ...]
    program: Program

    @property
    def root(self) -> Stage:
        """The stage whose output is the view."""
        return self.stages[-1]

    def stored(self) -> frozenset[str]:
        """The relations whose content some rule reads; the view itself is stored in any case."""
        needed = frozenset[str]().union(*(s.reads_content() for s in self.stages))
        return needed | {self.root.name}

    def inputs(self) -> frozenset[str]:
        """The tables and views that the program reads."""
        own = {s.name for s in self.stages}
        return frozenset[str]().union(*(_names(s.terms) for s in self.stages)) - own


def scanned(terms: tuple[Term, ...]) -> Iterator[Scan]:
    """The stored relations of some terms."""
    return (leaf for t in terms for leaf in t.inputs if isinstance(leaf, Scan))


def _names(terms: tuple[Term, ...]) -> frozenset[str]:
    return frozenset(leaf.table for leaf in scanned(terms))


def _joined_names(terms: tuple[Term, ...]) -> frozenset[str]:
    return _names(tuple(t for t in terms if sum(isinstance(leaf, Scan) for leaf in t.inputs) > 1))
