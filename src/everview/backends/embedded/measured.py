"""``explain(mode="analyze")``: what the operators of a view have done since they were made.

Rows are counted in propagation, seconds by ``view_times``. A delta that nobody has looked at is not computed, and its rows are
not known: such deltas are counted apart. What rejected transactions did counts too, and what an operator took in when it was
made does not.
"""

from __future__ import annotations

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tree.tree_backed_operator import TreeBacked


def measured_line(operator: Operator) -> str:
    """Rows in and out, fan-out, seconds, bytes, and of a view tree the entries that its triggers have read or made."""
    parts = [f"{operator.rows_in:,} rows in"] if operator.inputs else []
    parts.append(f"{operator.out.rows:,} rows out")
    if operator.out.unread:
        parts[-1] += f", and {operator.out.unread:,} changes that nobody has read"
    elif operator.inputs and operator.rows_in:
        parts.append(f"fan-out {operator.out.rows / operator.rows_in:,.3g}")
    parts += [f"{seconds_of(operator):.6f} s", f"{bytes_of(operator):,} bytes"]
    if isinstance(operator, TreeBacked):
        each = f", {operator.state.work / operator.rows_in:,.3g} a row" if operator.rows_in else ""
        parts.append(f"{operator.state.work:,} entries read or made{each}")
    return "; ".join(parts)


def seconds_of(operator: Operator) -> float:
    """Its time, with its part of that of the group that it moves in."""
    group = operator.group if isinstance(operator, TreeBacked) else None
    return operator.spent + (0.0 if group is None else group.spent / len(group.members))


def bytes_of(operator: Operator) -> int:
    """Of its state, and of its output where that is kept."""
    kept = {} if operator.arrangement is None else operator.arrangement.nbytes()
    return sum((operator.nbytes() | kept).values())
