"""Reading a database's relations: whole, by value, by query, as DataFrames, and at older versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.backends.spark.database_files import DatabaseFiles
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.maintain import Maintenance
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.restrict import BoundSource, Restriction, Source
from everview.backends.spark.segments import Segment, by_position, empty_rows
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.table_changes import content_rows
from everview.backends.spark.term_plans import consolidated, expanded, weighted
from everview.errors import UnsupportedOperation
from everview.relational.arrow import arrow_schema, rows_to_arrow
from everview.relational.column_names import find_column
from everview.relational.expressions import Call, Cast, Column, Literal, SparkExpression, conjunction, walk
from everview.relational.nodes import (
    Filter,
    Relation,
    Scan,
    Schema,
)
from everview.relational.schema import schema
from everview.relational.traverse import expressions_in, inputs, nodes_of, with_inputs
from everview.relational.types import BOOLEAN, Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Reading:
    """Reads the current version, unless told otherwise."""

    def __init__(self, files: DatabaseFiles, engine: SparkEngine, limit: int) -> None:
        self._files = files
        self._engine = engine
        self._limit = limit

    def content(self, name: str, fields: Schema) -> pa.Table:
        """The bag of a relation, read by the driver: who asks for Arrow wants it here."""
        relation = self._files.relations[name]
        remote = relation.remote(self._limit)
        parts = [relation.rows_of(s, keep=s not in remote) for s in relation.segments]
        stored = pa.concat_tables(parts) if parts else empty_rows((*fields, WEIGHT))
        return content_rows(stored, fields).cast(arrow_schema(fields))

    def lookup(self, name: str, fields: Schema, key: Mapping[str, Value]) -> pa.Table:
        """The rows with these values; None finds NULL."""
        relation = self._files.relations[name.lower()]
        by = tuple(find_column(f"'{name}'", fields, column) for column in key)
        wanted_fields = tuple(fields[i] for i in by)
        found = relation.local(self._limit)
        if by and relation.remote(self._limit):
            keys = by_position(rows_to_arrow([tuple(key.values())], wanted_fields))
            found = Restriction(self._engine, self._limit, "UTC").stored_rows(relation, by, keys)
        scan = Scan("t", weighted(fields))
        tests = tuple(
            Call("<=>", (Column(i, fields[i].type, fields[i].nullable), Literal(v, fields[i].type)), BOOLEAN)
            for i, v in zip(by, key.values(), strict=True)
        )
        plan = consolidated(Filter(scan, conjunction(tests)) if tests else scan)
        return content_rows(run_locally(plan, {"t": found}), fields).cast(arrow_schema(fields))

    def query(self, plan: Relation) -> pa.Table:
        """The bag of an ad-hoc plan."""
        over, bounds = self._over_contents(plan)
        maintenance = Maintenance(self._files.relations, self._engine, self._limit, self._files.new_relation)
        found = maintenance.run(over, bounds, zone_of(plan))
        fields = schema(plan)
        if not fields:
            return found
        wanted = arrow_schema(fields)
        arrays = [c if c.type == f.type else c.cast(f.type) for c, f in zip(found.columns, wanted, strict=True)]
        return pa.Table.from_arrays(arrays, schema=wanted)

    def _over_contents(self, plan: Relation) -> tuple[Relation, dict[str, BoundSource]]:
        """The plan with every scan of a bag replaced by the bag of a scanned Z-set."""
        bounds: dict[str, BoundSource] = {}
        done: dict[int, Relation] = {}

        def visit(node: Relation) -> Relation:
            if id(node) not in done:
                if isinstance(node, Scan):
                    name = node.table.lower()
                    bounds[name] = BoundSource(Source(self._files.relations[name], None))
                    done[id(node)] = expanded(consolidated(Scan(name, weighted(node.fields))))
                else:
                    done[id(node)] = with_inputs(node, tuple(visit(i) for i in inputs(node)))
            return done[id(node)]

        return visit(plan), bounds

    def frame(self, name: str, fields: Schema, version: int | None) -> DataFrame:
        """The content as a DataFrame of the user's columns, at the current version or an older one."""
        relation = self._files.relations[name]
        segments = relation.segments if version is None else self._segments_at(relation, version)
        user = self._engine.user_session
        return self.bag_frame(self._engine.frame_of_segments(relation, segments, user), fields)

    def bag_frame(self, rows: DataFrame, fields: Schema) -> DataFrame:
        """Weighted rows of a relation as the bag that users see."""
        plan = expanded(consolidated(Scan("t", weighted(fields))))
        return self._engine.for_user(rows, plan, [f.name for f in fields])

    def _segments_at(self, relation: StoredRelation, version: int) -> list[Segment]:
        record = self._files.record_at(version)
        place = None if record is None else record.relations.get(relation.name)
        if place is None or place[0] != relation.folder.name:
            raise UnsupportedOperation(
                f"'{relation.name}' at version {version} is not kept; the database is at version {self._files.last.version}.",
                hint="vacuum removes older versions; a view has none from before it was made.",
            )
        return relation.segments_at(place[1])


def zone_of(plan: Relation) -> str:
    """The time zone that some expression of a plan depends on; any will do where none does."""
    for node in nodes_of(plan):
        for expression in expressions_in(node):
            for part in walk(expression):
                if isinstance(part, Call | Cast | SparkExpression) and part.zone is not None:
                    return part.zone
    return "UTC"
