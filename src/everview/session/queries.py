"""Queries that SQL cannot say, the maximum of bags; and choices in queries that keys settle.

``UNION ALL`` adds multiplicities, ``INTERSECT ALL`` takes the smaller; the larger has no SQL, but is an operator of the bag
algebra like the others (views-with-duplicates), and useful where each of several sources reports rows that are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from everview.catalog import Catalog, TableDefinition
from everview.errors import InvalidQuery
from everview.frontend.translated import Translated
from everview.relational.clock import CLOCK
from everview.relational.nodes import Relation, Scan, UnionMax
from everview.relational.quoting import quote
from everview.relational.schema import schema
from everview.relational.settle_choices import settle_choices
from everview.relational.unique_keys import KeysOfScan, UniqueKey, unique_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.relations import View


@dataclass(frozen=True, slots=True)
class UnionMaxQuery:
    """Rows as often as the input that has them most often; made by ``union_max``, taken by ``create_view``."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"union_max({', '.join(str(p) for p in self.parts)})"


def union_max(*queries: str | DataFrame | View) -> UnionMaxQuery:
    """A query for ``create_view``: each row max(its counts in the given queries) times.

    Args:
        queries: Two or more: SQL text, DataFrames built from ``db.spark_table``, or views of the database. All must have
            the same column types; names are those of the first.
    """
    if len(queries) < 2:
        raise InvalidQuery("union_max takes two queries or more.")
    return UnionMaxQuery(tuple(_as_query(query) for query in queries))


def _as_query(query: Any) -> Any:
    """The query itself; for a view or table, its rows."""
    is_view = hasattr(query, "lookup")
    return f"SELECT * FROM {quote(query.name)}" if is_view else query


def union_max_plan(plans: list[Relation]) -> Relation:
    """The algebra of the whole from that of its parts.

    Raises:
        InvalidQuery: the parts have different column types.
    """
    types = [tuple(f.type for f in schema(plan)) for plan in plans]
    for other in types[1:]:
        if other != types[0]:
            ours, theirs = (", ".join(str(t) for t in each) for each in (types[0], other))
            raise InvalidQuery(
                f"the parts of union_max have different columns: ({ours}) and ({theirs}).",
                hint="cast them to one type.",
            )
    return reduce(UnionMax, plans)


def settled(catalog: Catalog, translated: Translated) -> Translated:
    """The query with ``first``, ``last`` and ``any_value`` settled by the keys of what it reads."""
    plan = settle_choices(translated.plan, keys_of_scans(catalog))
    return translated if plan is translated.plan else replace(translated, plan=plan)


def keys_of_scans(catalog: Catalog) -> KeysOfScan:
    """What is known of the tables and views that a query reads: on which columns no two rows of them agree."""

    def keys_of(scan: Scan) -> tuple[UniqueKey, ...]:
        if scan.table == CLOCK or scan.table not in catalog:  # the clock, or rows that are lent for one query
            return ()
        definition = catalog.get(scan.table)
        return (
            definition.unique_keys if isinstance(definition, TableDefinition) else unique_keys(definition.plan, keys_of)
        )

    return keys_of
