"""What a Spark session that we would start ourselves depends on, read without starting it.

Spark's settings come from variables of the environment and from files of Spark's configuration; its time zone is that of the
machine; its analyzer is that of the Java and the Spark it runs on. Two processes in which all of this is the same would start
sessions in which a query means the same.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

_VARIABLES = ("SPARK", "PYSPARK", "JAVA", "JDK", "_JAVA", "HADOOP", "HIVE", "LANG", "LC_", "TZ")
_CONFIGURATION = ("spark-defaults.conf", "spark-env.sh", "hive-site.xml", "core-site.xml")
_TIME_ZONE = (Path("/etc/timezone"), Path("/etc/localtime"))


def environment_of_spark() -> str:
    """A hash of all that decides what a session of our own would be."""
    hashed = hashlib.blake2b(digest_size=16)
    for name in sorted(os.environ):
        if name.startswith(_VARIABLES):
            hashed.update(f"{name}={os.environ[name]}\0".encode(errors="surrogateescape"))
    for path in (*_TIME_ZONE, *(folder / name for folder in _configuration_folders() for name in _CONFIGURATION)):
        hashed.update(f"{path}={path.resolve()}\0".encode() + _content(path) + b"\0")
    java = java_home()
    hashed.update(f"java={java}\0".encode() + _content(java / "release"))
    return hashed.hexdigest()


def is_spark_running() -> bool:
    """Whether this process has a Spark context; asked without importing pyspark, which takes half a second."""
    module = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    return module is not None and module.SparkContext._active_spark_context is not None


def zone_of_active_session() -> str | None:
    """The time zone of the Spark session that is active in this process, None where Spark does not run."""
    if not is_spark_running():
        return None
    known = sys.modules["pyspark.sql"].SparkSession
    session = (
        known.getActiveSession() or known._instantiatedSession
    )  # the second in threads that have not used Spark yet
    return None if session is None else str(session.conf.get("spark.sql.session.timeZone"))


def _configuration_folders() -> list[Path]:
    given = os.environ.get("SPARK_CONF_DIR")
    home = os.environ.get("SPARK_HOME")
    if given or home:
        return [Path(given)] if given else [Path(home or "") / "conf"]
    found = importlib.util.find_spec("pyspark")
    return [Path(place) / "conf" for place in (found.submodule_search_locations or ())] if found else []


def java_home() -> Path:
    """Where the Java is installed that Spark would run on."""
    home = os.environ.get("JAVA_HOME")
    return Path(home).resolve() if home else Path(shutil.which("java") or "java").resolve().parent.parent


def _content(path: Path) -> bytes:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).digest()
    except OSError:
        return b""
