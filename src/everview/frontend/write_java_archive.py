"""The process that makes an archive of the classes Spark loads: ``python -m everview.frontend.write_java_archive FILE``.

It starts Spark as a first view does, translates a query and waits until the JVM has written what it loaded. The file gets its
name when it is whole.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkContext

from everview.frontend.gateway import JAVA_OPTIONS, SparkGateway
from everview.frontend.java_archive import writing_options
from everview.relational.nodes import Field
from everview.relational.types import INT32, STRING

_SECONDS_TO_WRITE = 300.0
_QUERY = """
SELECT a.k, COUNT(*) AS n, SUM(a.v) AS s, MAX(b.v) AS m
FROM t AS a JOIN t AS b ON a.v = b.v WHERE a.k LIKE 'x%' AND a.v IN (SELECT v FROM t WHERE v > 1)
GROUP BY a.k HAVING COUNT(*) > 1
"""


def write_archive(archive: Path) -> None:
    """Writes the archive, or nothing."""
    if hasattr(os, "nice"):
        os.nice(19)
    unfinished = archive.with_name(f"{archive.name}.{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{JAVA_OPTIONS} {writing_options(unfinished)}"
    gateway = SparkGateway()
    gateway.register("t", (Field("k", STRING), Field("v", INT32)))
    gateway.translate(_QUERY)
    gateway.user_session.stop()
    java = SparkContext._gateway
    assert java is not None, "the session was started here"
    java.shutdown()
    java.proc.stdin.close()  # at the end of its input the JVM exits, and writes
    try:
        if java.proc.wait(_SECONDS_TO_WRITE) == 0 and unfinished.exists():
            unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]))
