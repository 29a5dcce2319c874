"""What plans scan: the sources of their scans by name, and as temporary views of Spark."""

from __future__ import annotations

from collections.abc import Mapping

from everview.backends.spark.far_rows import Rows
from everview.backends.spark.restrict import BoundSource, Source, source_of
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.term_plans import scan_name
from everview.backends.spark.terms import Term
from everview.relational.nodes import Relation, Scan, Schema
from everview.relational.traverse import nodes_of


def named_sources(terms: tuple[Term, ...], sources: tuple[tuple[Source | None, ...], ...]) -> dict[str, BoundSource]:
    """The sources of terms by the names of their scans."""
    pairs = ((k, j, s) for k, own in enumerate(sources) for j, s in enumerate(own))
    return {scan_name(k, j): BoundSource(s, terms[k].used[j]) for k, j, s in pairs if s is not None}


def rows_source(rows: Rows) -> BoundSource:
    """The rows of a change."""
    return BoundSource(source_of(None, rows))


def views_of(plan: Relation, sources: Mapping[str, BoundSource], engine: SparkEngine, limit: int) -> dict[str, str]:
    """A temporary view for every scan of a plan: what is at the driver, and what is on disk."""
    scans = {n.table: n.fields for n in nodes_of(plan) if isinstance(n, Scan)}
    return {name: _view_of(sources[name], fields, engine, limit) for name, fields in scans.items()}


def _view_of(bound: BoundSource, fields: Schema, engine: SparkEngine, limit: int) -> str:
    rows, relation = bound.local(limit), bound.source.relation
    remote = [] if relation is None else relation.remote(limit)
    if relation is None or not remote:
        return engine.view_of_rows(rows, fields)
    chosen = [*bound.chosen(), len(relation.fields)]
    listed = ", ".join(f"c{c} AS c{i}" for i, c in enumerate(chosen))
    text = f"SELECT {listed} FROM {engine.view_of_segments(relation, remote)}"
    if not rows.num_rows:
        return engine.view_of_sql(text)
    near = engine.view_of_rows(rows, fields)
    try:
        return engine.view_of_sql(f"{text} UNION ALL SELECT * FROM {near}")
    finally:  # it is resolved at once
        engine.drop([near])
