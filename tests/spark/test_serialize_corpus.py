"""Every plan of the corpus survives the catalog's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.serialize import plan_from_json, plan_to_json
from tests.corpus.data import Query, queries

_EVERY = 20


def _queries() -> list[object]:
    every = [q for folder in ("tpch", "multilevel", "queryplan", "general") for q in queries(folder)]
    return [
        pytest.param(q, id=f"{q.file.parent.name}-{q.name}", marks=() if i % _EVERY == 0 else (pytest.mark.slow,))
        for i, q in enumerate(every)
    ]


@pytest.mark.parametrize("query", _queries())
def test_plans_of_the_corpus(query: Query, corpus_plan: Callable[[Query], Relation]) -> None:
    """What comes back is equal, and has the same columns."""
    plan = corpus_plan(query)
    back = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    assert back == plan
    assert schema(back) == schema(plan)
