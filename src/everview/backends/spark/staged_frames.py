"""DataFrames that users give as changes, written by executors into the table's folder: they never come to the driver.

One Spark job reads the DataFrame, converts and checks its rows, and writes them as segments. A value is converted without loss
or not at all, as everywhere (``session.rows``):

    x of type S fits a column of type T   exactly if   (x as T) as S = x

What does not fit is counted by the same job, with an example; then nothing of the change stays. Segments that no commit has
added are removed when the change is forgotten.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.spark.far_rows import brought_near, remove_files
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.sql_literals import literal_sql, type_sql
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.relational.arrow import arrow_schema
from everview.relational.column_names import WEIGHT
from everview.relational.nodes import Field
from everview.relational.quoting import quote
from everview.relational.types import STRING, Array, DataType, Float32, Float64, Struct, is_floating

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEAR_BYTES: Final = 32 * 2**20
"""DataFrames that Spark takes for no larger than this are asked for by the driver first, up to ``local_rows`` rows."""
_SIGNS: Final = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
_EXACT: Final = {Float32: 2**24, Float64: 2**53}


class StagedChange(Change):
    """A change whose rows executors have written: ``staged`` has them, with their weights.

    Args:
        table: The table that it changes.
        kind: How its rows act.
        staged: The rows; of a delete by key, the keys.
        has_deletes: Whether some weights are negative.
    """

    __slots__ = ("__weakref__", "_read", "_remains", "has_deletes", "staged")

    def __init__(self, table: TableDefinition, kind: ChangeKind, staged: StoredRelation, has_deletes: bool) -> None:
        self.table = table.name
        self.kind = kind
        self.decomposed = None
        self.staged = staged
        self.has_deletes = has_deletes
        self._read: tuple[pa.Table, pa.Array] | None = None
        self._remains = weakref.finalize(self, remove_files, [staged])
        self._remains.atexit = True

    @property
    def row_count(self) -> int:
        """The number of rows, not one of them read."""
        return self.staged.row_count

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return arrow_schema(self.staged.fields)

    @property
    def given(self) -> pa.Table:
        """The rows, read by the driver."""
        return self._near()[0]

    @property
    def weights(self) -> pa.Array | None:  # type: ignore[override]
        """Their weights."""
        return self._near()[1] if self.kind is ChangeKind.WEIGHTED else None

    def _near(self) -> tuple[pa.Table, pa.Array]:
        if self._read is None:
            *columns, weights = self.staged.over(self.staged.segments).local(self.row_count).columns
            schema = self.schema
            rows = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
            self._read = rows, weights.combine_chunks()
        return self._read

    @property
    def paths(self) -> set[Path]:
        """Its files: a vacuum leaves them alone."""
        return {self.staged.folder / s.path for s in self.staged.segments}

    __eq__ = object.__eq__  # one change is not another that looks like it, and telling would mean reading
    __hash__ = object.__hash__

    def keep(self) -> None:
        """Its files belong to a commit now."""
        self._remains.detach()


@dataclass(frozen=True, slots=True)
class _Checked:
    """A column of the change: its value, and which values of which given column are refused, in what words."""

    value: str
    refused: str
    example: str
    words: str


def near_rows(frame: DataFrame, limit: int) -> pa.Table | None:
    """The rows of a DataFrame that Spark takes for small, if they are no more than ``limit``; None if they are many."""
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    if int(str(plan.stats().sizeInBytes())) > NEAR_BYTES:
        return None
    rows: pa.Table = frame.limit(limit + 1).toArrow()
    return rows if rows.num_rows <= limit else None


def staged_change(
    table: TableDefinition, frame: DataFrame, mode: str, home: StoredRelation, engine: SparkEngine, limit: int
) -> Change:
    """The change that a DataFrame brings, whose columns have been found to fit by name and type.

    Args:
        table: The table.
        frame: The rows.
        mode: Which call brought them: the value of a ``session.rows.given_rows.Mode``.
        home: The table's relation; for a delete by key one of the keys.
        engine: Spark.
        limit: Up to so many rows are brought to the driver.

    Raises:
        InvalidChange: some value does not fit.
    """
    given = {f.name.lower(): f for f in frame.schema.fields}
    columns = [_column(table, field, given[field.name.lower()]) for field in home.fields]
    weight = _weight(table, given, mode)
    checks = [*columns, *([] if weight.refused == "false" else [weight])]
    counted = [f"count_if(coalesce({c.refused}, false)) AS n{i}" for i, c in enumerate(checks)]
    shown = [
        f"max(CASE WHEN {c.refused} THEN CAST({c.example} AS STRING) END) AS e{i}" if c.example else f"NULL AS e{i}"
        for i, c in enumerate(checks)
    ]
    negative = f"count_if(({weight.value}) < 0) AS negative"
    values = [*(c.value for c in columns), weight.value]
    listed = [f"{value} AS c{i}" for i, value in enumerate(values)]
    segments, seen = engine.write_observed(frame, listed, [*counted, *shown, negative], home)
    staged = home.over(segments, is_far=True)
    for i, check in enumerate(checks):
        if seen[f"n{i}"]:
            remove_files([staged])
            raise _invalid(table, check.words, seen[f"n{i}"], seen[f"e{i}"])
    kind = {"upsert": ChangeKind.UPSERT, "delete_keys": ChangeKind.DELETE_KEYS}.get(mode, ChangeKind.WEIGHTED)
    change = StagedChange(table, kind, staged, bool(seen["negative"]))
    if change.row_count > limit:
        return change
    near = Change(table.name, kind, change.given, change.weights if change.row_count else None)
    brought_near(staged, limit)
    return near


def _column(table: TableDefinition, field: Field, given: Any) -> _Checked:
    name, source = quote(given.name), given.dataType.simpleString()
    wanted = type_sql(field.type)
    is_same = source.lower() == given.dataType.fromDDL(wanted).simpleString().lower()
    value = name if is_same else f"try_cast({name} AS {wanted})"
    tests = [] if field.nullable else [f"{name} IS NULL"]
    words = f"column '{field.name}' of table '{table.name}' is {field.type}"
    if field.name in table.primary_key:
        words = f"column '{field.name}' of table '{table.name}' is in the primary key"
    elif not field.nullable:
        words += " NOT NULL"
    if not is_same and source != "void":
        back = f"try_cast({value} AS {given.dataType.simpleString()})"
        tests.append(f"({name} IS NOT NULL AND NOT ({back} <=> {name}))")
        if is_floating(field.type) and source in ("tinyint", "smallint", "int", "bigint"):
            most = _EXACT[type(field.type)]
            tests.append(f"{name} NOT BETWEEN -{most} AND {most}")
    inside = _null_inside(value, field.type)
    if inside is not None:
        tests.append(inside)
    return _Checked(_canonical(value, field.type), " OR ".join(tests) or "false", name, words)


def _null_inside(value: str, data_type: DataType, depth: int = 0) -> str | None:
    """Whether an array that must not have NULLs has one; None where that cannot be."""
    match data_type:
        case Array(element, contains_null):
            item = f"e{depth}"
            deeper = _null_inside(item, element, depth + 1)
            tests = [*([] if contains_null else [f"{item} IS NULL"]), *([] if deeper is None else [deeper])]
            return f"coalesce(exists({value}, {item} -> {' OR '.join(tests)}), false)" if tests else None
        case Struct(names, types):
            inside = (_null_inside(f"{value}.{quote(n)}", t, depth) for n, t in zip(names, types, strict=True))
            found = [i for i in inside if i is not None]
            return " OR ".join(found) or None
        case _:
            return None


def _canonical(value: str, data_type: DataType, depth: int = 0) -> str:
    """The value with floats in their one form: 0.0 for -0.0, and one NaN."""
    match data_type:
        case Float32() | Float64():
            nan = literal_sql(float("nan"), data_type)
            zero = literal_sql(0.0, data_type)
            return f"CASE WHEN isnan({value}) THEN {nan} WHEN {value} = {zero} THEN {zero} ELSE {value} END"
        case Array(element, _):
            item = f"e{depth}"
            inner = _canonical(item, element, depth + 1)
            return value if inner == item else f"transform({value}, {item} -> {inner})"
        case Struct(names, types):
            parts = [_canonical(f"{value}.{quote(n)}", t, depth) for n, t in zip(names, types, strict=True)]
            if all(p == f"{value}.{quote(n)}" for p, n in zip(parts, names, strict=True)):
                return value
            listed = ", ".join(f"{literal_sql(n, STRING)}, {p}" for n, p in zip(names, parts, strict=True))
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({listed}) END"
        case _:
            return value


def _weight(table: TableDefinition, given: dict[str, Any], mode: str) -> _Checked:
    sign = -1 if mode == "delete" else 1
    if "_change_type" in given:
        name = quote(given["_change_type"].name)
        signs = " ".join(f"WHEN '{word}' THEN {n}L" for word, n in _SIGNS.items())
        known = ", ".join(f"'{word}'" for word in _SIGNS)
        refused = f"({name} IS NULL OR {name} NOT IN ({known}))"
        words = f"the _change_type column for table '{table.name}' is one of {', '.join(_SIGNS)}"
        return _Checked(f"CASE {name} {signs} END", refused, name, words)
    if WEIGHT not in given:
        return _Checked(f"{sign}L", "false", "", "")
    name = quote(given[WEIGHT].name)
    refused = f"({name} IS NULL OR {name} {'=' if mode == 'apply' else '<='} 0)"
    allowed = "other than" if mode == "apply" else "above"
    words = f"the {WEIGHT} column for table '{table.name}' is of numbers {allowed} 0"
    return _Checked(f"{sign} * CAST({name} AS BIGINT)", refused, name, words)


def _invalid(table: TableDefinition, words: str, count: int, example: str | None) -> InvalidChange:
    has = "NULL" if example is None else example
    rows = "row" if count == 1 else "rows"
    return InvalidChange(
        f"{words}, but has {has} in {count:,} {rows} of the DataFrame.",
        hint=f"look for them with DataFrame.where before the rows go to table '{table.name}'.",
    )
