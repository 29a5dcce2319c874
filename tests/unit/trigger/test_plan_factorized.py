"""What a refusal to factorize says."""

from __future__ import annotations

from typing import get_args

from everview.relational.nodes import Filter, Project, Relation, Scan
from everview.trigger import plan_factorized


def test_every_node_that_may_be_listed_has_a_name() -> None:
    """A node without one would end in a KeyError instead of a refusal."""
    assert set(plan_factorized._NAMES) == set(get_args(Relation)) - {Scan, Filter, Project}
