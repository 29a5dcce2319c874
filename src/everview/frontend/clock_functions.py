"""``now()`` and its kin as subqueries over the database's clock.

Catalyst takes the current time for a constant and would fold it. A subquery is none, and means what is wanted: the one row of a
relation, whatever it holds.
"""

from __future__ import annotations

from typing import Any

from everview.frontend.catalyst_json import simple_name
from everview.frontend.catalyst_transform import run_transform, scala_list
from everview.relational.clock import CLOCK

_NOW = f"(SELECT now FROM {CLOCK})"
_FUNCTIONS = {
    "CurrentTimestamp": _NOW,
    "Now": _NOW,
    "CurrentDate": f"CAST({_NOW} AS DATE)",
    "LocalTimestamp": f"CAST({_NOW} AS TIMESTAMP_NTZ)",
}
"""What each of Catalyst's classes stands for; dates are those of the session's time zone."""


def with_clock(session: Any, analyzed: Any) -> Any:
    """The plan with the clock in the place of functions of the current time; the session knows the clock by its name."""
    subqueries = analyzed.subqueriesAll()  # whose plans the JSON of the whole leaves out
    text = "".join([analyzed.toJSON(), *(subqueries.apply(i).toJSON() for i in range(subqueries.size()))])
    found = [name for name in _FUNCTIONS if f'.{name}"' in text]
    if not found:
        return analyzed
    listed = session.sql("SELECT " + ", ".join(_FUNCTIONS[name] for name in ("Now", *found)))
    made = [listed._jdf.queryExecution().analyzed().projectList().apply(i).child() for i in range(len(found) + 1)]
    now, *others = made
    whole = {name: _over(session, expression, now) for name, expression in zip(found, others, strict=True)}

    def replace(expression: Any) -> Any:
        return whole.get(simple_name(expression.getClass().getName()), expression)

    return run_transform(session, analyzed.transformAllExpressionsWithSubqueries, replace)


def _over(session: Any, expression: Any, now: Any) -> Any:
    """The expression over one and the same subquery, which is then joined once."""
    if expression.children().size() == 0:
        return now
    children = session._jvm.java.util.ArrayList()
    children.add(now)
    return expression.withNewChildren(scala_list(session._jvm, children))
