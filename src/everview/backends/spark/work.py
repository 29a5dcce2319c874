"""One transaction under way, or the making of a view: what has moved so far, and what is to be written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from everview.backends.spark.commit_log import Move
from everview.backends.spark.far_rows import Rows
from everview.backends.spark.measured import StageWork
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import Segment
from everview.backends.spark.spark_engine import SparkEngine


@dataclass
class Work:
    """One transaction (or the making of a view) under way: what has moved, and what is to be written."""

    changes: dict[str, Rows] = field(default_factory=dict)
    """The delta of every relation that has moved so far: weighted rows."""
    appended: dict[str, Rows] = field(default_factory=dict)
    """Weighted rows to add to stored relations; far ones lie in their folders."""
    written: list[StoredRelation] = field(default_factory=list)
    """All far rows that executors have written: what no commit adds is removed in the end."""
    outside: dict[str, Move] = field(default_factory=dict)
    """How the files of external tables move, which are not ours to write."""
    replaced: dict[str, list[Segment] | pa.Table] = field(default_factory=dict)
    """The whole new content of stored relations: rows, or segments that executors have written."""
    scratch: dict[str, StoredRelation] = field(default_factory=dict)
    """Where executors wrote contents that are needed only on the way."""
    done: dict[str, StageWork] = field(default_factory=dict)
    """What each stage has done, by name."""

    @contextmanager
    def timed(self, stage: str, engine: SparkEngine) -> Iterator[StageWork]:
        """Puts the time of some work on the account of a stage."""
        done = self.done.setdefault(stage, StageWork())
        with done.timed(engine):
            yield done

    @property
    def seconds(self) -> dict[str, float]:
        """What the stages took, by name."""
        return {name: done.seconds for name, done in self.done.items()}

    def forget_scratch(self) -> None:
        """Removes what was needed only on the way."""
        for relation in self.scratch.values():
            shutil.rmtree(relation.folder, ignore_errors=True)
