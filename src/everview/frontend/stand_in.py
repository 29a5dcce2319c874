"""The name of a stand-in: all that a translation needs to know of an expression that only Spark can compute."""

from __future__ import annotations

import json
from typing import Final

from everview.frontend.catalyst_json import CatalystNode
from everview.frontend.spark_types import from_spark_json
from everview.frontend.translated import SessionSettings
from everview.relational.expressions import Expression, SparkExpression

_MARK: Final = "everview: "


def stand_in_name(function: str, text: tuple[str | int, ...], settings: SessionSettings) -> str:
    """The name of the Python function that stands for an expression in a plan of Catalyst's."""
    return _MARK + json.dumps([function, text, settings.time_zone, settings.others])


def is_stand_in(name: str) -> bool:
    """Whether a Python function of this name stands for an expression."""
    return name.startswith(_MARK)


def hidden_expression(node: CatalystNode, args: tuple[Expression, ...]) -> SparkExpression | None:
    """The expression that a Python function in a plan stands for; None for any other function."""
    name = node.fields["name"]
    if not is_stand_in(name):
        return None
    function, text, zone, others = json.loads(name.removeprefix(_MARK))
    settings = tuple((key, value) for key, value in others)
    return SparkExpression(function, tuple(text), args, from_spark_json(node.fields["dataType"]), zone, settings)
