"""The same Catalyst plan over other rows: every leaf that stands for a table gets the table's current content.

This is how ``verify`` asks Spark for the answer of the very query that a view was made from, SQL text or DataFrame. Catalyst's
``transform`` takes a Scala partial function; we implement that interface in Python through py4j's callbacks.
"""

from __future__ import annotations

from typing import Any

from pyspark.java_gateway import ensure_callback_server_started


def rebind_leaves(session: Any, plan: Any, contents: dict[str, Any]) -> Any:
    """The plan with each ``View`` leaf named in ``contents`` (lower case) replaced by that plan, attribute by attribute."""
    ensure_callback_server_started(session.sparkContext._gateway)
    replace = _ReplaceViews(session._jvm, contents)
    rebound = plan.transformUpWithSubqueries(replace)
    if replace.failure is not None:
        raise replace.failure
    return rebound


class _ReplaceViews:
    """A ``PartialFunction[LogicalPlan, LogicalPlan]`` that is defined everywhere and changes only view leaves."""

    def __init__(self, jvm: Any, contents: dict[str, Any]) -> None:
        self._jvm = jvm
        self._contents = contents
        self.failure: Exception | None = None

    def applyOrElse(self, plan: Any, default: Any) -> Any:  # noqa: N802  # the name of the Scala method
        try:
            if plan.nodeName() != "View":
                return plan
            name = plan.desc().identifier().table().lower()
            return self._aliased(self._contents[name], plan) if name in self._contents else plan
        except Exception as error:  # an exception cannot cross py4j; rebind_leaves raises it again
            self.failure = error
            return plan

    def isDefinedAt(self, plan: Any) -> bool:  # noqa: N802  # the name of the Scala method
        return True

    def apply(self, plan: Any) -> Any:
        return self.applyOrElse(plan, None)

    def _aliased(self, content: Any, view: Any) -> Any:
        """``SELECT c AS c#id …``: the content's columns under the identities that the rest of the plan refers to."""
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        fresh = content.newInstance() if hasattr(content, "newInstance") else content
        aliases = self._jvm.java.util.ArrayList()
        wanted, given = view.output(), fresh.output()
        for i in range(wanted.size()):
            target = wanted.apply(i)
            aliases.add(
                catalyst.expressions.Alias(
                    given.apply(i),
                    target.name(),
                    target.exprId(),
                    target.qualifier(),
                    self._jvm.scala.Option.empty(),
                    self._jvm.scala.jdk.CollectionConverters.ListHasAsScala(self._jvm.java.util.ArrayList())
                    .asScala()
                    .toSeq(),
                )
            )
        listed = self._jvm.scala.jdk.CollectionConverters.ListHasAsScala(aliases).asScala().toSeq()
        return catalyst.plans.logical.Project(listed, fresh)

    class Java:
        implements = ["scala.PartialFunction"]  # noqa: RUF012  # py4j reads this attribute as it is
