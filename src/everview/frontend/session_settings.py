"""Settings of the user's Spark session that change what a query means.

A setting whose whole effect is in the resolved plan (how names are found, how text is parsed, the time zone) is carried over to
our session and recorded with the view. A setting that changes how rows are computed, or how the text is read that the Spark
backend writes, is refused by name where it differs from Spark's default. All others concern speed or files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from everview.errors import UnsupportedOperation
from everview.frontend.translated import SessionSettings

TIME_ZONE = "spark.sql.session.timeZone"

_CARRIED = (
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.ansi.enforceReservedKeywords",
    "spark.sql.ansi.relationPrecedence",
    "spark.sql.caseSensitive",
    "spark.sql.groupByAliases",
    "spark.sql.groupByOrdinal",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.orderByOrdinal",
)
_REFUSED = (
    "spark.sql.ansi.enabled",
    "spark.sql.charAsVarchar",
    "spark.sql.chunkBase64String.enabled",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.function.concatBinaryAsString",
    "spark.sql.function.eltOutputAsString",
    "spark.sql.icu.caseMappings.enabled",
    "spark.sql.optimizer.optimizeUncorrelatedInSubqueriesInJoinCondition.enabled",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.parser.quotedRegexColumnNames",
    "spark.sql.preserveCharVarcharTypeInfo",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
)
_LEGACY = "spark.sql.legacy."
_ABOUT_FILES = tuple(
    _LEGACY + part
    for part in ("avro.", "bucketedTableScan.", "createHiveTableByDefault", "csv.", "json.", "orc.", "parquet.", "xml.")
)
"""Settings of ``spark.sql.legacy`` for data sources, which a query over tables of a database does not have."""
_ALWAYS = {"spark.sql.ansi.enabled": "true"}
"""Where Spark's own default depends on the environment (SPARK_ANSI_SQL_MODE)."""
_OF_THE_PLACE = ("spark.sql.warehouse.dir",)
_PLUGGED_IN = ("spark.sql.extensions", "spark.sql.catalog.", "spark.sql.catalogImplementation")


def apply_settings(settings: SessionSettings, session: SparkSession) -> None:
    """Gives a session of ours these settings, and Spark's defaults for the others that are carried."""
    values = {key: _default(session, key) for key in _CARRIED}
    for key, value in {**values, **dict(settings.others), TIME_ZONE: settings.time_zone}.items():
        if value is not None:
            session.conf.set(key, value)


def read_settings(session: SparkSession) -> SessionSettings:
    """The settings of a user's session.

    Raises:
        UnsupportedOperation: one of them makes Spark compute in a way that everview does not follow.
    """
    given: Mapping[str, str] = {**{key: session.conf.get(key) or "" for key in _ALWAYS}, **session.conf.getAll}
    for key in sorted(given):
        if _changes_values(key) and not _is_default(session, key, given[key]):
            wanted = _default(session, key)
            usual, remedy = f"with {wanted}", f"spark.conf.set('{key}', '{wanted}')"
            if wanted is None:
                usual, remedy = "without it", f"spark.conf.unset('{key}')"
            raise UnsupportedOperation(
                f"the Spark session has {key} = {given[key]}, and everview computes what Spark does {usual}: its answers "
                "would not be those of the session.",
                hint=f"{remedy}, or give connect a session for everview, spark.newSession().",
            )
    carried = {key: given[key] for key in _CARRIED if key in given and not _is_default(session, key, given[key])}
    zone = session.conf.get(TIME_ZONE)
    assert zone is not None, "Spark always has a time zone"
    return SessionSettings(zone, tuple(sorted(carried.items())))


def fingerprint(session: SparkSession) -> str:
    """A text that changes with any setting of the session; much cheaper than reading them all."""
    text: str = _java(session).conf().getAll().toString()
    return text


def analyzer_of(session: SparkSession) -> str | None:
    """A hash of what a new session beside this one reads queries with: the settings for SQL, Spark's version and Java's.

    None where catalogs or extensions are plugged in, which may resolve any name to anything.
    """
    settings = {*_java(session).conf().getAll().mkString("\n").splitlines()}
    jvm: Any = session._jvm
    context: Any = session.sparkContext
    settings |= {*context._conf.toDebugString().splitlines()}
    settings = {line for line in settings if not line.startswith("spark.") or line.startswith("spark.sql.")}
    settings = {line for line in settings if not line.startswith(_OF_THE_PLACE)}
    if any(line.startswith(_PLUGGED_IN) and not line.endswith("in-memory") for line in settings):
        return None
    known = (*sorted(settings), session.version, jvm.java.lang.System.getProperty("java.version"))
    return hashlib.blake2b("\0".join(known).encode(), digest_size=16).hexdigest()


def has_own_names(session: SparkSession) -> bool:
    """Whether the catalog that all sessions of this Spark share has a table, view or function of the user's."""
    java = _java(session)
    catalog, shared = java.sessionState().catalog().externalCatalog(), java.sharedState()
    found: str = catalog.listDatabases().mkString(" ")
    listed = (catalog.listTables("default"), catalog.listFunctions("default", "*"))
    return found != "default" or any(names.nonEmpty() for names in (*listed, _global_views(shared)))


def _global_views(shared: Any) -> Any:
    return shared.globalTempViewManager().listViewNames("*")


@contextmanager
def working_in(session: SparkSession) -> Iterator[None]:
    """Makes a session the active one, whose settings Catalyst's rules read; afterwards the active one is as before."""
    jvm: Any = session._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before, before_in_python = sessions.getActiveSession(), SparkSession._activeSession
    sessions.setActiveSession(_java(session))
    try:
        yield
    finally:
        SparkSession._activeSession = before_in_python
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _changes_values(key: str) -> bool:
    return key in _REFUSED or (key.startswith(_LEGACY) and not key.startswith(_ABOUT_FILES))


def _is_default(session: SparkSession, key: str, value: str) -> bool:
    """Whether Spark would do the same without the setting; one that it knows and has no default for decides something."""
    default = _default(session, key)
    return not session.conf.isModifiable(key) if default is None else value.lower() == default.lower()


def _default(session: SparkSession, key: str) -> str | None:
    """What Spark takes without the setting; None where it has no such setting, or no value for it."""
    if key in _ALWAYS:
        return _ALWAYS[key]
    untouched: Any = session._jvm.org.apache.spark.sql.internal.SQLConf()  # type: ignore[union-attr]  # PySpark: Optional
    try:
        default: str = untouched.getConfString(key)
    except (PySparkException, Py4JJavaError):  # Spark knows of no such setting, or it has no default
        return None
    return default


def _java(session: SparkSession) -> Any:
    java = getattr(session, "_jsparkSession", None)
    if java is None:
        raise UnsupportedOperation(
            "a session of Spark Connect does not show how it resolves queries.",
            hint="give connect a session of a classic Spark driver.",
        )
    return java
