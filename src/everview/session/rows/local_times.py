"""Times without a time zone, given for a TIMESTAMP column: they are read as local times of the session, as PySpark does.

The session's time zone is ``spark.sql.session.timeZone`` of the active Spark session, and where Spark does not run, the zone of
the machine, which a session would have too. A local time that a clock change skips is moved forward by the gap; of two instants
with the same local time the earlier one is taken (java.time's rules, and so Spark's).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import EvaluationError, InvalidChange
from everview.frontend.spark_environment import zone_of_active_session
from everview.relational.functions.zones import Zone, zone_named

_INSTANT: Final = pa.timestamp("us", "UTC")
_ZONES: Final = "zoneinfo/"
_TIME_ZONE_FILE: Final = Path("/etc/localtime")


def session_zone() -> Zone:
    """The time zone of times that have none.

    Raises:
        InvalidChange: this machine does not know the zone.
    """
    name = zone_of_active_session() or machine_zone()
    try:
        return zone_named(name)
    except EvaluationError as error:
        raise InvalidChange(
            f"times without a time zone are in the session's, '{name}', which this machine does not know.",
            hint="set spark.sql.session.timeZone to another, or give times with a zone.",
        ) from error


def machine_zone() -> str:
    """The name of this machine's time zone: the variable TZ, else where /etc/localtime points to, else UTC."""
    given = os.environ.get("TZ", "").removeprefix(":")
    if given:
        return given.partition(_ZONES)[2] or given
    return str(_TIME_ZONE_FILE.resolve()).partition(_ZONES)[2] or "UTC"


def instants_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Local times of the session, in microseconds, as instants."""
    return pa.chunked_array([instants_of_array(chunk) for chunk in column.chunks], _INSTANT)


def instants_of_array(local: pa.Array) -> pa.Array:
    """The same for one array."""
    zone = session_zone()
    try:
        return pc.assume_timezone(local, zone.name, ambiguous="earliest", nonexistent="raise").cast(_INSTANT)
    except pa.ArrowInvalid:  # Arrow does not know the name, or a clock change skips one of the times
        distinct, places = np.unique(local.cast(pa.int64()).fill_null(0).to_numpy(), return_inverse=True)
        instants = np.fromiter((zone.from_local(value) for value in distinct.tolist()), np.int64, len(distinct))
        missing = local.is_null().to_numpy(zero_copy_only=False)
        return pa.array(instants[places], pa.int64(), mask=missing).cast(_INSTANT)
