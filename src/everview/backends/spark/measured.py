"""``explain(mode="analyze")`` on Spark: what the stages of a view have done since the database was opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from everview.backends.spark.spark_engine import SparkEngine


@dataclass(slots=True)
class StageWork:
    """Rows of the changes that came in and went out, what Spark was asked to run for that, and the time of all."""

    rows_in: int = 0
    rows_out: int = 0
    runs: int = 0
    seconds: float = 0.0

    @contextmanager
    def timed(self, engine: SparkEngine) -> Iterator[None]:
        """Takes the time of some work."""
        started, runs = perf_counter(), engine.runs
        yield
        self.seconds += perf_counter() - started
        self.runs += engine.runs - runs

    def add(self, other: StageWork) -> None:
        """Adds what one transaction did."""
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.runs += other.runs
        self.seconds += other.seconds

    def text(self, size: int) -> str:
        """For ``explain``, with the bytes that the stage keeps."""
        parts = [f"{self.rows_in:,} rows in", f"{self.rows_out:,} rows out"]
        if self.rows_in:
            parts.append(f"fan-out {self.rows_out / self.rows_in:,.3g}")
        return "; ".join([*parts, f"{self.seconds:.6f} s", f"{size:,} bytes on disk", f"{self.runs:,} runs on Spark"])


def add_work(to: dict[str, StageWork], done: Mapping[str, StageWork]) -> None:
    """Adds what a transaction did, by stage."""
    for stage, work in done.items():
        to.setdefault(stage, StageWork()).add(work)
