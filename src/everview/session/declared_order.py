"""LIMIT without ORDER BY, where the user says which rows are the first ones.

``create_view(…, order_by="primary key")`` or ``order_by=["day", "id"]`` puts an ORDER BY before every LIMIT or OFFSET of the
text that has none: of the query itself, of a subquery in FROM, and of a common table expression. The text with the ORDER BY is
the view's query from then on, so everything that reads it (Spark in ``verify``, a reopened database) means the same rows.

Contract: the rows are then determined. Every order that a LIMIT cuts is tried by the planner's own unique keys; one in which
two rows may stand on a level is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from everview.catalog import TableDefinition
from everview.errors import UnsupportedOperation, UnsupportedQuery, guarded
from everview.relational.expressions import Column
from everview.relational.nodes import Relation, TopK
from everview.relational.quoting import quote
from everview.relational.schema import schema
from everview.relational.traverse import nodes_of, tables_of
from everview.relational.unique_keys import unique_keys
from everview.session.queries import keys_of_scans
from everview.session.sql.tokens import Word, words_of

if TYPE_CHECKING:
    from everview.session.core import Core

PRIMARY_KEY: Final = "primary key"
_BEFORE_A_RELATION: Final = frozenset(
    {"from", "join", "as", "union", "intersect", "except", "minus", "all", "distinct"}
)
"""What stands before the parenthesis of a subquery that is computed once, not for each row of another one."""


def with_declared_order(core: Core, query: Any, order_by: str | Iterable[str]) -> str:
    """The text of the query with the declared order where its LIMITs have none.

    Raises:
        UnsupportedOperation: the query is no text, has no such LIMIT, or the order is that of a primary key that there is not.
        UnsupportedQuery: rows could stand on a level in the order.
    """
    if not isinstance(query, str):
        raise UnsupportedOperation(
            f"order_by goes with the text of a query, and this is of type {type(query).__name__}.",
            hint="order the DataFrame: frame.orderBy(…).limit(…).",
        )
    places = _limits_without_order(query)
    if not places:
        raise UnsupportedOperation(
            "order_by is for a LIMIT or OFFSET without ORDER BY, in the query itself or in its FROM, and the query has none.",
            hint="leave it out.",
        )
    is_by_key = order_by == PRIMARY_KEY
    terms = _primary_key(core, _with_order(query, places, ("true",))) if is_by_key else _columns(order_by)
    text = _with_order(query, places, terms)
    with guarded(query):
        plan = core.translate(text).plan
        _check_determined(core, plan, terms)
    return text


def _columns(order_by: str | Iterable[str]) -> tuple[str, ...]:
    given = (order_by,) if isinstance(order_by, str) else tuple(order_by)
    if not given or not all(isinstance(column, str) for column in given):
        raise UnsupportedOperation(
            f"order_by={order_by!r} is no order.", hint="give 'primary key', a column, or a list of columns."
        )
    return tuple(quote(column) for column in given)


def _primary_key(core: Core, text: str) -> tuple[str, ...]:
    """The columns of the primary key of the one table that the query reads."""
    with guarded(text):
        read = sorted(set(tables_of(core.translate(text).plan)))
    if len(read) != 1:
        raise UnsupportedOperation(
            f"order_by='{PRIMARY_KEY}' is for a query over one table, and this one reads {', '.join(read) or 'none'}.",
            hint="list the columns: order_by=['a', 'b'].",
        )
    definition = core.catalog.get(read[0])
    if not isinstance(definition, TableDefinition) or not definition.primary_key:
        kind = "table" if isinstance(definition, TableDefinition) else "view"
        raise UnsupportedOperation(
            f"order_by='{PRIMARY_KEY}': {kind} '{definition.name}' has no primary key.",
            hint="list columns in which no two rows are equal: order_by=['a', 'b'].",
        )
    return tuple(quote(column) for column in definition.primary_key)


def _check_determined(core: Core, plan: Relation, terms: tuple[str, ...]) -> None:
    keys_of = keys_of_scans(core.catalog)
    for top in (node for node in nodes_of(plan) if isinstance(node, TopK)):
        keys = unique_keys(top.child, keys_of)
        ordered = {key.expression.index for key in top.order if isinstance(key.expression, Column)}
        if any(not key.present and key.columns <= ordered for key in keys):
            continue
        names = [f.name for f in schema(top.child)]
        known = [", ".join(names[i] for i in sorted(k.columns)) for k in keys if not k.present and k.columns]
        raise UnsupportedQuery(
            f"ORDER BY {', '.join(terms)} leaves open which rows a LIMIT keeps: two rows may be equal in it.",
            operator="LIMIT",
            hint=f"add the columns of a key{': ' + ' or '.join(f'({k})' for k in known) if known else ', or declare one'}.",
        )


def _with_order(text: str, places: list[Word], terms: tuple[str, ...]) -> str:
    """The text with an ORDER BY before each of these words; in a pipe, as an operator of its own."""
    for word in reversed(places):
        pipe = " |>" if text[: word.start].rstrip().endswith("|>") else ""
        text = f"{text[: word.start]}ORDER BY {', '.join(terms)}{pipe} {text[word.start :]}"
    return text


def _limits_without_order(text: str) -> list[Word]:
    """The words LIMIT and OFFSET before which an ORDER BY may be put, those of one query once.

    >>> [w.start for w in _limits_without_order("SELECT a FROM (SELECT * FROM t LIMIT 3) ORDER BY a LIMIT 2")]
    [31]
    """
    words = words_of(text, "query")
    found: list[Word] = []
    open_queries = [_Level(is_relation=True)]
    for place, word in enumerate(words):
        level = open_queries[-1]
        following = words[place + 1].keyword if place + 1 < len(words) else ""
        if word.keyword == "(":
            before = words[place - 1].keyword if place else ""
            is_relation = level.is_relation if before in ("", "(") else before in _BEFORE_A_RELATION
            open_queries.append(_Level(is_relation))
        elif word.keyword == ")" and len(open_queries) > 1:
            open_queries.pop()
        elif word.keyword in ("order", "sort") and following == "by":
            level.has_order = True
        elif word.keyword in ("limit", "offset") and following[:1].isdigit():
            if level.is_relation and not level.has_order:
                found.append(word)
            level.has_order = True
    return found


class _Level:
    """A query inside parentheses, or the whole: whether it is a relation, and whether an ORDER BY has come."""

    def __init__(self, is_relation: bool) -> None:
        self.is_relation = is_relation
        self.has_order = False
