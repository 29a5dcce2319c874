"""Plans over rows that are at the driver, evaluated by the embedded kernels: no Spark job.

A plan is compiled once for rows of about as many: a maintained view runs the same plans in every transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.graph import Programs
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema, canonical_floats
from everview.relational.nodes import Field, Relation, Scan, Schema
from everview.relational.schema import schema
from everview.relational.traverse import nodes_of

_SMALL: Final = 10
"""Up to so many bits, numbers of rows are all the same to the planner."""
_SAME_SIZE: Final = 4
"""Above, those with the same number of bits, counted by so many, are planned for alike."""
_KEPT_PROGRAMS: Final = 1024
_programs: dict[tuple[int, ...], Programs] = {}
"""The programs of plans, by the sizes of what they read."""


def run_locally(plan: Relation, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The bag of a plan; ``tables`` holds the rows of every scan, columns in its order whatever their names."""
    engine = EmbeddedBackend(history=0)
    scans = {n.table: n.fields for n in nodes_of(plan) if isinstance(n, Scan)}
    changes = []
    for name, fields in scans.items():
        own = positional(fields)
        engine.create_table(TableDefinition(name, own))
        rows = tables[name]
        if rows.num_rows:
            changes.append(Change(name, ChangeKind.WEIGHTED, as_arrow(rows, own)))
    if changes:
        engine.apply(changes)
    sizes = tuple(max(0, tables[name].num_rows.bit_length() - _SMALL) // _SAME_SIZE for name in scans)
    if sum(map(len, _programs.values())) > _KEPT_PROGRAMS:
        _programs.clear()
    return engine.query(plan, _programs.setdefault(sizes, {})).rename_columns(
        [f"c{i}" for i in range(len(schema(plan)))]
    )


def positional(fields: Schema) -> Schema:
    """The columns named by position."""
    return tuple(Field(f"c{i}", f.type, f.nullable) for i, f in enumerate(fields))


def as_arrow(rows: pa.Table, fields: Schema) -> pa.Table:
    """The rows with exactly the Arrow types of these columns, floats in their one form."""
    wanted = arrow_schema(fields)
    arrays = [
        canonical_floats(c if c.type == f.type else c.cast(f.type), d.type)
        for c, f, d in zip(rows.columns, wanted, fields, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=wanted)
