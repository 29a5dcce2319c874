"""The catalog on disk: tables, views with their plans and options, in order of creation. JSON, nothing pickled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from everview.catalog import CovarianceFeatures, Definition, Followed, TableDefinition, ViewDefinition, ViewOptions
from everview.errors import CorruptDatabase
from everview.relational.serialize import plan_from_json, plan_to_json, schema_from_json, schema_to_json


@dataclass(frozen=True, slots=True)
class Lowering:
    """How a view's program was made, so that the same one is made when the database is opened again.

    ``trees`` is the strategy for its blocks: None for terms only, as in databases that do not say. ``rows`` are the numbers
    of rows that the planner was told, ``fixed`` the tables that would never change again. ``digest`` is that of the
    program's text; empty where it was not noted.
    """

    trees: str | None = None
    rows: tuple[tuple[str, int], ...] = ()
    fixed: tuple[str, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A definition, the version at which it was made, and how a view was lowered."""

    definition: Definition
    created_at: int
    lowering: Lowering = Lowering()


def catalog_to_json(entries: list[Entry]) -> list[dict[str, Any]]:
    """A value that ``json`` can write."""
    return [_entry_to_json(e) for e in entries]


def catalog_from_json(written: Any) -> list[Entry]:
    """The definitions that were written.

    Raises:
        CorruptDatabase: they cannot be read.
    """
    try:
        return [_entry_from_json(e) for e in written]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptDatabase(f"the catalog cannot be read: {error!r}.") from error


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    made: dict[str, Any] = {"name": entry.definition.name, "created_at": entry.created_at}
    match entry.definition:
        case TableDefinition() as table:
            return made | {
                "table": {
                    "fields": schema_to_json(table.fields),
                    "primary_key": list(table.primary_key),
                    "static": table.static,
                    "retain": table.retain,
                    "follows": None if table.follows is None else asdict(table.follows),
                }
            }
        case ViewDefinition() as view:
            return made | {
                "view": {
                    "plan": plan_to_json(view.plan),
                    "query": view.query,
                    "time_zone": view.time_zone,
                    "settings": dict(view.settings),
                    "options": asdict(view.options),
                    "is_assertion": view.is_assertion,
                    "covariance": None if view.covariance is None else asdict(view.covariance),
                    "part_of": view.part_of,
                    "lowering": {**asdict(entry.lowering), "rows": dict(entry.lowering.rows)},
                }
            }


def _entry_from_json(written: dict[str, Any]) -> Entry:
    name, lowering = written["name"], Lowering()
    if "table" in written:
        table = written["table"]
        fields, key = schema_from_json(table["fields"]), tuple(table["primary_key"])
        followed = table.get("follows")
        follows = None if followed is None else Followed(**followed)
        definition: Definition = TableDefinition(name, fields, key, table["static"], table["retain"], follows=follows)
    else:
        view = written["view"]
        options = ViewOptions(**view["options"])
        plan, settings = plan_from_json(view["plan"]), tuple(view.get("settings", {}).items())
        is_assertion = view["is_assertion"]
        summed = view.get("covariance")
        features = None if summed is None else CovarianceFeatures(**{k: tuple(names) for k, names in summed.items()})
        definition = ViewDefinition(
            name,
            plan,
            view["query"],
            view["time_zone"],
            options,
            is_assertion,
            settings,
            covariance=features,
            part_of=view.get("part_of"),
        )
        if "lowering" in view:
            told = view["lowering"]
            lowering = Lowering(told["trees"], tuple(told["rows"].items()), tuple(told["fixed"]), told["digest"])
    return Entry(definition, written["created_at"], lowering)
