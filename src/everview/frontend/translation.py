"""A translated plan node, and the small steps that translations share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.spark_types import from_spark_json
from everview.frontend.translate_expression import SUBQUERIES, Scope, contains, expr_id, translate_expression
from everview.relational.clock import is_clock
from everview.relational.expressions import Call, Case, Expression, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    Values,
)
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT64, NULL

_ATTRIBUTES = frozenset({"AttributeReference"})


@dataclass(frozen=True, slots=True)
class Translation:
    """A relation and the Catalyst identity of each of its columns."""

    relation: Relation
    attributes: tuple[int, ...]

    @property
    def scope(self) -> Scope:
        """Where expressions over this relation find their attributes."""
        return Scope.of(self.relation, self.attributes)


@dataclass(frozen=True, slots=True)
class Subquery:
    """An uncorrelated scalar subquery, EXISTS, or IN of constant ``values``; two with one identity are the same."""

    identity: int
    plan: CatalystNode
    is_exists: bool = False
    values: tuple[CatalystNode, ...] | None = None

    def __hash__(self) -> int:
        return self.identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subquery) and other.identity == self.identity


def scalar_subqueries(node: CatalystNode) -> Iterable[Subquery]:
    """The scalar subqueries in an expression."""
    if node.name in SUBQUERIES:
        if node.fields.get("outerAttrs"):
            raise UnsupportedQuery(
                "Spark could not turn this correlated subquery into a join.",
                operator=node.name,
                hint="write it as a join with a grouped subquery.",
            )
        yield Subquery(expr_id(node), node.fields["plan_tree"], node.name == "Exists")
    if node.name == "InSubquery":
        *values, listed = node.children
        if any(contains(v, _ATTRIBUTES) for v in values) or listed.fields.get("outerAttrs"):
            raise UnsupportedQuery(
                "Spark could not turn this IN subquery into a join.",
                operator="InSubquery",
                hint="write it as a join with a grouped subquery.",
            )
        yield Subquery(expr_id(listed), listed.fields["plan_tree"], values=tuple(values))
    for child in node.children:
        yield from scalar_subqueries(child)


def has_one_row(relation: Relation) -> bool:
    """Whether the relation has exactly one row, whatever the tables hold."""
    match relation:
        case Aggregate():
            return not relation.keys
        case Scan():
            return is_clock(relation)
        case Values():
            return len(relation.rows) == 1
        case Project():
            return has_one_row(relation.child)
        case Join(kind=JoinKind.INNER):
            return not _restricts(relation) and has_one_row(relation.left) and has_one_row(relation.right)
        case Join(kind=JoinKind.LEFT | JoinKind.SINGLE):
            return has_one_row(relation.left) and has_one_row(relation.right)
        case _:
            return False


def _restricts(join: Join) -> bool:
    return not (isinstance(join.condition, Literal) and join.condition.value is True)


def select_columns(translation: Translation, kept: list[int]) -> Translation:
    """Only the columns at these positions."""
    if len(kept) == len(translation.attributes):
        return translation
    fields, every = schema(translation.relation), columns(translation.relation)
    narrow = Project(translation.relation, tuple(every[i] for i in kept), tuple(fields[i].name for i in kept))
    return Translation(narrow, tuple(translation.attributes[i] for i in kept))


def with_columns(translation: Translation, listed: list[CatalystNode]) -> Translation:
    """The columns that there are, and further ones: expressions over them under names of their own."""
    if not listed:
        return translation
    scope, names = translation.scope, tuple(f.name for f in schema(translation.relation))
    computed = (*columns(translation.relation), *(translate_expression(e, scope) for e in listed))
    wide = Project(translation.relation, computed, (*names, *(e.fields["name"] for e in listed)))
    return Translation(wide, translation.attributes + tuple(expr_id(e) for e in listed))


def first_columns(translation: Translation, count: int) -> Translation:
    """Only the first ``count`` columns."""
    return select_columns(translation, list(range(count)))


def mark_attribute(join: CatalystNode) -> CatalystNode:
    """The boolean that an ``ExistenceJoin`` adds."""
    exists = CatalystNode("", join.fields["joinType"], ()).tree("exists")
    assert exists is not None, "an existence join names its mark"
    return exists


def field_of(attribute: CatalystNode) -> Field:
    """The column that an attribute declares."""
    fields = attribute.fields
    return Field(fields["name"], from_spark_json(fields["dataType"]), bool(fields["nullable"]))


def with_type(expression: Expression, target: Field) -> Expression:
    """The expression, or a typed NULL for a bare one."""
    return Literal(None, target.type) if expression.type == NULL else expression


def sort_key_of(node: CatalystNode, scope: Scope) -> SortKey:
    """A term of ORDER BY."""
    return SortKey(
        translate_expression(node.children[0], scope),
        node.object_name("direction") == "Descending",
        node.object_name("nullOrdering") == "NullsFirst",
    )


def existence(relation: Relation) -> Relation:
    """One row that says whether the relation has any."""
    counted = Aggregate(relation, (), (AggregateCall("count", (), INT64),), ("count",))
    return Project(counted, (Call(">", (*columns(counted), Literal(0, INT64)), BOOLEAN),), ("exists",))


def membership(values: tuple[Expression, ...], relation: Relation) -> Relation:
    """One row that says whether the constants are a row of the relation: NULL where only NULLs keep that from being sure."""
    equal = reduce(
        lambda a, b: Call("and", (a, b), BOOLEAN),
        (Call("=", (v, c), BOOLEAN) for v, c in zip(values, columns(relation), strict=True)),
    )
    compared = Project(relation, (equal,), ("equal",))
    (found,) = columns(compared)
    unknown = Call("isnull", (found,), BOOLEAN)
    counts = tuple(AggregateCall("count", (), INT64, filter=condition) for condition in (found, unknown))
    counted = Aggregate(compared, (), counts, ("equal", "unknown"))
    has_equal, has_unknown = (Call(">", (c, Literal(0, INT64)), BOOLEAN) for c in columns(counted))
    answers = ((has_equal, Literal(True, BOOLEAN)), (has_unknown, Literal(None, BOOLEAN)))
    return Project(counted, (Case(answers, Literal(False, BOOLEAN)),), ("in",))
