"""What the front end hands on: a query as algebra, with the settings of the session that gave it its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from everview.relational.nodes import Relation


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What of a session decides the meaning of a query: the time zone, and carried settings that are not at their default."""

    time_zone: str
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionReach:
    """All of a session that a translation may depend on: its settings, and a hash of what else its analyzer sees."""

    settings: SessionSettings
    others: str


@dataclass(frozen=True, slots=True)
class Translated:
    """A user's query as algebra over the scans of the database's tables and views."""

    plan: Relation
    text: str | None
    settings: SessionSettings
