"""The database's clock as users move it, and retention, which follows it.

The clock is a table of one row (``relational.clock``). It is made when the first query asks for the time, or by the first
``db.advance``; from then on it stands still until it is advanced, so that reading a view twice gives one answer. A retention
is a view of the rows that a table is to lose: each time the clock has moved, they are deleted in a transaction of their own.
The commit that ``advance`` gives is that of the clock.
"""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import InvalidChange
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.clock import CLOCK, CLOCK_FIELDS, EXPIRED, reads_clock
from everview.relational.clock import is_hidden as is_hidden  # noqa: PLC0414 -- for the session, which asks here
from everview.relational.quoting import quote
from everview.session.defining_views import view_definition
from everview.session.transaction import Commit

if TYPE_CHECKING:
    from everview.session.core import Core

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def ensure_clock(core: Core) -> None:
    """Makes the clock if there is none; it then shows the time at which this is called."""
    if shown(core) is None:
        _set(core, time.time_ns() // 1000)


def now(core: Core) -> datetime.datetime | None:
    """What the clock shows; None as long as nobody has asked for the time."""
    with core.locked():
        micros = shown(core)
    return None if micros is None else _EPOCH + micros * _MICROSECOND


def advance(core: Core, to: datetime.datetime | None) -> Commit:
    """Moves the clock, and deletes what the retention of tables then gives up."""
    if to is None:
        micros = time.time_ns() // 1000
    elif isinstance(to, datetime.datetime) and to.tzinfo is not None:
        micros = (to - _EPOCH) // _MICROSECOND
    else:
        raise InvalidChange(
            f"the clock cannot be set to {to!r}.",
            hint="give a datetime with a time zone, as in datetime.now(timezone.utc), or nothing for the present moment.",
        )
    commit = move(core, micros)
    core.subscriptions.deliver()
    return commit


def start(core: Core) -> None:
    """Makes the clock if there is none, for event time: it shows the beginning of 1970, as Spark's first watermark does."""
    if shown(core) is None:
        _set(core, 0)


def move(core: Core, micros: int) -> Commit:
    """Moves the clock to so many microseconds after 1970, and deletes what the retention of tables then gives up."""
    with core.locked():
        commit = _set(core, micros)
        for view in core.catalog.views:
            if view.name.startswith(EXPIRED):
                _delete_expired(core, view)
        return commit


def shown(core: Core) -> int | None:
    """What the clock shows, in microseconds; None as long as there is none."""
    return _micros(core) if CLOCK in core.catalog else None


def retain(core: Core, table: str, where: str) -> None:
    """Declares which rows of a table are kept; the others go when the clock is next advanced, and those there are at once."""
    with core.locked():
        definition = core.catalog.table(table)
        definition.check_is_ours("has no retention")
        name = f"{EXPIRED}{definition.name}"
        translated = core.translate(f"SELECT * FROM {quote(definition.name)} WHERE NOT ({where})")
        if not reads_clock(translated.plan):
            raise InvalidChange(
                "a retention must depend on the time.",
                hint="compare a column with now(), as in ts > now() - INTERVAL 7 DAYS.",
            )
        if name in core.catalog:
            core.drop(name)
        options = ViewOptions(on_error=None)
        core.add_view(view_definition(core, name, translated, options))
        _delete_expired(core, core.catalog.view(name))
    core.subscriptions.deliver()


def _delete_expired(core: Core, view: ViewDefinition) -> None:
    rows = core.backend.read(view.name)
    if rows.num_rows:
        weights = pa.array([-1] * rows.num_rows, pa.int64())
        core.commit([Change(view.name.removeprefix(EXPIRED), ChangeKind.WEIGHTED, rows, weights)])


def _micros(core: Core) -> int | None:
    rows = rows_from_arrow(core.backend.read(CLOCK), CLOCK_FIELDS)
    return rows[0][0] if rows else None


def _set(core: Core, micros: int) -> Commit:
    with core.uninterrupted, core.locked():
        if CLOCK not in core.catalog:
            definition = TableDefinition(CLOCK, CLOCK_FIELDS)
            core.backend.create_table(definition)
            core.catalog.add(definition)
        before = _micros(core)
        moved = [(before, -1), (micros, 1)] if before is not None else [(micros, 1)]
        rows = rows_to_arrow([(at,) for at, _ in moved], CLOCK_FIELDS)
        return core.commit([Change(CLOCK, ChangeKind.WEIGHTED, rows, pa.array([w for _, w in moved], pa.int64()))])
