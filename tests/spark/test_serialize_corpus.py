"""Every plan of the corpus survives the catalog's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.serialize import plan_from_json, plan_to_json
from tests.corpus.data import Query, queries


def test_plans_of_the_corpus(corpus_plan: Callable[[Query], Relation]) -> None:
    """What comes back is equal, and has the same columns."""
    for query in [q for folder in ("tpch", "multilevel", "queryplan", "general") for q in queries(folder)]:
        plan = corpus_plan(query)
        back = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
        assert back == plan, query.name
        assert schema(back) == schema(plan), query.name
