"""Whether a transaction brings a view up to date from deltas or computes it anew: the option ``refresh``, and the cost rule.

Taking in a delta costs about as much as its rows, computing anew as much as all rows of the tables read. With ``auto`` a view
is computed anew when

    rows changed  >  share * rows held afterwards          (both summed over the tables that the view reads)

``share`` is the backend's: how many rows it can read anew in the time in which it maintains one. An engine whose operators
work through a delta as fast as through a load has 1: only transactions that change more rows than they leave are computed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everview.backends.base import Refresh
from everview.catalog import ViewDefinition
from everview.relational.traverse import tables_of

FROM_DELTAS = Refresh("incremental", "every operator of the view takes in deltas")
NOTHING_TO_DO = Refresh("incremental", "nothing that it reads has changed")
"""For a view over views that a transaction moved without changing their rows."""


def views_over(tables: Iterable[str], views: Mapping[str, ViewDefinition]) -> list[str]:
    """The views and assertions that read one of these tables, directly or through other views, by key, in their order.

    Args:
        tables: Names in small letters.
        views: All of them by name in small letters, each after those that it reads.
    """
    reached = set(tables)
    found = []
    for key, view in views.items():
        if not reached.isdisjoint(name.lower() for name in tables_of(view.plan)):
            reached.add(key)
            found.append(key)
    return found


def choose_refresh(refresh: str | None, changed: int, held: int, share: float = 1.0) -> Refresh:
    """How to refresh a view with this option after ``changed`` rows, in tables that then hold ``held``.

    >>> print(choose_refresh("auto", 10, 1_000, share=0.1))
    incremental (auto: 10 rows changed, 1,000 held, and computing anew pays above 100)
    >>> choose_refresh("auto", 500, 1_000, share=0.1).how
    'full'
    >>> choose_refresh("incremental_strict", 500, 0).how
    'incremental'
    """
    match refresh:
        case "full":
            return Refresh("full", "the view has refresh='full'")
        case "auto":
            most = int(share * held)
            reason = f"auto: {changed:,} rows changed, {held:,} held, and computing anew pays above {most:,}"
            return Refresh("full" if changed > most else "incremental", reason)
        case _:
            return FROM_DELTAS
