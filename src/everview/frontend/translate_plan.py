"""Catalyst's logical plan to the relational algebra, node by node.

Each translated node comes with the Catalyst identity (``exprId``) of every output column, which is how the nodes above
refer to it. What has no translation raises ``UnsupportedQuery`` with Catalyst's name for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode, snake_case
from everview.frontend.group_scope import GroupScope, aggregate_expressions, aggregate_names, marks_as_max
from everview.frontend.pivots_and_sessions import (
    is_session,
    pivots_as_arrays,
    translate_generator,
    translate_range,
    with_sessions,
)
from everview.frontend.recursion import DEEPEST, recursive
from everview.frontend.translate_aggregate import translate_aggregate, translate_window_function
from everview.frontend.translate_expression import (
    Scope,
    expr_id,
    literal_value,
    translate_expression,
)
from everview.frontend.translate_limit import LIMITS, NO_ATTRIBUTE, LimitTranslator, is_row_number
from everview.frontend.translation import (
    Translation,
    existence,
    field_of,
    first_columns,
    has_one_row,
    mark_attribute,
    membership,
    scalar_subqueries,
    select_columns,
    sort_key_of,
    with_columns,
    with_type,
)
from everview.frontend.user_names import foreign_rows
from everview.relational.definitions.spark_aggregates import is_python_aggregate
from everview.relational.expressions import TRUE, Expression
from everview.relational.nodes import (
    RECURSION,
    Aggregate,
    Distinct,
    ExceptAll,
    Filter,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Schema,
    UnionAll,
    Values,
    Window,
)
from everview.relational.schema import columns, schema

_TRANSPARENT = frozenset(
    {
        "PipeOperator",
        "ResolvedHint",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "CTERelationDef",
    }
)
_JOIN_KINDS = {
    "Inner": JoinKind.INNER,
    "Cross": JoinKind.INNER,
    "LeftOuter": JoinKind.LEFT,
    "RightOuter": JoinKind.RIGHT,
    "FullOuter": JoinKind.FULL,
    "LeftSemi": JoinKind.SEMI,
    "LeftAnti": JoinKind.ANTI,
    "LeftSingle": JoinKind.SINGLE,
    "ExistenceJoin": JoinKind.MARK,
}
_NOTHING = Scope({})
_FRAME_METHODS = {
    "CoGroup": "cogroup",
    "CollectMetrics": "observe",
    "FlatMapCoGroupsInArrow": "cogroup(…).applyInArrow",
    "FlatMapCoGroupsInPandas": "cogroup(…).applyInPandas",
    "FlatMapGroupsInArrow": "groupBy(…).applyInArrow",
    "FlatMapGroupsInPandas": "groupBy(…).applyInPandas",
    "MapInArrow": "mapInArrow",
    "MapInPandas": "mapInPandas",
    "ScriptTransformation": "TRANSFORM",
    "Transpose": "transpose",
}
"""What users call operators that have no translation."""
_FOREIGN_LEAVES = frozenset({"LogicalRDD", "LogicalRelation", "DataSourceV2Relation", "InMemoryRelation"})


def translate_plan(root: CatalystNode, fields_of: Callable[[str], Schema | None], zone: str) -> Relation:
    """The algebra of a whole plan; ``fields_of`` gives the columns of a table or view of the database, None of others."""
    return _PlanTranslator(fields_of, zone).translate(root).relation


class _PlanTranslator:
    def __init__(self, fields_of: Callable[[str], Schema | None], zone: str) -> None:
        self._fields_of = fields_of
        self._zone = zone
        self._common_tables: dict[int, Translation] = {}
        self._table: str | None = None
        self._alias: str | None = None
        """What the query calls the rows below, for messages."""
        self._loops: dict[int, Schema] = {}
        """The columns of the recursive common tables at hand."""
        self._marks: set[int] = set()
        self._limits = LimitTranslator(self.translate, self._project, self._filtered)

    def translate(self, node: CatalystNode) -> Translation:
        if node.name in _TRANSPARENT:
            return self.translate(node.children[0])
        if node.name in LIMITS:
            return self._limits.limited(node)
        method = getattr(self, f"_translate_{snake_case(node.name)}", None)
        if method is not None:
            translated: Translation = method(node)
            return translated
        if node.name in _FOREIGN_LEAVES:
            raise foreign_rows(self._alias, node.name)
        if node.name.startswith("StreamingRelation"):
            raise UnsupportedQuery(
                "the query reads a stream, which has no content yet.",
                operator=node.name,
                hint="feed a table from it with db.stream(table, frame, checkpoint=…); views over the table follow.",
            )
        if node.name == "Sample":
            raise UnsupportedQuery(
                "TABLESAMPLE draws rows by chance, so a view over it has no well-defined content.",
                operator="TABLESAMPLE",
                hint="choose rows by a condition, such as hash(id) % 10 = 0.",
            )
        called = _FRAME_METHODS.get(node.name)
        raise UnsupportedQuery(
            f"the operator {node.name} is not supported." if called is None else f"{called} is not supported.",
            operator=called or node.name,
            hint="docs/supported-sql.md lists what is.",
        )

    # Leaves

    def _translate_view(self, node: CatalystNode) -> Translation:
        identifier = node.fields["desc"]["identifier"]
        is_in_session = identifier.get("database") is None  # else it is a view of a catalog, or one that sessions share
        outer, self._table = self._table, identifier["table"] if is_in_session else None
        try:
            return self.translate(node.children[0])
        finally:
            self._table = outer

    def _translate_subquery_alias(self, node: CatalystNode) -> Translation:
        outer, self._alias = self._alias, node.fields["identifier"]["name"]
        try:
            return self.translate(node.children[0])
        finally:
            self._alias = outer

    def _translate_logical_rdd(self, node: CatalystNode) -> Translation:
        fields = None if self._table is None else self._fields_of(self._table)
        if self._table is None or fields is None:
            raise foreign_rows(self._alias, node.name)
        return Translation(Scan(self._table, fields), tuple(expr_id(a) for a in node.trees("output")))

    def _translate_local_relation(self, node: CatalystNode) -> Translation:
        output = node.trees("output")
        fields = tuple(field_of(a) for a in output)
        rows = tuple(
            tuple(literal_value(v, f.type) for v, f in zip(row, fields, strict=True)) for row in node.fields["rows"]
        )
        return Translation(Values(rows, fields), tuple(expr_id(a) for a in output))

    def _translate_one_row_relation(self, node: CatalystNode) -> Translation:
        return Translation(Values(((),), ()), ())

    def _translate_range(self, node: CatalystNode) -> Translation:
        return translate_range(node)

    # Common table expressions: translated once, and the same relation wherever they are referred to

    def _translate_with_cte(self, node: CatalystNode) -> Translation:
        *definitions, body = _with_cte_parts(node)
        for definition in definitions:
            self._common_tables[int(definition.fields["id"])] = self.translate(definition)
        return self.translate(body)

    def _translate_cte_relation_ref(self, node: CatalystNode) -> Translation:
        known = self._common_tables[int(node.fields["cteId"])]
        return Translation(known.relation, tuple(expr_id(a) for a in node.trees("output")))

    def _translate_union_loop(self, node: CatalystNode) -> Translation:
        anchor = self.translate(node.children[0])
        self._loops[int(node.fields["id"])] = tuple(replace(f, nullable=True) for f in schema(anchor.relation))
        step = self.translate(node.children[1]).relation
        limit = node.fields.get("maxDepth")
        identities = tuple(int(i["id"]) for i in node.fields["outputAttrIds"])
        return Translation(recursive(anchor.relation, step, DEEPEST if limit is None else int(limit)), identities)

    def _translate_union_loop_ref(self, node: CatalystNode) -> Translation:
        fields = self._loops[int(node.fields["loopId"])]
        return Translation(Scan(RECURSION, fields), tuple(expr_id(a) for a in node.trees("output")))

    # One input

    def _translate_project(self, node: CatalystNode) -> Translation:
        return self._project(self.translate(node.children[0]), node)

    def _project(self, child: Translation, node: CatalystNode) -> Translation:
        listed = node.trees("projectList")
        child = self._with_subqueries(child, listed)
        scope = child.scope
        expressions = tuple(translate_expression(e, scope) for e in listed)
        names = tuple(e.fields["name"] for e in listed)
        return Translation(Project(child.relation, expressions, names), tuple(expr_id(e) for e in listed))

    def _translate_filter(self, node: CatalystNode) -> Translation:
        return self._filtered(self.translate(node.children[0]), node)

    def _filtered(self, child: Translation, node: CatalystNode) -> Translation:
        condition = node.tree("condition")
        assert condition is not None
        wide = self._with_subqueries(child, [condition])
        filtered = Filter(wide.relation, translate_expression(condition, wide.scope))
        return first_columns(Translation(filtered, wide.attributes), len(child.attributes))

    def _translate_distinct(self, node: CatalystNode) -> Translation:
        child = self.translate(node.children[0])
        return Translation(Distinct(child.relation), child.attributes)

    def _translate_deduplicate(self, node: CatalystNode) -> Translation:
        child = self.translate(node.children[0])
        if {expr_id(k) for k in node.trees("keys")} != set(child.attributes):
            raise UnsupportedQuery(
                "dropDuplicates on some of the columns keeps an arbitrary row of each group.",
                operator="Deduplicate",
                hint="group by those columns and say with min, max, min_by or max_by which values to keep.",
            )
        return Translation(Distinct(child.relation), child.attributes)

    def _translate_aggregate(self, node: CatalystNode) -> Translation:
        below = self.translate(node.children[0])
        listed = tuple(pivots_as_arrays(marks_as_max(e, self._marks)) for e in node.trees("aggregateExpressions"))
        grouping = node.trees("groupingExpressions")
        for session in filter(is_session, grouping):
            below = with_sessions(below, session, [g for g in grouping if g != session])
        inner = [c for e in listed for c in aggregate_expressions(e)]
        child = self._with_subqueries(below, [*grouping, *inner])
        scope = child.scope
        keys = tuple(dict.fromkeys(translate_expression(g, scope) for g in grouping))
        calls = tuple(dict.fromkeys(translate_aggregate(c, scope) for c in inner))
        names = aggregate_names(listed, grouping, keys, calls, scope)
        if not keys and any(is_python_aggregate(c) for c in calls):
            # Of no rows, Spark makes no call of a function of Python, and no row.
            keys, names = (TRUE,), ("everything", *names)
        grouped = Aggregate(child.relation, keys, calls, names)
        return self._project_aggregate(grouped, listed, scope)

    def _project_aggregate(self, grouped: Aggregate, listed: tuple[CatalystNode, ...], scope: Scope) -> Translation:
        """The SELECT list over the groups: keys and aggregate calls are columns, the rest is computed from them."""
        wide = self._with_subqueries(Translation(grouped, (-1,) * len(grouped.names)), listed)
        over = GroupScope(grouped, scope, wide.scope)
        expressions = tuple(over.translate(e) for e in listed)
        attributes = tuple(expr_id(e) for e in listed)
        if wide.relation is grouped and expressions == columns(grouped):
            names = tuple(e.fields["name"] for e in listed)
            return Translation(Aggregate(grouped.child, grouped.keys, grouped.aggregates, names), attributes)
        return Translation(Project(wide.relation, expressions, tuple(e.fields["name"] for e in listed)), attributes)

    def _translate_expand(self, node: CatalystNode) -> Translation:
        """GROUPING SETS: the union of one projection of the input for each set."""
        child = self.translate(node.children[0])
        fields = tuple(field_of(a) for a in node.trees("output"))
        names = tuple(f.name for f in fields)
        inputs = []
        for projection in node.fields["projections"]:
            trees = CatalystNode("Projection", {"list": projection}, ()).trees("list")
            expressions = tuple(translate_expression(t, child.scope) for t in trees)
            typed = (with_type(e, f) for e, f in zip(expressions, fields, strict=True))
            inputs.append(Project(child.relation, tuple(typed), names))
        return Translation(UnionAll(tuple(inputs)), tuple(expr_id(a) for a in node.trees("output")))

    def _translate_window(self, node: CatalystNode) -> Translation:
        # What refers to a column of the input adds nothing; Catalyst lists such when it pulls up a correlated predicate.
        listed = [e for e in node.trees("windowExpressions") if e.name != "AttributeReference"]
        partition_by, ordered_by = node.trees("partitionSpec"), node.trees("orderSpec")

        def partition_of(rows: Translation) -> tuple[Expression, ...]:
            return tuple(translate_expression(e, rows.scope) for e in partition_by)

        if not ordered_by and any(is_row_number(e) for e in listed):  # the LIMIT of a correlated subquery
            numbered = self._limits.numbered_input(node.children[0], partition_of)
            child, order = numbered.rows, numbered.order
        else:
            child = self.translate(node.children[0])
            order = tuple(sort_key_of(e, child.scope) for e in ordered_by)
        scope = child.scope
        # Catalyst makes a constant of what does not depend on the window's rows, such as a count of NULLs.
        moving = [e for e in listed if e.children[0].name == "WindowExpression"]
        functions = tuple(translate_window_function(e.children[0], scope, self._zone) for e in moving)
        window = Window(child.relation, partition_of(child), order, functions, tuple(e.fields["name"] for e in moving))
        found = Translation(window, child.attributes + tuple(expr_id(e) for e in moving)) if moving else child
        found = with_columns(found, [e for e in listed if e not in moving])
        return select_columns(found, [i for i, a in enumerate(found.attributes) if a != NO_ATTRIBUTE])

    def _translate_generate(self, node: CatalystNode) -> Translation:
        whole = translate_generator(self.translate(node.children[0]), node)
        unneeded = set(node.fields.get("unrequiredChildIndex") or ())
        return select_columns(whole, [i for i in range(len(whole.attributes)) if i not in unneeded])

    # Two inputs and more

    def _translate_join(self, node: CatalystNode) -> Translation:
        left, right = (self.translate(c) for c in node.children)
        condition = node.tree("condition")
        kind = _JOIN_KINDS[node.object_name("joinType")]
        if kind is JoinKind.MARK:
            self._marks.add(expr_id(mark_attribute(node)))
        width = len(left.attributes)
        if condition is None:
            return _joined(left, right, kind, None, node)
        left = self._with_subqueries(left, [condition])
        both = Scope.of(Join(left.relation, right.relation, JoinKind.INNER), left.attributes + right.attributes)
        joined = _joined(left, right, kind, translate_expression(condition, both), node)
        extra = range(width, len(left.attributes))
        return select_columns(joined, [i for i in range(len(joined.attributes)) if i not in extra])

    def _translate_union(self, node: CatalystNode) -> Translation:
        inputs = [self.translate(c) for c in node.children]
        return Translation(UnionAll(tuple(i.relation for i in inputs)), inputs[0].attributes)

    def _translate_except(self, node: CatalystNode) -> Translation:
        return self._set_operation(node, ExceptAll)

    def _translate_intersect(self, node: CatalystNode) -> Translation:
        return self._set_operation(node, IntersectAll)

    def _set_operation(self, node: CatalystNode, operator: type[ExceptAll] | type[IntersectAll]) -> Translation:
        left, right = (self.translate(c) for c in node.children)
        if node.fields["isAll"]:
            return Translation(operator(left.relation, right.relation), left.attributes)
        return Translation(operator(Distinct(left.relation), Distinct(right.relation)), left.attributes)

    # Uncorrelated scalar subqueries

    def _with_subqueries(self, child: Translation, expressions: Iterable[CatalystNode]) -> Translation:
        """The child joined with the one-row relation of every scalar subquery in the expressions.

        A subquery that always has one row is an inner join; else a left join that fails on a second row.
        """
        relation, attributes = child.relation, child.attributes
        for subquery in dict.fromkeys(s for e in expressions for s in scalar_subqueries(e)):
            if subquery.identity in attributes:
                continue
            inner = self.translate(subquery.plan).relation
            if subquery.is_exists:
                inner = existence(inner)
            elif subquery.values is not None:
                inner = membership(tuple(translate_expression(v, _NOTHING) for v in subquery.values), inner)
            kind = JoinKind.INNER if has_one_row(inner) else JoinKind.SINGLE
            relation = Join(relation, inner, kind)
            attributes = (*attributes, subquery.identity)
        return Translation(relation, attributes)


def _joined(
    left: Translation, right: Translation, kind: JoinKind, condition: Expression | None, node: CatalystNode
) -> Translation:
    mark = ""
    match kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            attributes = left.attributes
        case JoinKind.MARK:
            exists = mark_attribute(node)
            attributes, mark = (*left.attributes, expr_id(exists)), exists.fields["name"]
        case _:
            attributes = left.attributes + right.attributes
    if condition is None:
        return Translation(Join(left.relation, right.relation, kind, mark=mark), attributes)
    return Translation(Join(left.relation, right.relation, kind, condition, mark), attributes)


def _with_cte_parts(node: CatalystNode) -> tuple[CatalystNode, ...]:
    """The definitions of a ``WithCTE`` and then its body, whichever order Catalyst lists its children in."""
    definitions = tuple(c for c in node.children if c.name == "CTERelationDef")
    bodies = tuple(c for c in node.children if c.name != "CTERelationDef")
    return (*definitions, *bodies)
