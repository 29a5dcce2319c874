"""From the query and the features of a covariance to the plans of its views, checked, and to the views themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.catalog import CovarianceFeatures, ViewDefinition, ViewOptions
from everview.errors import InvalidQuery, guarded
from everview.relational.column_names import check_columns, find_column
from everview.relational.covariance import category_plan, exact_type, features_of, moments_plan, pair_plan
from everview.relational.nodes import Relation, Schema
from everview.relational.rules import simplify
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, is_numeric
from everview.session.defining_views import with_on_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core


def define_covariance(
    core: Core, name: str, query: str | DataFrame, features: CovarianceFeatures, options: ViewOptions
) -> ViewDefinition:
    """Makes a covariance after its parts, which count categories: one that is there is whole."""
    with core.locked():
        for new in (name, *features.parts(name)):
            core.catalog.check_name(new)
        translated = core.translate(query)
        core.heal()
        found, (whole, *parts) = covariance_plans(
            name, translated.plan, features, may_be_exact=core.backend.name == "spark"
        )
        zone, others = translated.settings.time_zone, translated.settings.others
        named = [*zip(found.parts(name), parts, strict=True), (name, whole)]
        made: list[ViewDefinition] = []
        try:
            for own, plan in named:
                view = ViewDefinition(own, plan, None, zone, options, settings=others)
                view = replace(view, covariance=found) if own == name else replace(view, part_of=name)
                view = with_on_error(core, view)
                with guarded(query):
                    core.add_view(view)
                made.append(view)
        except BaseException:
            core.remove(made)
            raise
        return made[-1]


def covariance_plans(
    name: str, source: Relation, features: CovarianceFeatures, *, may_be_exact: bool = False
) -> tuple[CovarianceFeatures, tuple[Relation, ...]]:
    """The features as the query spells them, and the plans of the covariance and of its parts.

    ``may_be_exact``: features that are all integers or decimals are summed as such, for an engine that maintains exact sums.

    Raises:
        InvalidQuery: there are no features, one stands twice, or a continuous one is no number.
        UnknownName: the query has no such column.
    """
    owner, fields = f"the query of covariance '{name}'", schema(source)
    check_columns(owner, fields)
    if not features.continuous and not features.categorical:
        raise InvalidQuery(
            f"covariance '{name}' has no features.", hint="name columns of the query: continuous=[…], categorical=[…]."
        )
    continuous = _positions(owner, fields, features.continuous, "continuous")
    categorical = _positions(owner, fields, features.categorical, "categorical")
    groups = _positions(owner, fields, features.group_by, "group_by")
    for i in continuous:
        if not is_numeric(fields[i].type) and fields[i].type != BOOLEAN:
            raise InvalidQuery(
                f"column '{fields[i].name}' is {fields[i].type}, and a continuous feature is a number.",
                hint="make it categorical, or cast it in the query.",
            )
    found = CovarianceFeatures(*(tuple(fields[i].name for i in places) for places in (continuous, categorical, groups)))
    read = list(dict.fromkeys((*groups, *categorical)))
    is_exact = may_be_exact and all(exact_type(fields[i].type) is not None for i in continuous)
    rows, count = features_of(source, continuous, read, is_exact=is_exact), len(continuous)
    place = {column: count + i for i, column in enumerate(read)}
    keys, categories = [place[g] for g in groups], [place[c] for c in categorical]
    plans = [
        moments_plan(rows, count, keys),
        *(category_plan(rows, count, keys, c) for c in categories),
        *(pair_plan(rows, keys, categories[i], categories[j]) for i, j in found.pairs),
    ]
    return found, tuple(simplify(plan) for plan in plans)


def _positions(owner: str, fields: Schema, names: Sequence[str], role: str) -> list[int]:
    found = [find_column(owner, fields, name) for name in names]
    for i, place in enumerate(found):
        if place in found[:i]:
            raise InvalidQuery(f"column '{fields[place].name}' stands twice in {role}.", hint="name it once.")
    return found
