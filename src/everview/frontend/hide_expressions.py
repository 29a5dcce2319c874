"""Replaces what only Spark can compute by stand-ins, before a plan is rewritten and translated.

A stand-in is a Python function of Catalyst's that is never run: no rule looks into it, it is equal to another with the same
name and arguments, and its name says all that the translation needs. Law: a stand-in means the expression that its text says
over its arguments, the columns that the expression reads. All of what lies below is computed with it, so that what Spark
would not evaluate is not evaluated. Aggregates, window functions, subqueries and grouping keys stay outside, as arguments; so
do functions of Python, which Spark evaluates before all else, and the arguments of these.

An aggregate that only Spark has gets a stand-in too, an aggregate of Python over the arguments that are no constants: the
others are in its text.
"""

from __future__ import annotations

import json
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode, parse_tree
from everview.frontend.catalyst_plan import Exporter, quiet_spark_log
from everview.frontend.catalyst_transform import run_transform
from everview.frontend.spark_rings import is_ring_function
from everview.frontend.spark_text import (
    TextWriter,
    attribute,
    is_a,
    is_replaceable,
    parameters_of,
    scala_sequence,
    sequence,
)
from everview.frontend.spark_types import from_spark_json, to_spark_json
from everview.frontend.stand_in import is_stand_in, stand_in_name
from everview.frontend.translate_aggregate import has_translation
from everview.frontend.translate_expression import Scope, translate_expression
from everview.frontend.translated import SessionSettings
from everview.frontend.user_functions import called_function
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Column
from everview.relational.spark_code import JSON_TUPLE

_SCALAR_PYTHON: Final = 100
"""PySpark's number for a function of values."""
_GROUPED_PYTHON: Final = 202
"""PySpark's number for a function of a group's columns."""

# fmt: off
_BOUNDARIES: Final = frozenset((
    "AttributeReference", "OuterReference", "AggregateExpression", "WindowExpression", "ScalarSubquery", "Exists", "InSubquery",
    "ListQuery", "LateralSubquery", "Grouping", "GroupingID", "PythonUDAF", "GetColumnByOrdinal", "PythonUDF",
))
"""What is an argument of a stand-in, wherever it stands below it."""
_STRUCTURE: Final = frozenset((
    "Alias", "AttributeReference", "OuterReference", "Literal", "AggregateExpression", "WindowExpression",
    "WindowSpecDefinition", "SpecifiedWindowFrame", "UnspecifiedFrame$", "UnboundedPreceding$", "UnboundedFollowing$",
    "CurrentRow$", "SortOrder",
    "ScalarSubquery", "Exists", "InSubquery", "ListQuery", "LateralSubquery", "Grouping", "GroupingID", "PythonUDAF",
    "BaseGroupingSets", "Cube", "Rollup", "GroupingSets", "GeneratorOuter", "NamedLambdaVariable", "LambdaFunction", "With",
    "CommonExpressionDef", "CommonExpressionRef",
))
"""Classes that are no functions of values: what they contain is looked at, they themselves are never replaced."""
# fmt: on


_OPERATORS: Final = {
    "equalto": "=",
    "equalnullsafe": "<=>",
    "lessthan": "<",
    "lessthanorequal": "<=",
    "greaterthan": ">",
    "greaterthanorequal": ">=",
}
"""Comparisons by what Catalyst calls them."""


def hide_expressions(session: Any, plan: Any, settings: SessionSettings) -> tuple[Any, bool]:
    """The analyzed plan with stand-ins, and whether there is any."""
    hider = _Hider(session, settings)
    rules = session._jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceUpdateFieldsExpression.apply(rules.EliminateSQLFunctionNode.apply(plan))
    with quiet_spark_log():
        plan = run_transform(session, plan.transformDownWithSubqueries, hider.visit_plan)
    return plan, hider.has_hidden


