"""From a view's definition to the stages that maintain it: its trigger program, with what is known of tables and views."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from everview.backends.spark.lower import lower
from everview.backends.spark.stages import StageProgram
from everview.catalog import TableDefinition, ViewDefinition
from everview.planner.block_join_builder import Facts
from everview.relational.nodes import Relation, Scan
from everview.relational.rules import WITH_TREES, run_rules
from everview.relational.unique_keys import UniqueKey, unique_keys
from everview.trigger.lower_plan import lower_plan


def lower_view(
    view: ViewDefinition,
    tables: Mapping[str, TableDefinition],
    views: Mapping[str, ViewDefinition],
    received: Collection[str],
) -> StageProgram:
    """The stages of a view.

    Args:
        view: Its definition.
        tables: The tables by name in small letters.
        views: The other views by name in small letters.
        received: The tables that have been given rows; a static one of them changes no more.
    """

    def keys(scan: Scan) -> tuple[UniqueKey, ...]:
        table = tables.get(scan.table.lower())
        if table is None:
            return unique_keys(views[scan.table.lower()].plan, keys)
        return table.unique_keys

    def facts_of(relation: Relation) -> Facts:
        if not isinstance(relation, Scan):
            return Facts()
        table = tables.get(relation.table.lower())
        is_fixed = table is not None and table.static and relation.table.lower() in received
        return Facts(keys(relation), not is_fixed)

    def keeps_rows(name: str) -> bool:
        table = tables.get(name.lower())
        return table is None or table.retain

    strategy = "recompute" if view.options.refresh == "full" else view.options.strategy
    plan = run_rules(view.plan, WITH_TREES)
    return lower(view.name.lower(), lower_plan(plan, facts_of, strategy, keeps_rows=keeps_rows))
