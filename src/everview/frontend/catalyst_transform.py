"""Catalyst's own tree transformations, driven from Python.

Catalyst's ``transform`` takes a Scala partial function; we implement that interface in Python through py4j's callbacks. Used
where no rule of Catalyst does what we need: to give the leaves of a plan other rows, and to reach into subqueries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started

_SUBQUERIES = frozenset({"Exists", "ListQuery", "ScalarSubquery", "LateralSubquery"})


def rebind_leaves(session: Any, plan: Any, contents: dict[str, Any]) -> Any:
    """The plan with each ``View`` leaf named in ``contents`` (lower case) replaced by that plan, attribute by attribute.

    This is how ``verify`` asks Spark for the answer of the very query that a view was made from, SQL text or DataFrame.
    """

    def replace(node: Any) -> Any:
        name = table_of_view(node)
        return under_identities(session._jvm, contents[name], node) if name in contents else node

    return run_transform(session, plan.transformUpWithSubqueries, replace)


def view_leaves(session: Any, plan: Any) -> list[str]:
    """The names, in lower case, of the views that a plan reads, each once."""
    found: dict[str, None] = {}

    def note(node: Any) -> Any:
        name = table_of_view(node)
        if name is not None:
            found[name] = None
        return node

    run_transform(session, plan.transformUpWithSubqueries, note)
    return list(found)


def table_of_view(node: Any) -> str | None:
    """The name, in lower case, of a view that lives in a session; None for any other node, also for a view of a catalog."""
    if node.nodeName() != "View":
        return None
    identifier = node.desc().identifier()
    return identifier.table().lower() if identifier.database().isEmpty() else None


def rewrite_subqueries(session: Any, plan: Any, rewrite: Callable[[Any], Any]) -> Any:
    """The plan with ``rewrite`` applied to the plan of every subquery in its expressions."""

    def replace(expression: Any) -> Any:
        if expression.getClass().getSimpleName() not in _SUBQUERIES:
            return expression
        return expression.withNewPlan(rewrite(expression.plan()))

    return run_transform(session, plan.transformAllExpressions, replace)


def run_transform(session: Any, transform: Callable[[Any], Any], visit: Callable[[Any], Any]) -> Any:
    """What one of Catalyst's ``transform…`` methods makes of a tree when ``visit`` replaces its nodes."""
    ensure_callback_server_started(session.sparkContext._gateway)  # type: ignore[no-untyped-call]  # as PySpark ships it
    function = _PartialFunction(visit)
    result = transform(function)
    if function.failure is not None:
        raise function.failure
    return result


class _PartialFunction:
    """A ``scala.PartialFunction`` that is defined everywhere."""

    def __init__(self, visit: Callable[[Any], Any]) -> None:
        self._visit = visit
        self.failure: Exception | None = None

    def applyOrElse(self, node: Any, default: Any) -> Any:  # noqa: N802  # the name of the Scala method
        try:
            return self._visit(node)
        except Exception as error:  # an exception cannot cross py4j; run_transform raises it again
            self.failure = self.failure or error
            return node

    def isDefinedAt(self, node: Any) -> bool:  # noqa: N802  # the name of the Scala method
        return True

    def apply(self, node: Any) -> Any:
        return self.applyOrElse(node, None)

    class Java:
        implements = ["scala.PartialFunction"]  # noqa: RUF012  # py4j reads this attribute as it is


def under_identities(jvm: Any, content: Any, view: Any) -> Any:
    """``SELECT c AS c#id …``: the content's columns under the identities by which the rest of a plan refers to a view's."""
    catalyst = jvm.org.apache.spark.sql.catalyst
    # Some leaves insist on identities of their own wherever they stand; other plans may stand anywhere below the names.
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation")
    fresh = content.newInstance() if kind.isInstance(content) else content
    aliases = jvm.java.util.ArrayList()
    wanted, given = view.output(), fresh.output()
    for i in range(wanted.size()):
        target = wanted.apply(i)
        no_keys = scala_list(jvm, jvm.java.util.ArrayList())
        aliases.add(
            catalyst.expressions.Alias(
                given.apply(i), target.name(), target.exprId(), target.qualifier(), jvm.scala.Option.empty(), no_keys
            )
        )
    return catalyst.plans.logical.Project(scala_list(jvm, aliases), fresh)


def scala_list(jvm: Any, java_list: Any) -> Any:
    """A Java list as a Scala sequence."""
    return jvm.scala.jdk.CollectionConverters.ListHasAsScala(java_list).asScala().toSeq()
