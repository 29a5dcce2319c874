"""What a piece of work made Spark do: its jobs, what they were for, and the bytes that were read.

Jobs are all that the scheduler was given, whoever asked. Bytes are those of Spark's tasks by their own metrics, and those of
this process (which reads small segments and Delta logs itself) by the operating system's count, where there is one. Parquet's
vectored reading, whose bytes Spark does not count, is switched off while a suite counts, for both sides alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VECTORED = "parquet.hadoop.vectored.io.enabled"
_SCAN = re.compile(r"Scan parquet[^\n]*\nOutput \[(\d+)\].*?\nLocation: ([^\n]*)", re.DOTALL)
_RELATION = re.compile(r"/relations/([^/\]]+)-\d+/")
_WRITING = "InsertIntoHadoopFsRelationCommand"
_OWN_READS = Path("/proc/self/io")


@dataclass
class Counted:
    """The counts of a piece of work, complete when it is over.

    Attributes:
        jobs: Spark jobs.
        bytes_read: By Spark's tasks.
        driver_bytes: By this process; None where the operating system does not say.
        purposes: Jobs by what they read (see ``purposes_of``).
    """

    jobs: int = 0
    bytes_read: int = 0
    driver_bytes: int | None = None
    purposes: Mapping[str, int] = field(default_factory=dict)

    @property
    def explained(self) -> str:
        """The purposes in a line."""
        return ", ".join(f"{count} {purpose}" for purpose, count in sorted(self.purposes.items())) or "none"


class Counters:
    """Counts on one Spark session's context. Made by ``counting``."""

    def __init__(self, spark: SparkSession) -> None:
        # No public interface of PySpark has these: the scheduler's number of jobs, and the stores behind its web pages.
        self._context: Any = spark.sparkContext._jsc.sc()
        self._statements: Any = spark._jsparkSession.sharedState().statusStore()

    @contextmanager
    def counted(self) -> Iterator[Counted]:
        """Counts what happens inside."""
        counted = Counted()
        jobs, read, own, statement = self._jobs(), self._bytes(), own_bytes(), self._last_statement()
        yield counted
        after = own_bytes()
        counted.jobs = self._jobs() - jobs
        counted.bytes_read = self._bytes() - read
        counted.driver_bytes = None if own is None or after is None else after - own
        counted.purposes = self._purposes(statement, counted.jobs)

    def _jobs(self) -> int:
        return int(self._context.dagScheduler().numTotalJobs())

    def _bytes(self) -> int:
        self._context.listenerBus().waitUntilEmpty()
        return int(self._context.statusStore().executorSummary("driver").totalInputBytes())

    def _last_statement(self) -> int:
        listed = self._statements.executionsList()
        return int(listed.last().executionId()) if listed.size() else -1

    def _purposes(self, since: int, jobs: int) -> dict[str, int]:
        """The jobs of the statements after one, by what their plans read."""
        listed = self._statements.executionsList()
        found: Counter[str] = Counter()
        for at in range(listed.size() - 1, -1, -1):
            statement = listed.apply(at)
            if statement.executionId() <= since:
                break
            own = int(statement.jobs().size())
            if own:
                found.update(purposes_of(statement.physicalPlanDescription(), own))
        if jobs > found.total():
            found["outside of statements"] = jobs - found.total()
        return dict(found)


def purposes_of(plan: str, jobs: int) -> dict[str, int]:
    """What the jobs of a plan were for: one for each broadcast, the others for the files read, with the number of columns.

    Args:
        plan: The statement's plan in Spark's formatted form.
        jobs: How many jobs it had.
    """
    final = plan.split("== Initial Plan ==", maxsplit=1)[0]
    scans = {
        f"{relation[1] if (relation := _RELATION.search(location)) else 'other files'} ({columns} columns)"
        for columns, location in _SCAN.findall(plan)
    }
    broadcasts = min(jobs - 1, len(set(re.findall(r"BroadcastExchange \((\d+)\)", final))))
    told = {"broadcast": broadcasts} if broadcasts else {}
    read = " with ".join(sorted(scans)) or "rows of the driver"
    return {**told, f"{read} rewritten" if _WRITING in plan else read: jobs - broadcasts}


def own_bytes() -> int | None:
    """What this process has read so far, files and pipes, from the operating system or its cache."""
    try:
        lines = _OWN_READS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.partition(":")[2]) for line in lines if line.startswith("rchar")), None)


@contextmanager
def counting(spark: SparkSession) -> Iterator[Counters]:
    """Counters, and Parquet read in the way that Spark counts."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.get(_VECTORED)
    settings.set(_VECTORED, "false")
    try:
        yield Counters(spark)
    finally:
        if before is None:
            settings.unset(_VECTORED)
        else:
            settings.set(_VECTORED, before)
