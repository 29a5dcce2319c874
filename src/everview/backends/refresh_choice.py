"""Whether a transaction brings a view up to date from deltas or computes it anew: the option ``refresh``, and the cost rule.

Taking in a delta costs about as much as its rows, computing anew as much as all rows of the tables read. With ``auto`` a view
is computed anew when

    rows changed  >  share * rows held afterwards          (both summed over the tables that the view reads)

``share`` is the backend's: how many rows it can read anew in the time in which it maintains one. An engine whose operators
work through a delta as fast as through a load has 1: only transactions that change more rows than they leave are computed anew.
"""

from __future__ import annotations

from everview.backends.base import Refresh

FROM_DELTAS = Refresh("incremental", "every operator of the view takes in deltas")


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