class _Hider:
    def __init__(self, session: Any, settings: SessionSettings) -> None:
        self._session = session
        self._settings = settings
        self._expressions = session._jvm.org.apache.spark.sql.catalyst.expressions
        self._exporter = Exporter(session, mentions_try=True)
        self.has_hidden = False

    def visit_plan(self, plan: Any) -> Any:
        name = plan.nodeName()
        if name in ("LocalRelation", "View"):
            return plan
        if name == "Generate":
            plan = self._over_arrays(plan)
        keys = sequence(plan.groupingExpressions()) if name == "Aggregate" else []

        def visit(expression: Any) -> Any:
            if expression.getClass().getSimpleName() == "AggregateExpression":
                return self._hidden_aggregate(expression)
            return self._hidden(expression, keys) if self._is_foreign(expression) else expression

        return run_transform(self._session, plan.transformExpressionsDown, visit)

    def _over_arrays(self, plan: Any) -> Any:
        """A generator as one over an array: EXPLODE of a map takes its entries, JSON_TUPLE is a struct that Spark computes."""

        def visit(expression: Any) -> Any:
            name = expression.getClass().getSimpleName()
            if name == "JsonTuple":
                struct = self._json_tuple(expression)
                return self._expressions.Inline(self._expressions.CreateArray(self._listed([struct]), False))
            if name not in ("Explode", "PosExplode"):
                return expression
            if expression.child().dataType().getClass().getSimpleName() != "MapType":
                return expression
            entries = self._expressions.MapEntries(expression.child())
            return self._expressions.Inline(entries) if name == "Explode" else self._expressions.PosExplode(entries)

        return run_transform(self._session, plan.transformExpressionsDown, visit)

    def _json_tuple(self, generator: Any) -> Any:
        """The one row that JSON_TUPLE makes, as a stand-in whose text only ``evaluate_in_spark`` can run."""
        text: list[str | int] = []
        inputs: list[Any] = []
        for child in sequence(generator.children()):
            if child.foldable():
                text += [", ", child.sql()]
            else:
                text += [", ", len(inputs)]
                inputs.append(child)
        return self._stand_in(
            generator, (f"{JSON_TUPLE}(", *text[1:], ")"), inputs, JSON_TUPLE, generator.elementSchema()
        )

    def _is_foreign(self, expression: Any) -> bool:
        """Whether the node itself, whatever stands below it, is a function that only Spark has."""
        name = expression.getClass().getSimpleName()
        if name in _STRUCTURE or expression.foldable():
            return False
        if not expression.deterministic():
            raise refused_as_nondeterministic(expression)
        if self._is_no_function(expression):
            return False
        if name == "PythonUDF":
            return not is_stand_in(expression.name())
        if is_replaceable(self._session, expression):
            return self._has_foreign(expression.replacement()) and self._reads_its_parameters(expression)
        return not self._is_known(name, expression)

    def _reads_its_parameters(self, expression: Any) -> bool:
        """Whether a short-hand's parameters are its own: Catalyst renames columns of a self-join in what it stands for only."""
        given = parameters_of(self._session, expression)
        return all(p.references().subsetOf(expression.references()) for p in given)

    def _has_foreign(self, expression: Any) -> bool:
        if expression.getClass().getSimpleName() in _BOUNDARIES:
            return False
        return self._is_foreign(expression) or any(self._has_foreign(c) for c in sequence(expression.children()))

    def _is_no_function(self, expression: Any) -> bool:
        """Whether it is an aggregate's, window's or generator's function, which only these can call."""
        kinds = ("aggregate.AggregateFunction", "WindowFunction", "Generator")
        return any(is_a(self._session, expression, kind) for kind in kinds)

    def _is_known(self, name: str, expression: Any) -> bool:
        """Whether the node translates, over columns in place of its arguments."""
        fields = json.loads(expression.toJSON())[0]
        scope: dict[int, Column] = {}
        children = []
        try:
            for i, child in enumerate(sequence(expression.children())):
                if child.getClass().getSimpleName() == "Literal":
                    (literal,) = json.loads(child.toJSON())
                    self._exporter.complete(child, literal)
                    children.append(parse_tree([literal]))
                    continue
                written = json.loads(child.dataType().json())
                scope[i] = Column(i, from_spark_json(written))
                stub = {"exprId": {"id": i}, "dataType": written, "name": f"argument {i}"}
                children.append(CatalystNode("AttributeReference", stub, ()))
            self._exporter.complete(expression, fields)
            compile_expression(translate_expression(CatalystNode(name, fields, tuple(children)), Scope(scope)))
        except UnsupportedQuery:
            return False
        return True

    def _hidden(self, expression: Any, keys: list[Any]) -> Any:
        if expression.getClass().getSimpleName() == "PythonUDF":
            text, inputs = called_function(self._session, expression)
            return self._stand_in(expression, text, inputs, expression.name())
        is_key = any(expression.semanticEquals(k) for k in keys)

        def is_input(part: Any) -> bool:
            if part.getClass().getSimpleName() in _BOUNDARIES:
                return True
            return not is_key and any(part.semanticEquals(k) for k in keys)

        writer = TextWriter(self._session, is_input)
        text = writer.write(expression)
        title = function_name(expression)
        self._check(expression, text, writer.inputs, title)
        return self._stand_in(expression, text, writer.inputs, title)

    def _hidden_aggregate(self, expression: Any) -> Any:
        """The aggregate expression itself, or with a stand-in for its function where only Spark has that."""
        function = expression.aggregateFunction()
        name = function.getClass().getSimpleName()
        if name == "PythonUDAF":
            if is_stand_in(function.name()) or is_ring_function(function):
                return expression
            text, inputs = called_function(self._session, function)
            stand_in = self._stand_in(function, text, inputs, function.name())
        elif is_replaceable(self._session, function) or has_translation(name, self._fields_of(name, function)):
            return expression
        else:
            title = function_name(function)
            refuse_chance(title)
            inputs = [c for c in sequence(function.children()) if not c.foldable()] or [function.children().apply(0)]
            writer = TextWriter(self._session, lambda part: any(part.semanticEquals(i) for i in inputs))
            text = writer.write(function)
            self._check(function.toAggregateExpression(), text, writer.inputs, title)
            stand_in = self._stand_in(function, text, writer.inputs, title)
        return expression.withNewChildren(self._listed([stand_in, *sequence(expression.children())[1:]]))

    def _fields_of(self, name: str, function: Any) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(function.toJSON())[0]
        if name == "Percentile":
            fields["has_frequency"] = function.frequencyExpression().sql() != "1L"
        return fields

    def _stand_in(
        self, expression: Any, text: tuple[str | int, ...], inputs: list[Any], title: str, made: Any | None = None
    ) -> Any:
        made = expression.dataType() if made is None else made
        self.has_hidden = True
        text = tuple(p for part in text for p in (_retyped(part, inputs) if isinstance(part, int) else (part,)))
        is_aggregate = is_a(self._session, expression, "aggregate.AggregateFunction")
        kind, number = (
            (self._expressions.PythonUDAF, _GROUPED_PYTHON)
            if is_aggregate
            else (self._expressions.PythonUDF, _SCALAR_PYTHON)
        )
        name, new_id = stand_in_name(title, text, self._settings), self._expressions.NamedExpression.newExprId()
        if is_aggregate:
            return kind(name, None, made, self._listed(inputs), True, number, new_id)
        return kind(name, None, made, self._listed(inputs), number, True, new_id)

    def _check(self, expression: Any, text: tuple[str | int, ...], inputs: list[Any], title: str) -> None:
        """Refuses an expression whose text does not mean it."""
        # A variable of a lambda is nullable by what it runs over, so the columns are what their parts are.
        columns = [
            attribute(self._session, f"everview_{i}", part.dataType(), nullable=part.nullable())
            for i, part in enumerate(inputs)
        ]

        def with_columns(part: Any) -> Any:
            return next((c for c, i in zip(columns, inputs, strict=True) if i.semanticEquals(part)), part)

        wanted = self._simplified(run_transform(self._session, expression.transformDown, with_columns), columns)
        written = "".join(f"everview_{p}" if isinstance(p, int) else p for p in text)
        try:
            parsed = self._session._jsparkSession.sessionState().sqlParser().parseExpression(written)
            is_same = self._simplified(parsed, columns).semanticEquals(wanted)
        except (PySparkException, Py4JJavaError):
            is_same = False
        if not is_same:
            raise UnsupportedQuery(
                f"the function {title} is called here in a way that Spark cannot write as SQL text.",
                operator=title,
                hint="say it in other words; register a function of Python with spark.udf.register.",
            )

    def _simplified(self, expression: Any, columns: list[Any]) -> Any:
        """The expression as Spark resolves it over these columns, short-hands and constants computed."""
        jvm = self._session._jvm
        logical, rules = jvm.org.apache.spark.sql.catalyst.plans.logical, jvm.org.apache.spark.sql.catalyst.optimizer
        leaf = logical.LocalRelation(self._listed(columns), self._listed([]), False, jvm.scala.Option.empty())
        new_id = self._expressions.NamedExpression.newExprId()
        named = self._expressions.Alias(
            expression, "value", new_id, self._listed([]), jvm.scala.Option.empty(), self._listed([])
        )
        analyzer = self._session._jsparkSession.sessionState().analyzer()
        plan = analyzer.execute(logical.Project(self._listed([named]), leaf))
        # The text leaves out casts to the same type, so they are left out here.
        for rule in (
            rules.ReplaceExpressions,
            rules.SimplifyExtractValueOps,
            rules.ConstantFolding,
            rules.SimplifyCasts,
        ):
            plan = rule.apply(plan)
        listed = plan.aggregateExpressions() if plan.nodeName() == "Aggregate" else plan.projectList()
        return listed.apply(0).child()

    def _listed(self, parts: list[Any]) -> Any:
        listed = self._session._jvm.java.util.ArrayList()
        for part in parts:
            listed.add(part)
        return scala_sequence(self._session, listed)


