"""Watermarks: event time moves the clock, and rows that come too late are left out.

The watermark of a table is the greatest event time of its rows, less a delay, as in Spark's ``withWatermark``. It is a hidden
view of one row, ``SELECT max(ts) - INTERVAL '10 minutes' AS ts``, so it is maintained, rolled back and stored like others. A
row that is inserted with an event time before the watermark, as it was before the transaction, is late: the transaction goes
on without it, and ``Commit.caught`` has it. After the transaction the clock moves to the watermark, the least one where several
tables have one, and never back. Retention follows the clock, and so do temporal filters.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.backends.factorized_rows import FactorizedChange
from everview.catalog import ViewDefinition, ViewOptions
from everview.errors import InvalidQuery, UnsupportedOperation
from everview.relational.arrow import arrow_schema
from everview.relational.clock import WATERMARK
from everview.relational.column_names import find_column
from everview.relational.quoting import quote
from everview.relational.types import TIMESTAMP
from everview.session import clock
from everview.session.defining_views import view_definition

if TYPE_CHECKING:
    from everview.session.core import Core

CAUGHT = "watermark of {}"
"""The name under which ``Commit.caught`` has the late rows of a table."""


def watermark(core: Core, table: str, column: str, delay: str | datetime.timedelta) -> None:
    """Declares the event time of a table, and how late rows may come; a second call replaces the first.

    Raises:
        InvalidQuery: the column is no timestamp, or the delay no interval.
        UnsupportedOperation: the table keeps no rows.
    """
    with core.locked():
        definition = core.catalog.table(table)
        field = definition.fields[find_column(f"table '{definition.name}'", definition.fields, column)]
        if field.type != TIMESTAMP:
            raise InvalidQuery(
                f"column '{field.name}' of table '{definition.name}' is {field.type}: the time of an event is a timestamp.",
                hint="give the table a column of type TIMESTAMP.",
            )
        if not definition.retain:
            raise UnsupportedOperation(
                f"table '{definition.name}' has retain=False, so that no watermark can be computed of its rows.",
                hint="create it with retain=True; db.retain deletes what the watermark has passed.",
            )
        name = f"{WATERMARK}{definition.name}"
        latest = f"max({quote(field.name)}) - {_interval(delay)} AS {quote(field.name)}"
        translated = core.translate(f"SELECT {latest} FROM {quote(definition.name)}")
        if name in core.catalog:
            core.drop(name)
        core.add_view(view_definition(core, name, translated, ViewOptions(on_error=None)))
        clock.start(core)
        follow(core)
    core.subscriptions.deliver()


def _interval(delay: object) -> str:
    if isinstance(delay, datetime.timedelta):
        micros = delay // datetime.timedelta(microseconds=1)
        if micros >= 0:
            return f"make_dt_interval(0, 0, 0, {micros // 1_000_000}.{micros % 1_000_000:06d})"
    elif isinstance(delay, str) and delay.strip() and "'" not in delay and "-" not in delay:
        return f"INTERVAL '{delay.strip()}'"
    raise InvalidQuery(
        f"{delay!r} is no delay.",
        hint="give an interval that is not negative, as in '10 minutes' or timedelta(minutes=10).",
    )


def without_late(core: Core, changes: list[Change]) -> tuple[list[Change], dict[str, pa.Table]]:
    """The changes without rows that come too late, and these, by the name of the watermark."""
    kept: list[Change] = []
    late: dict[str, pa.Table] = {}
    for change in changes:
        view = core.catalog.watermarks.get(change.table.lower())
        at = None if view is None or change.kind is ChangeKind.DELETE_KEYS else _reached(core, view)
        if view is None or at is None:
            kept.append(change)
            continue
        if isinstance(change, FactorizedChange) or not isinstance(change.given, pa.Table | pa.RecordBatch):
            raise UnsupportedOperation(
                f"the rows for table '{change.table}' are not looked at one by one, and it has a watermark.",
                hint="give rows and not a Product, and large DataFrames in parts.",
            )
        is_late = pc.fill_null(pc.less(change.given.column(view.fields[0].name), at), fill_value=False)
        if change.weights is not None:
            is_late = pc.and_(is_late, pc.greater(change.weights, 0))
        if not pc.any(is_late).as_py():
            kept.append(change)
            continue
        rows, stays = change.rows, pc.invert(is_late)
        weights = None if change.weights is None else change.weights.filter(stays)
        kept.append(Change(change.table, change.kind, rows.filter(stays), weights))
        table = core.catalog.table(change.table)
        found = rows.filter(is_late).cast(arrow_schema(table.fields))
        title = CAUGHT.format(table.name)
        late[title] = pa.concat_tables([late[title], found]) if title in late else found
    return kept, late


def follow(core: Core) -> None:
    """Moves the clock to the least watermark, if all have one and that is later than what it shows."""
    reached = [_reached(core, view) for view in core.catalog.watermarks.values()]
    known = [at.value for at in reached if at is not None]
    shown = clock.shown(core)
    if known and len(known) == len(reached) and (shown is None or min(known) > shown):
        clock.move(core, min(known))


def _reached(core: Core, view: ViewDefinition) -> pa.Scalar | None:
    """The watermark of a table; None as long as no row has an event time."""
    at = core.backend.read(view.name).column(0)[0]
    return at if at.is_valid else None
