"""What the database knows by name: tables with their keys, views with their plans, and who reads whom.

Names are case-insensitive and keep the case they were given, as in Spark. Tables, views and assertions share one name space.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from everview.relational.nodes import Relation, Schema


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A base table: its columns, its primary key (empty for none), and how it is kept."""

    name: str
    fields: Schema
    primary_key: tuple[str, ...] = ()
    static: bool = False
    retain: bool = True


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How the user asked a view to be maintained; the meaning of each is in ``interface.md``."""

    strategy: str = "auto"
    lazy: bool = False
    representation: str = "auto"
    depth: int | None = None
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view, or an assertion (a view that must stay empty).

    ``query`` is the SQL text, None for a view made from a DataFrame. ``time_zone`` is the session time zone in which the
    query was translated.
    """

    name: str
    plan: Relation
    query: str | None
    time_zone: str
    options: ViewOptions = field(default_factory=ViewOptions)
    is_assertion: bool = False