def _retyped(position: int, inputs: list[Any]) -> tuple[str | int, ...]:
    """The input as the type that it has in the expression, where ours is wider (INTERVAL HOUR is one of days and seconds)."""
    given = inputs[position].dataType().asNullable()  # what is never NULL is no part of a type that a value is cast to
    if to_spark_json(from_spark_json(json.loads(given.json()))) == json.loads(given.json()):
        return (position,)
    return ("CAST(", position, f" AS {given.sql()})")


def function_name(expression: Any) -> str:
    """What SQL calls the function of an expression."""
    is_python = expression.getClass().getSimpleName() == "PythonUDF"
    name: str = expression.name() if is_python else expression.prettyName()
    return _OPERATORS.get(name, name)


def refuse_chance(name: str) -> None:
    """Refuses the sketches that are none of the rows they were given, though Spark calls them deterministic."""
    if name.startswith(("kll_sketch_agg", "kll_merge_agg")):
        raise UnsupportedQuery(
            f"the sketch {name} draws by lot which values it drops, so a view over it has no well-defined content.",
            operator=name,
            hint="percentile(x, array(0.5, 0.9)) is exact, and maintained in O(log N).",
        )


def refused_as_nondeterministic(expression: Any) -> UnsupportedQuery:
    """The refusal of a function that is none of its arguments."""
    while below := [c for c in sequence(expression.children()) if not c.deterministic()]:
        expression = below[0]
    name = function_name(expression)
    return UnsupportedQuery(
        f"the function {name} is not deterministic, so a view over it has no well-defined content.",
        operator=name,
        hint="compute the value when the rows are made, and store it in a column.",
    )
