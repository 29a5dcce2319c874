from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from everview.catalog import ViewDefinition
from everview.errors import VerificationFailed
from everview.relational.arrow import rows_to_arrow
from everview.relational.nodes import Field, Scan
from everview.relational.types import FLOAT64, NAN, STRING, Array, Struct
from everview.session.verification import compare

FIELDS = (Field("k", STRING), Field("x", FLOAT64))
VIEW = ViewDefinition("v", Scan("t", FIELDS), "SELECT * FROM t", "UTC")


def differ(ours: list[Any], theirs: list[Any]) -> str:
    """The message of the comparison, empty when the bags are equal."""
    try:
        compare(VIEW, rows_to_arrow(ours, FIELDS), rows_to_arrow(theirs, FIELDS))
    except VerificationFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([("a", 0.1 + 0.2)], [("a", 0.3)]),
        ([("a", NAN), ("a", None)], [("a", None), ("a", float("nan"))]),
        ([("a", -0.0)], [("a", 0.0)]),
        ([("a", 1e300), ("a", 1.0), ("a", 1.0)], [("a", 1.0 + 1e-12), ("a", 1.0), ("a", 1e300 * (1 + 1e-12))]),
        ([], []),
    ],
)
def test_bags_that_are_equal(ours: list[Any], theirs: list[Any]) -> None:
    """Order does not matter, floats are close enough, NaN is NaN."""
    assert differ(ours, theirs) == ""


def test_bags_that_differ() -> None:
    """Counts, NULLs and distances count."""
    assert differ([("a", 1.0)] * 2, [("a", 1.0)]) == (
        "view 'v' differs from Spark's recomputation in 1 distinct rows:\n  ('a', 1.0): 2 here, 1 in Spark"
    )
    assert "('a', NULL): 1 here, 0 in Spark" in differ([("a", None)], [("a", 0.0)])
    assert "('b', 1.0): 0 here, 1 in Spark" in differ([("a", 1.0)], [("b", 1.0)])
    assert differ([("a", 1.0)], [("a", 1.00001)])


def test_tolerance_does_not_pair_greedily_across_a_gap() -> None:
    """One row too many is found among close ones."""
    assert differ([("a", 1.0), ("a", 2.0)], [("a", 1.0 + 1e-12)]) == (
        "view 'v' differs from Spark's recomputation in 1 distinct rows:\n  ('a', 2.0): 1 here, 0 in Spark"
    )


def test_many_differences_are_cut_short() -> None:
    """Ten rows are shown, the others counted."""
    message = differ([("a", float(i)) for i in range(25)], [])
    assert message.startswith("view 'v' differs from Spark's recomputation in 25 distinct rows:\n")
    assert message.endswith("\n  and 15 more")
    assert len(message.splitlines()) == 12


def test_floats_inside_arrays_and_structs_are_compared_with_tolerance() -> None:
    """A nested float may differ in its last bits; lengths, NULLs and what is no float may not."""
    kind = Struct(("xs", "name"), (Array(FLOAT64), STRING))
    view = ViewDefinition("v", Scan("v", (Field("s", kind),)), None, "UTC")

    def table(*values: object) -> pa.Table:
        return rows_to_arrow([(v,) for v in values], view.fields)

    near = 0.1 + 0.2
    compare(view, table(((0.3, None), "a"), ((1.0,), "b")), table(((1.0,), "b"), ((near, None), "a")))
    for other in (((near, 0.0), "a"), ((near,), "a"), ((near, None), "b"), ((0.31, None), "a"), None):
        with pytest.raises(VerificationFailed):
            compare(view, table(((0.3, None), "a")), table(other))
