"""``explain(mode="triggers")`` of a view on both backends, without the lines that say where one does otherwise, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from itertools import pairwise

from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.spark.explain import EXPLAINERS
from everview.backends.spark.view_programs import ViewPrograms
from everview.catalog import TableDefinition, ViewDefinition


def embedded_triggers(view: ViewDefinition, tables: Mapping[str, TableDefinition]) -> str:
    """What the embedded backend prints."""
    embedded = EmbeddedBackend()
    for table in tables.values():
        embedded.create_table(table)
    embedded.create_view(view)
    return embedded.explain(view.name, "triggers")


def spark_triggers(view: ViewDefinition, tables: Mapping[str, TableDefinition]) -> str:
    """What the Spark backend prints."""
    program, _ = ViewPrograms(tables, {}).make(view, frozenset(), lambda _: 0)
    return EXPLAINERS["triggers"](view, program, ())


def assert_same_program(view: ViewDefinition, tables: Mapping[str, TableDefinition]) -> None:
    """Both print the same program, but for lines that say why they differ."""
    ours, theirs = embedded_triggers(view, tables), spark_triggers(view, tables)
    reading_tests = {
        line.partition(" := ")[0]
        for line, following in pairwise(ours.splitlines())
        if following.startswith("  on embedded: ")
    }
    if _RANGE.search(ours):
        assert "on Spark: " in theirs
        assert "no view is kept in order" in theirs
    if _SEARCH.search(ours):
        assert "nothing is kept in order" in theirs
    assert _common(_RANGE.sub(_unordered, ours), reading_tests) == _common(theirs, reading_tests)
    assert "on Spark: " in theirs


def assert_same_but_for_order(ours: str, theirs: str) -> None:
    """Both print the same, but for the rows that turn, the join in their place, and the numbers of what comes after it."""
    own, other = (Counter(_NUMBER.sub("#", line) for line in _common(text, set())) for text in (ours, theirs))
    assert all(_TURNING.fullmatch(line) for line in own - other), own - other
    assert all(_COMPARED.fullmatch(line) for line in other - own), other - own


_NUMBER = re.compile(r"#\d+")
_TURNING = re.compile(
    r"# := rows of # where .*"
    r"|  δ# := σ δ#"
    r"|  δ# \+= rows of # between old and new # .*"
    r"|# := project \[cast\(.* as value_0\] of # .*"
)
"""The statement, its two rules, and what rows are compared with, which it wants as one column of the same type."""
_COMPARED = re.compile(
    r"# := inner join on \(cast\(.* of #, # .*"
    r"|# := project \[.*\] of # .*"
    r"|  δ# (:=|\+=) (δ# ⋈ #|# ⋈ δ#)    -- range of #, in the order of .*"
    r"|  δ# := π δ#"
    r"|  # \+= δ#"
)
"""The join, its two rules, the projection that drops the compared value, and what is kept for the join."""
_SEARCH = re.compile(r"-- .*range of \S+( by .*?)?, in the order of ")
_RANGE = re.compile(r"-- range( by .*?)? in the order of \w+, summed in O\(log N\)")


def _unordered(found: re.Match[str]) -> str:
    """The access path without an order."""
    return f"-- slice{found[1]}" if found[1] else "-- scan of all"


def _common(text: str, reading_tests: Set[str]) -> list[str]:
    """The lines of the program. A collection that reads a test of text on one engine, and the text on the other, is a name."""
    lines = []
    for line in text.splitlines():
        name = line.partition(" := ")[0]
        if not line.lstrip().startswith(("on Spark: ", "on embedded: ")):
            lines.append(name if name in reading_tests else line)
    return [line for line in lines if line]
