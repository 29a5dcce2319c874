"""From Spark's analyzed plan to a tree that Python can read, by Catalyst's own rules.

A chosen list of Catalyst's rewrites turns correlated subqueries into joins and aggregates and pushes filters down, while
set operations, DISTINCT and window functions stay visible (the full optimizer rewrites them beyond recognition). The
plan then crosses to Python as JSON in one call. What the JSON leaves out is asked of the JVM node by node, and only
where it occurs: evaluation modes (``try_…``), literals whose text is ambiguous, rows of inline tables, and the plans of
uncorrelated scalar subqueries, which go through the same rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import get_field
from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_functions import NONDETERMINISTIC
from everview.frontend.catalyst_json import CatalystNode, parse_tree, simple_name
from everview.frontend.catalyst_transform import rewrite_subqueries, run_transform
from everview.frontend.spark_rings import is_ring_function
from everview.frontend.stand_in import is_stand_in

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"

_SHORT_HANDS = (
    "EliminateSQLFunctionNode",  # a function written in SQL becomes its body
    "ReplaceUpdateFieldsExpression",  # Column.withField and dropFields make a struct anew
    "ReplaceExpressions",  # nullif, to_date and other short-hands become what they stand for
)
_PREPARE = (
    *_SHORT_HANDS,
    "RewriteAsOfJoin",  # a correlated subquery for the nearest row
    "PullOutGroupingExpressions",  # before anything rewrites a SELECT list that repeats its grouping expressions
    "ConstantFolding",
    "PullupCorrelatedPredicates",  # before NULL IN (…) becomes an EXISTS with a LIMIT, beyond which nothing is pulled up
    "NullPropagation",
    "OptimizeIn",
    "SimplifyConditionals",
    "SimplifyBinaryComparison",
    "BooleanSimplification",  # NOT (a IN (…) OR b), and (a IN (…)) = FALSE, show their NOT IN
)

_SETTLE = (
    "RewriteWithExpression",
    "ConstantFolding",
    "NullPropagation",
    "SimplifyConditionals",
    "BooleanSimplification",
)
"""What may turn the left side of IN into a constant, round after round: NULL IN (…) is NULL, any other IN is a mark."""
_ROUNDS = 10

_PLACE_SUBQUERIES = (
    "FoldablePropagation",
    "PushDownPredicates",
    "EliminateOuterJoin",
    "PushDownPredicates",  # once more: what stands in the ON of an inner join belongs to its sides
    "BooleanSimplification",
)
_INFER_IN_JOINS = ("InferFiltersFromConstraints", "PushDownPredicates")
"""Where IN is left in a join's condition, with an equality Spark also filters the other side by it."""
"""What Spark does with the ON of a join before its subqueries become joins, which decides whether IN can be NULL in it.

Spark's NOT IN knows NULL where it is a condition of WHERE. Elsewhere, as in the ON of an outer join, IN is a mark that is
never NULL, unless its left side is a constant. So the answer depends on where a predicate stands at that moment. What is in
WHERE already means the same wherever it is moved to, and stays.
"""

_REWRITE_SUBQUERIES = ("RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery", "RewritePredicateSubquery")

_SIMPLIFY = (
    "ReplaceExpressions",  # once more, for what came out of subqueries
    "PullOutGroupingExpressions",  # GROUP BY a + b groups by a column of a projection below
    "ConstantFolding",
    "BooleanSimplification",
    "PushDownPredicates",
    "ReorderJoin",  # FROM lists in any order become joins on conditions, not cross products
    "PushDownPredicates",
    "ColumnPruning",
    "CollapseProject",
)

