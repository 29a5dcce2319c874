"""How a trigger program is executed: the stages that a transaction runs, each a sum of terms below one other operator.

==============  ==============================================================================  ======================
stage           what it computes                                                                what it keeps
==============  ==============================================================================  ======================
``Linear``      a sum of terms, perhaps exploded                                                its output, if asked
``TreeView``    a view of a view tree: a ring payload a key                                      the payload, if asked
``Grouped``     a ring payload a group: counts and sums; also DISTINCT, EXCEPT, INTERSECT, MAX  the payload
``Partitioned`` anything that is a function of the rows with one key: other aggregates,         its output
                windows, top-k (whose key is empty)
``Answered``    Spark's answer to a query that the algebra has no nodes for                     its output
==============  ==============================================================================  ======================

A stage's output is a Z-set that later stages scan by the stage's name. It is stored only where a rule reads it again: by a
join with another change, or to take back the old rows of a touched partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from everview.backends.spark.float_totals import SumPart
from everview.backends.spark.terms import Term
from everview.relational.expressions import Expression
from everview.relational.nodes import Field, Generate, Relation, Scan, Schema, SparkQuery, TopK
from everview.relational.types import INT64
from everview.trigger.plan_block import Lowered
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


@dataclass(frozen=True)
class BlockChoice:
    """How an aggregate over a join is maintained: by a view tree, or else by terms over what it joins, and why."""

    tree: Lowered | None
    reason: str


@dataclass(frozen=True)
class TreeView:
    """A view of a view tree; its output are keys and *partial* payloads, whose sum for each key is the view's content.

    Keys are the first ``key_count`` outputs of the terms; payload j is Σ weight · output (key_count + j). Who scans it
    sums. ``view`` is its name in the tree. ``uncut`` and ``parts`` are as in ``Grouped``.
    """

    name: str
    fields: Schema
    terms: tuple[Term, ...]
    key_count: int
    view: str
    uncut: Linear | None = None
    parts: tuple[SumPart, ...] = ()

    @property
    def state_name(self) -> str:
        """The stored relation of the payloads, which is its output."""
        return self.name

    @property
    def state(self) -> Schema:
        """The columns of that relation."""
        return self.fields


@dataclass(frozen=True)
class Grouped:
    """Groups by the first ``key_count`` outputs of the terms; payload j is Σ weight · output (key_count + j).

    ``outputs`` and ``weight`` are over key ++ payload: the row of a group, and how often it is there. Payload 0 counts the
    rows. With ``is_global`` the only group is always there. With ``is_single`` two rows in a group are an error. With ``anew``
    payload 1 counts rows with floats that do not fit the sums; the rows of groups that have any are those of this stage.
    ``uncut`` are rows of which ``float_totals`` makes the payload, by ``parts``: what ``terms`` say, in less time.
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
    anew: Partitioned | None = None
    uncut: Linear | None = None
    parts: tuple[SumPart, ...] = ()
    choice: BlockChoice | None = field(default=None, compare=False)

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
    choice: BlockChoice | None = field(default=None, compare=False)

    @property
    def first(self) -> int:
        """How many rows from the first on the operator keeps, if that is all it does; else 0."""
        top = self.operator
        return (top.limit or 0) if isinstance(top, TopK) and not top.offset and isinstance(top.child, Scan) else 0


@dataclass(frozen=True)
class Answered:
    """Spark's answer to ``query``, whose inputs are the terms, one each; always computed anew, with its whole view."""

    name: str
    fields: Schema
    terms: tuple[Term, ...]
    query: SparkQuery


Stage = Linear | TreeView | Grouped | Partitioned | Answered


@dataclass(frozen=True)
class StageProgram:
    """The stages of a view, each after what it scans; the last one's output is the view. They execute ``program``.

    ``choices`` says of the blocks among its collections how they came to be maintained as they are. ``fixed`` are tables that
    will never change again: nothing is kept for changes of theirs.
    """

    stages: tuple[Stage, ...]
    program: Program
    choices: Mapping[str, BlockChoice] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    @property
    def root(self) -> Stage:
        """The stage whose output is the view."""
        return self.stages[-1]

    def stored(self) -> frozenset[str]:
        """The relations whose content some rule reads; the view itself is stored in any case."""
        fixed = set(self.fixed)
        needed = {self.root.name}
        for stage in self.stages:
            if _names(stage.terms) <= fixed:
                fixed.add(stage.name)
            else:
                needed |= _content_read(stage, fixed)
        return frozenset(needed)

    def payload_keys(self, relation: str) -> int | None:
        """The number of key columns of a stored relation that holds payloads, whose other columns are summed; else None."""
        for stage in self.stages:
            is_state = isinstance(stage, Grouped) and stage.state_name == relation
            if is_state or (isinstance(stage, TreeView) and stage.name == relation):
                assert isinstance(stage, Grouped | TreeView)
                return stage.key_count
        return None

    def inputs(self) -> frozenset[str]:
        """The tables and views that the program reads."""
        own = {s.name for s in self.stages}
        return frozenset[str]().union(*(_names(s.terms) for s in self.stages)) - own


def view_of_relation(relation: str) -> str:
    """The key of the view that keeps a relation; of a table's relation, the table's.

    >>> view_of_relation("totals"), view_of_relation("totals#2"), view_of_relation("totals#2$")
    ('totals', 'totals', 'totals')
    """
    return relation.partition("#")[0].rstrip("$")


def scanned(terms: tuple[Term, ...]) -> Iterator[Scan]:
    """The stored relations of some terms."""
    return (leaf for t in terms for leaf in t.inputs if isinstance(leaf, Scan))


def _names(terms: tuple[Term, ...]) -> frozenset[str]:
    return frozenset(leaf.table for leaf in scanned(terms))


def _content_read(stage: Stage, fixed: Set[str]) -> set[str]:
    """The relations of which a delta of a stage needs more than their change.

    Those that are joined with something that changes; of a partitioned stage all, and its own old output.
    """
    if isinstance(stage, Partitioned | Answered):
        return {*_names(stage.terms), stage.name}
    found: set[str] = set()
    if isinstance(stage, Grouped) and stage.anew is not None:
        found |= _content_read(stage.anew, fixed)
    for term in stage.terms:
        names = [leaf.table for leaf in term.inputs if isinstance(leaf, Scan)]
        moving = [n for n in names if n not in fixed]
        found |= {n for n in names if len(moving) > (n not in fixed)}
    return found
