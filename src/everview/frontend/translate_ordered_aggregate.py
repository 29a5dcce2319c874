"""Catalyst's aggregates over ordered values as ours: parameters become constant arguments behind the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.translate_expression import Scope, translate_expression
from everview.frontend.translation import sort_key_of
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Expression, Literal, columns_of
from everview.relational.types import FLOAT64, INTERVALS, STRING, Array, DataType

_PLAIN = {
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or",
    "BitXorAgg": "bit_xor",
    "Skewness": "skewness",
    "Kurtosis": "kurtosis",
}
ORDERED = frozenset({*_PLAIN, "Percentile", "PercentileDisc", "ApproximatePercentile", "Mode", "ListAgg", "MaxMinByK"})
"""Catalyst's classes that are translated here."""


def is_ordered(name: str, fields: Mapping[str, Any]) -> bool:
    """Whether an aggregate of Catalyst's is translated here: a percentile only without a frequency."""
    return name in ORDERED and not fields.get("has_frequency")


def translate_ordered(function: CatalystNode, scope: Scope) -> tuple[str, tuple[Expression, ...], DataType]:
    """Our name of the function, its arguments, and its type."""
    args = tuple(translate_expression(c, scope) for c in function.children if c.name != "SortOrder")
    value = args[0]
    match function.name:
        case "Percentile" | "PercentileDisc" | "ApproximatePercentile":
            return _percentile(function, args)
        case "Mode":
            first = function.fields.get("reverseOpt")
            name = "mode" if first is None else "mode_first" if first else "mode_last"
            return name, args, value.type
        case "ListAgg":
            return _listagg(function, args, scope)
        case "MaxMinByK":
            _constant("max_by(x, y, k)", args[2])
            return "min_by_k" if function.fields["reverse"] else "max_by_k", args, Array(value.type)
        case "CollectList" | "CollectSet":
            if not function.fields.get("ignoreNulls", True):
                raise UnsupportedQuery(
                    f"{_PLAIN[function.name]} with RESPECT NULLS is not supported.",
                    operator=_PLAIN[function.name],
                    hint="collect struct(x) instead of x: a struct of NULL is kept.",
                )
            return _PLAIN[function.name], args, Array(value.type, contains_null=False)
        case "Skewness" | "Kurtosis":
            return _PLAIN[function.name], args, FLOAT64
        case name:
            return _PLAIN[name], args, value.type


def _percentile(function: CatalystNode, args: tuple[Expression, ...]) -> tuple[str, tuple[Expression, ...], DataType]:
    value, percentage = args[:2]
    _constant("the percentage of a percentile", percentage)
    if function.name == "ApproximatePercentile":
        name, element = "approx_percentile", value.type
    else:
        if function.name == "PercentileDisc" and function.fields.get("legacyCalculation"):
            raise UnsupportedQuery(
                "percentile_disc is not supported under spark.sql.legacy.percentileDiscCalculation.",
                operator="percentile_disc",
            )
        name = "percentile" if function.name == "Percentile" else "percentile_disc"
        name += "_desc" if function.fields.get("reverse") else ""
        element = value.type if value.type in INTERVALS else FLOAT64
    is_array = isinstance(percentage.type, Array)
    return name, (value, percentage), Array(element, contains_null=False) if is_array else element


def _listagg(
    function: CatalystNode, args: tuple[Expression, ...], scope: Scope
) -> tuple[str, tuple[Expression, ...], DataType]:
    value, delimiter = args
    _constant("the delimiter of listagg", delimiter)
    keys = [sort_key_of(c, scope) for c in function.children if c.name == "SortOrder"]
    words = ",".join(("d" if k.descending else "a") + ("f" if k.nulls_first else "l") for k in keys)
    return "listagg", (value, delimiter, Literal(words, STRING), *(k.expression for k in keys)), value.type


def _constant(what: str, expression: Expression) -> None:
    if columns_of(expression) or (evaluate(expression) is None and what != "the delimiter of listagg"):
        raise UnsupportedQuery(f"{what} must be a constant.", operator="Aggregate")