_WITH_EVAL_MODE = frozenset(
    {"Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "Cast", "Sum", "Average"}
)
_EXACT_LITERALS = ("timestamp", "binary", "interval")
_SUBQUERIES = frozenset({"ScalarSubquery", "Exists", "ListQuery"})
_LIKE_MANY = frozenset({"LikeAny", "LikeAll", "NotLikeAny", "NotLikeAll"})
_LIKE = frozenset({"Like", "ILike"})
_COMMON = frozenset({"CommonExpressionDef", "CommonExpressionRef"})
_ASKED = _SUBQUERIES | _LIKE | _LIKE_MANY | _COMMON | {"InSet", "PythonUDAF", "PivotFirst"}
"""Expressions whose JSON always lacks something."""


def export_plan(spark: Any, analyzed: Any, text: str | None) -> CatalystNode:
    """The rewritten plan of a query; scalar subqueries carry theirs in ``fields["plan_tree"]``.

    Only a query whose text says ``try_`` somewhere can have operators in another mode than ANSI; of a DataFrame we have no
    text and ask every operator.

    Raises:
        UnsupportedQuery: the query calls a function whose value depends on the moment or on chance.
    """
    written = analyzed.toJSON()
    refuse_nondeterministic(written)
    refuse_empty_pivots(written)
    return Exporter(spark, text is None or "try_" in text.lower()).export(analyzed)


def refuse_nondeterministic(plan_json: str) -> None:
    """Looks for such functions before any rewrite: constant folding would replace the current time by a constant."""
    for java_class in _CLASS.findall(plan_json):
        name = NONDETERMINISTIC.get(simple_name(java_class))
        if name is not None:
            raise UnsupportedQuery(
                f"the function {name} is not deterministic, so a view over it has no well-defined content.",
                operator=name,
                hint="compute the value when the rows are made, and store it in a column.",
            )


def refuse_empty_pivots(plan_json: str) -> None:
    """Looks for a pivot of a DataFrame without values: Spark has asked the rows for them, and a table's stand-in has none.

    Raises:
        UnsupportedQuery: there is one.
    """
    if '"pivotColumnValues":[]' in plan_json:
        raise UnsupportedQuery(
            "a pivot without a list of values has the columns that there are rows for when the DataFrame is built: none.",
            operator="PIVOT",
            hint="list the values, as in pivot('status', ['open', 'paid']); instead of crosstab, pivot and count.",
        )


_CLASS = re.compile(r'"class":"([^"]*\.expressions\.[^"]*)"')


class Exporter:
    """Reads plans and expressions of Catalyst's; ``mentions_try`` if some operator may be in another mode than ANSI."""

    def __init__(self, spark: Any, mentions_try: bool) -> None:
        self._session = spark
        self._rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
        self._mentions_try = mentions_try

    def export(self, plan: Any) -> CatalystNode:
        """The rewritten plan."""
        plan = self._rewrite(plan)
        nodes: list[dict[str, Any]] = json.loads(plan.toJSON())
        self._annotate_plan(plan, nodes, 0)
        return parse_tree(nodes)

    def _decorrelate(self, plan: Any) -> Any:
        plan = self._without_limits_in_exists(self._with_inlined_tables(plan))
        if plan.subqueriesAll().size():
            # Before they are pulled up: a correlated count_if of nothing is 0 because it stands for a count.
            plan = rewrite_subqueries(self._session, plan, lambda inner: self._apply(_SHORT_HANDS, inner))
        plan = self._apply(_PREPARE, self._with_subqueries_for_asof(plan))
        if plan.subqueriesAll().size() and _memberships(plan):
            settled = self._settled(plan)
            plan = settled if _memberships(settled) < _memberships(plan) else plan
        subqueries = _sequence(plan.subqueriesAll())
        if any(s.subqueriesAll().size() for s in subqueries):
            # Catalyst's rewrites see one level: what a subquery nests must have become joins before it does itself.
            plan = rewrite_subqueries(self._session, plan, self._decorrelate)
        if subqueries and _joins_on_membership(plan.toJSON()):
            plan = self._apply(_PLACE_SUBQUERIES, self._without_names(plan))
            if _joins_on_membership(plan.toJSON()):
                plan = self._apply(_INFER_IN_JOINS, plan)
        if subqueries:
            plan = self._apply(_REWRITE_SUBQUERIES, plan)
        return plan

    def _settled(self, plan: Any) -> Any:
        """The plan after as many rounds of simplification as change it, ``nullif(0, 0)`` and the like written out before."""
        plan = run_transform(self._session, plan.transformAllExpressions, self._without_common_constants)
        for _ in range(_ROUNDS):
            simpler = self._apply(_SETTLE, plan)
            if simpler.fastEquals(plan):
                break
            plan = simpler
        return plan

    def _without_common_constants(self, expression: Any) -> Any:
        """An expression that names constants to use them twice, with these in their places."""
        if expression.getClass().getSimpleName() != "With":
            return expression
        constants = {d.id().id(): d.child() for d in _sequence(expression.defs())}
        if not all(c.foldable() for c in constants.values()):
            return expression

        def place(part: Any) -> Any:
            return constants[part.id().id()] if part.getClass().getSimpleName() == "CommonExpressionRef" else part

        return run_transform(self._session, expression.child().transform, place)

    def _with_inlined_tables(self, plan: Any) -> Any:
        """Common tables in the places that refer to them, as Spark has them, where it makes a difference.

        No predicate moves into a common table, nor out of one inside a subquery. Elsewhere they stay, and are kept once.
        """
        subqueries = _sequence(plan.subqueriesAll())
        is_inside = any("WithCTE" in s.toString() for s in subqueries)
        if not is_inside and not (subqueries and _joins_on_membership(plan.toJSON())):
            return plan
        java_class = self._session._jvm.java.lang.Class.forName(f"{_OPTIMIZER}.InlineCTE")
        (constructor,) = java_class.getConstructors()
        flags = constructor.getParameterCount()  # not the same in every version of Spark; all are off
        return self._rules.InlineCTE(*[False] * flags).apply(plan)

    def _without_names(self, plan: Any) -> Any:
        """The plan without the nodes that only name what is below; no rule moves a predicate through them."""
        with quiet_spark_log():
            return self._session._jvm.org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases.apply(plan)

    def _with_subqueries_for_asof(self, plan: Any) -> Any:
        """``ASOF JOIN`` in the form that ``RewriteAsOfJoin`` makes a subquery of: not tied to an operator of Spark's own."""
        if "AsOfJoin" not in plan.toJSON():
            return plan

        def visit(node: Any) -> Any:
            if node.nodeName() != "AsOfJoin":
                return node
            fields = [node.productElement(i) for i in range(node.productArity())]
            if isinstance(fields[-1], bool):  # it has been the last field since Spark knows the syntax
                fields[-1] = False
            return self._session._jvm.org.apache.spark.sql.catalyst.plans.logical.AsOfJoin(*fields)

        return run_transform(self._session, plan.transformDownWithSubqueries, visit)

    def _without_limits_in_exists(self, plan: Any) -> Any:
        """``EXISTS (… LIMIT n)`` without the LIMIT: whichever rows it keeps, there is one if there was one."""
        if all(s.nodeName() != "GlobalLimit" for s in _sequence(plan.subqueriesAll())):
            return plan

        def limited_rows(subquery: Any) -> Any | None:
            limit = subquery.limitExpr() if subquery.nodeName() == "GlobalLimit" else None
            is_positive = limit is not None and limit.foldable() and (limit.eval(None) or 0) > 0
            return subquery.child().child() if is_positive else None

        def strip(expression: Any) -> Any:
            rows = limited_rows(expression.plan()) if expression.getClass().getSimpleName() == "Exists" else None
            return expression if rows is None else expression.withNewPlan(rows)

        return run_transform(self._session, plan.transformAllExpressions, strip)

    def _rewrite(self, plan: Any) -> Any:
        return self._apply(_SIMPLIFY, self._decorrelate(plan))

    def _apply(self, rules: tuple[str, ...], plan: Any) -> Any:
        for rule in rules:
            try:
                with quiet_spark_log():
                    plan = getattr(self._rules, rule).apply(plan)
            except Exception as error:
                # Only constant folding evaluates anything: 1/0 is an error of the rows that reach it, not of the query.
                if rule != "ConstantFolding" or not (isinstance(error, Py4JError) or _is_evaluation_failure(error)):
                    raise
        return plan

    def _annotate_plan(self, plan: Any, nodes: list[dict[str, Any]], at: int) -> int:
        """Completes the JSON of the plan node at ``at`` and of those below; returns the position after them."""
        node = nodes[at]
        name = simple_name(node["class"])
        if name == "LocalRelation":
            node["rows"] = _local_rows(plan)
        elif name == "Expand":
            node["projections"] = [
                [json.loads(e.toJSON()) for e in _sequence(p)] for p in _sequence(plan.projections())
            ]
        trees = list(_expression_lists(node))
        if any(self._needs_jvm(e) for tree in trees for e in tree):
            expressions = _sequence(plan.expressions())
            assert len(expressions) == len(trees), "Catalyst's JSON does not list the node's expressions"
            for expression, tree in zip(expressions, trees, strict=True):
                self._annotate_expression(expression, tree, 0)
        following = at + 1
        for child in _sequence(plan.children()) if node["num-children"] and self._any_below(nodes, at) else ():
            following = self._annotate_plan(child, nodes, following)
        return following if following > at + 1 else _end_of(nodes, at)

    def _any_below(self, nodes: list[dict[str, Any]], at: int) -> bool:
        """Whether some node below needs the JVM, so that plans which do not are read without further calls."""
        return any(
            simple_name(node["class"]) in ("LocalRelation", "Expand")
            or any(self._needs_jvm(e) for tree in _expression_lists(node) for e in tree)
            for node in nodes[at + 1 : _end_of(nodes, at)]
        )

    def _needs_jvm(self, expression: dict[str, Any]) -> bool:
        name = simple_name(expression["class"])
        if name == "Literal":
            data_type = expression["dataType"]
            return not isinstance(data_type, str) or data_type in _EXACT_LITERALS
        if name == "AttributeReference":
            return bool(expression["name"] == "session_window")
        return name in _ASKED or (self._mentions_try and name in _WITH_EVAL_MODE)

    def _annotate_expression(self, expression: Any, tree: list[dict[str, Any]], at: int) -> int:
        fields = tree[at]
        self.complete(expression, fields)
        following = at + 1
        for child in _sequence(expression.children()) if fields["num-children"] else ():
            following = self._annotate_expression(child, tree, following)
        return following

    def complete(self, expression: Any, fields: dict[str, Any]) -> None:
        """Adds to the JSON of one expression, without those below, what it lacks."""
        if self._needs_jvm(fields):
            name = simple_name(fields["class"])
            if name in _SUBQUERIES:
                fields["plan_tree"] = self.export(expression.plan())
            elif name == "Literal":
                fields["exact"] = _literal_value(expression)
            elif name in _LIKE:
                fields["escapeChar"] = str(expression.escapeChar())
            elif name in _LIKE_MANY:
                fields["patterns"] = [None if p is None else p.toString() for p in _sequence(expression.patterns())]
            elif name == "InSet":
                data_type = expression.child().dataType()
                values = _sequence(expression.hset().toSeq())
                fields["values"] = [None if v is None else _catalyst_value(v, data_type) for v in values]
            elif name == "AttributeReference":
                fields["is_session"] = expression.metadata().contains("spark.sessionWindow")
            elif name == "PivotFirst":
                data_type = expression.pivotColumn().dataType()
                values = _sequence(expression.pivotColumnValues())
                fields["values"] = [None if v is None else _catalyst_value(v, data_type) for v in values]
                fields["pivotType"] = json.loads(data_type.json())
            elif name in _COMMON:
                fields["common_id"] = expression.id().id()
            elif name == "PythonUDAF":
                fields["is_ring"] = not is_stand_in(expression.name()) and is_ring_function(expression)
            else:
                owner = expression.evalContext() if "evalContext" in fields else expression
                fields["is_try"] = owner.evalMode().toString() != "ANSI"  # try_to_date makes a LEGACY cast


def _memberships(plan: Any) -> int:
    """How many IN (…) there are, but for those inside other subqueries."""
    return str(plan.toJSON()).count("InSubquery")


def _joins_on_membership(plan_json: str) -> bool:
    return "InSubquery" in plan_json and any(
        simple_name(node["class"]) == "Join" and any(simple_name(e["class"]) == "InSubquery" for e in tree)
        for node in json.loads(plan_json)
        for tree in _expression_lists(node)
    )


def _expression_lists(node: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The expression trees in a plan node's fields, in the order of Catalyst's ``expressions``."""
    for value in node.values():
        if not isinstance(value, list) or not value:
            continue
        if _is_expression(value[0]):
            yield value
            continue
        for inner in value:
            if isinstance(inner, list) and inner and _is_expression(inner[0]):
                yield inner
            elif isinstance(inner, list):
                yield from (e for e in inner if isinstance(e, list) and e and _is_expression(e[0]))


def _is_expression(value: object) -> bool:
    return isinstance(value, dict) and ".expressions." in value.get("class", "")


def _end_of(nodes: list[dict[str, Any]], at: int) -> int:
    following = at + 1
    for _ in range(nodes[at]["num-children"]):
        following = _end_of(nodes, following)
    return following


def _sequence(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _literal_value(literal: Any) -> Any:
    """The literal's value as the JVM holds it: micros for timestamps, bytes, nested lists for arrays and structs."""
    value = literal.value()
    return _catalyst_value(value, literal.dataType()) if value is not None else None


def _catalyst_value(value: Any, data_type: Any) -> Any:
    kind = data_type.typeName()
    if kind == "array":
        element = data_type.elementType()
        return tuple(
            None if value.isNullAt(i) else _catalyst_value(value.get(i, element), element)
            for i in range(value.numElements())
        )
    if kind == "map":
        parts = ((value.keyArray(), data_type.keyType()), (value.valueArray(), data_type.valueType()))
        keys, values = (
            [None if a.isNullAt(i) else _catalyst_value(a.get(i, t), t) for i in range(a.numElements())]
            for a, t in parts
        )
        return tuple(zip(keys, values, strict=True))
    if kind == "struct":
        types = [f.dataType() for f in data_type.fields()]
        return tuple(None if value.isNullAt(i) else _catalyst_value(value.get(i, t), t) for i, t in enumerate(types))
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if kind == "interval":
        return tuple(int(get_field(value, part)) for part in ("months", "days", "microseconds"))
    return value if isinstance(value, bool | int | float) else value.toString()


def _local_rows(relation: Any) -> list[tuple[Any, ...]]:
    types = [a.dataType() for a in _sequence(relation.output())]
    return [
        tuple(None if row.isNullAt(i) else _catalyst_value(row.get(i, t), t) for i, t in enumerate(types))
        for row in _sequence(relation.data())
    ]


def _is_evaluation_failure(error: Exception) -> bool:
    return type(error).__name__ in {
        "ArithmeticException",
        "ArrayIndexOutOfBoundsException",
        "DateTimeException",
        "IllegalArgumentException",
        "NumberFormatException",
        "SparkRuntimeException",
    }


@contextmanager
def quiet_spark_log() -> Iterator[None]:
    """PySpark logs every JVM exception as an error, also one that we expect and handle."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
