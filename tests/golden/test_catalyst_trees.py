"""The front end behind the JVM: stored Catalyst trees to plans, without Spark."""

from __future__ import annotations

import json

import pytest

from everview.frontend.catalyst_json import parse_tree
from everview.frontend.translate_plan import translate_plan
from everview.relational.arrow import fields_from_arrow
from everview.relational.format import format_plan
from everview.relational.nodes import Relation
from everview.relational.rules import simplify
from everview.relational.verify import verify
from tests.corpus.data import schemas
from tests.golden.catalyst_trees import QUERIES
from tests.golden.golden_files import FOLDER, assert_golden


def _translated(name: str) -> Relation:
    nodes = json.loads((FOLDER / "catalyst" / f"{name}.json").read_text(encoding="utf-8"))
    return translate_plan(parse_tree(nodes), lambda table: fields_from_arrow(schemas()[table]), "UTC")


@pytest.mark.parametrize("name", QUERIES)
def test_translated_tree(name: str) -> None:
    """A tree of Catalyst becomes the reviewed, well-formed plan, before any of our rules."""
    plan = _translated(name)
    verify(plan)
    assert_golden(f"catalyst/{name}.plan.txt", format_plan(plan))


@pytest.mark.parametrize("name", QUERIES)
def test_simplified_tree(name: str) -> None:
    """Our rules turn that plan into the reviewed one, and find nothing to do in it a second time."""
    once = simplify(_translated(name))
    assert_golden(f"catalyst/{name}.simplified.txt", format_plan(once))
    assert simplify(once) == once
