"""Feeding a table from a Structured Streaming query: each micro-batch is one transaction, exactly once.

Spark keeps the offsets of a stream in its checkpoint and gives each micro-batch a number; after a failure it runs the last
batch again, with the same number and the same rows. The number is recorded in the batch's own transaction, under the stream's
id, which lives in the checkpoint too. A batch that is recorded is not applied again, so that: rows in the database = rows of
batches 0 … n, each once, whatever failed in between. A batch that does not follow the recorded one is refused: it means that
the checkpoint has gone on without this database, and rows would be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from everview.backends.base import source_of_table
from everview.errors import UnsupportedOperation, did_you_mean
from everview.session.rows.given_rows import Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from everview.session.core import Core

MODES: Final = tuple(mode.value for mode in Mode)
TRIGGERS: Final = ("processingTime", "availableNow", "once")
"""The triggers of ``DataStreamWriter.trigger`` that come with micro-batches."""

START_TIMEOUT: Final = 600.0
"""Seconds that the first batch waits to learn the stream's id; Spark starts a query in one or two."""


def start_stream(
    core: Core,
    table: str,
    frame: DataFrame,
    *,
    checkpoint: str,
    trigger: Mapping[str, Any],
    mode: str,
    name: str | None,
) -> StreamingQuery:
    """Starts the query that feeds ``table``; the arguments are those of ``Database.stream``.

    Raises:
        InvalidChange: the stream's columns do not fit the table.
        UnsupportedOperation: an argument makes no sense, the DataFrame is not a stream that we can read, or Spark cannot start.
    """
    chosen = _read_mode(mode)
    checked = _read_trigger(trigger)
    if not isinstance(checkpoint, str) or not checkpoint:
        raise UnsupportedOperation(
            f"checkpoint={checkpoint!r} is not a directory.", hint="Spark keeps there how far the stream has been read."
        )
    _check_frame(frame)
    _check_columns(core, table, frame, chosen)
    intake = _Intake(core, table, chosen)
    writer = frame.writeStream.foreachBatch(intake.take).option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    try:
        query = (writer.trigger(**checked) if checked else writer).start()
    except Exception as error:  # Spark's own errors, and those of Java that it has no class for
        raise _cannot_start(table, checkpoint, error) from error
    intake.stream_id.set_result(str(query.id))
    return query


def _cannot_start(table: str, checkpoint: str, error: Exception) -> UnsupportedOperation:
    thrown = getattr(error, "java_exception", None)
    why = str(error if thrown is None else thrown.toString()).splitlines()[0]
    return UnsupportedOperation(
        f"Spark cannot start the stream into table '{table}' with checkpoint '{checkpoint}': {why}",
        hint="the checkpoint is a directory that Spark can write, in a file system that this Spark knows.",
    )


class _Intake:
    """What runs for each micro-batch, in a thread of Spark's."""

    def __init__(self, core: Core, table: str, mode: Mode) -> None:
        self._core = core
        self._table = table
        self._mode = mode
        self.stream_id: Future[str] = Future()

    def take(self, batch: DataFrame, number: int) -> None:
        """Commits a micro-batch, unless it is committed."""
        source = source_of_table(f"stream:{self.stream_id.result(START_TIMEOUT)}", self._table)
        last = self._core.last_batch(source)
        if last is not None and number <= last:
            return
        _check_follows(self._table, number, last)
        try:
            change = self._core.read_change(self._table, batch, self._mode)
            self._core.run([change], (source, number))
        except Exception as error:
            error.add_note(f"in micro-batch {number} of the stream into table '{self._table}'")
            raise


def _check_follows(table: str, number: int, last: int | None) -> None:
    expected = 0 if last is None else last + 1
    if number != expected:
        seen = "none of its batches" if last is None else f"its batches up to {last}"
        raise UnsupportedOperation(
            f"the stream into table '{table}' is at micro-batch {number}, and this database has {seen}: rows are missing.",
            hint="the checkpoint belongs to another database, or to one that lived in memory; start with a new one.",
        )


def _read_mode(mode: str) -> Mode:
    if mode not in MODES:
        hint = did_you_mean(str(mode), MODES) or f"it is one of {', '.join(MODES)}."
        raise UnsupportedOperation(f"a stream has no mode {mode!r}.", hint=hint)
    return Mode(mode)


def _read_trigger(trigger: Mapping[str, Any]) -> dict[str, Any]:
    """The trigger, checked, as ``DataStreamWriter.trigger`` takes it; empty for Spark's own: as fast as possible.

    >>> _read_trigger({"availableNow": True})
    {'availableNow': True}
    """
    given = {key: value for key, value in trigger.items() if value is not None}
    for key in given:
        if key in ("continuous", "realTime"):
            raise UnsupportedOperation(
                f"a stream into a table has no trigger '{key}': transactions are micro-batches.",
                hint="use processingTime.",
            )
        if key not in TRIGGERS:
            hint = did_you_mean(key, TRIGGERS) or f"it is one of {', '.join(TRIGGERS)}."
            raise UnsupportedOperation(f"a stream has no trigger or option '{key}'.", hint=hint)
    if len(given) > 1:
        raise UnsupportedOperation(f"a stream has one trigger, and {' and '.join(given)} were given.")
    return given


def _check_frame(frame: DataFrame) -> None:
    if getattr(frame, "isStreaming", None) is None:
        raise UnsupportedOperation(f"a stream is a streaming DataFrame, not {type(frame).__name__}.")
    if not frame.isStreaming:
        raise UnsupportedOperation(
            "the DataFrame is not a stream.", hint="make it with spark.readStream, or give its rows to table.insert()."
        )
    if not hasattr(frame, "_jdf"):
        raise UnsupportedOperation(
            "the DataFrame belongs to Spark Connect, whose micro-batches run in another process, without this database.",
            hint="use a Spark session of this process.",
        )


def _check_columns(core: Core, table: str, frame: DataFrame, mode: Mode) -> None:
    """Raises now what every batch would raise: the names and types of columns. The rows are judged when they come."""
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    core.read_change(table, empty.toArrow(), mode)
