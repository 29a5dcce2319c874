"""Rows that executors have written and no commit has added yet: changes too large for the driver, and what becomes of them.

A Z-set of a transaction is an Arrow table at the driver, or *far*: a ``StoredRelation`` over new segments, which lie in the
folder of the relation that they may become part of. Committing a far change adds its files as they are, so that rows which are
born on executors are written once and never come to the driver.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.stages import Stage
from everview.relational.nodes import Schema

Rows: TypeAlias = pa.Table | StoredRelation
"""Weighted rows: at the driver, or far."""


def count_rows(rows: Rows) -> int:
    """How many weighted rows there are."""
    return rows.num_rows if isinstance(rows, pa.Table) else rows.row_count


def brought_near(rows: StoredRelation, limit: int) -> Rows:
    """Far rows at the driver, and their files removed, where they are no more than ``limit``; else as they are."""
    if rows.row_count > limit:
        return rows
    near = rows.over(rows.segments).local(limit)
    remove_files([rows])
    return near


def remove_files(unused: Iterable[StoredRelation], kept: Iterable[Path] = ()) -> None:
    """Removes the files of far rows, but for those that a commit has added, and for a user's own."""
    stays = set(kept)
    for rows in unused:
        for segment in rows.segments:
            path = rows.folder / segment.path
            if path not in stays and not segment.is_outside:
                rows.drop_unused(segment)
                if path.parent != rows.folder and not any(path.parent.glob("*.parquet")):
                    shutil.rmtree(path.parent, ignore_errors=True)


@dataclass(frozen=True)
class Home:
    """The relation that an answer belongs to, and whether executors are to write it there, because it may be large."""

    relation: str
    fields: Schema
    is_far: bool = False


def own_home(stage: Stage, *, is_far: bool = False) -> Home:
    """Where a stage's output is at home."""
    return Home(stage.name, stage.fields, is_far)
