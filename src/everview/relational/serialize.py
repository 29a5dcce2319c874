"""Plans as JSON and back: how a catalog keeps them on disk. Nothing is pickled.

A plan is a DAG, so nodes, expressions and types stand in one list, each after those it refers to, and refer to others by
position: what is shared is written, and read, once. Every part is ``[class name, value of each field]``. Contract:
``plan_from_json(plan_to_json(p)) == p``, names included; text written by another version that has other fields is an error,
never a different plan.
"""

from __future__ import annotations

import base64
import math
from dataclasses import fields, is_dataclass
from decimal import Decimal as PythonDecimal
from enum import Enum
from typing import Any, Final

from everview.errors import CorruptDatabase
from everview.relational import expressions, nodes, types
from everview.relational.nodes import Relation, Schema

_FORMAT: Final = 1

_ENUMS: Final[dict[str, type[Enum]]] = {e.__name__: e for e in (nodes.JoinKind, nodes.FrameUnit)}

_CLASSES: Final[dict[str, type[Any]]] = {
    c.__name__: c
    for module in (types, expressions, nodes)
    for c in vars(module).values()
    if isinstance(c, type) and is_dataclass(c) and c.__module__ == module.__name__
}


def plan_to_json(plan: Relation) -> dict[str, Any]:
    """A value that ``json`` can write."""
    writer = _Writer()
    root = writer.reference(plan)
    return {"format": _FORMAT, "parts": writer.parts, "root": root}


def plan_from_json(written: dict[str, Any]) -> Relation:
    """The plan that was written.

    Raises:
        CorruptDatabase: it is not what ``plan_to_json`` writes.
    """
    plan: Relation = _read(written)
    return plan


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The columns of a table, for the same catalog."""
    return value_to_json(schema)


def schema_from_json(written: dict[str, Any]) -> Schema:
    """The columns that were written."""
    schema: Schema = _read(written)
    return schema


def value_to_json(value: Any) -> dict[str, Any]:
    """Whatever is made of the parts of plans, of tuples and of values, in the same form."""
    writer = _Writer()
    root = writer.value(value)
    return {"format": _FORMAT, "parts": writer.parts, "root": root}


def value_from_json(written: dict[str, Any]) -> Any:
    """What ``value_to_json`` was given."""
    return _read(written)


class _Writer:
    """Writes each distinct part once, by identity first: a plan's shared parts are the same objects."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._positions: dict[int, int] = {}
        self._kept: list[object] = []  # an id is unique only while its object lives

    def reference(self, part: Any) -> dict[str, int]:
        known = self._positions.get(id(part))
        if known is None:
            written = [type(part).__name__, *(self.value(getattr(part, f.name)) for f in fields(part))]
            known = len(self.parts)
            self.parts.append(written)
            self._positions[id(part)] = known
            self._kept.append(part)
        return {"ref": known}

    def value(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return {"float": _float_to_text(value)}
            case PythonDecimal():
                return {"decimal": str(value)}
            case bytes():
                return {"bytes": base64.b64encode(value).decode()}
            case Enum():
                return {"enum": [type(value).__name__, value.name]}
            case tuple():
                return [self.value(v) for v in value]
            case _:
                assert type(value).__name__ in _CLASSES, f"{value!r} is no part of a plan"
                return self.reference(value)


def _float_to_text(value: float) -> str:
    return "nan" if math.isnan(value) else float(value).hex()


def _read(written: dict[str, Any]) -> Any:
    try:
        if written["format"] != _FORMAT:
            raise CorruptDatabase(
                f"a stored plan has format {written['format']}, and this version of everview reads format {_FORMAT}.",
                hint="open the database with the version of everview that wrote it, or a newer one.",
            )
        parts: list[Any] = []
        for name, *values in written["parts"]:
            made = _CLASSES[name]
            given = [_value(v, parts) for v in values]
            if len(given) != len(fields(made)):
                raise ValueError(f"{name} with {len(given)} fields")
            parts.append(made(*given))
        return _value(written["root"], parts)
    except (KeyError, IndexError, TypeError, ValueError, AssertionError) as error:
        raise CorruptDatabase(f"a stored plan cannot be read: {error!r}.") from error


def _value(value: Any, parts: list[Any]) -> Any:
    match value:
        case list():
            return tuple(_value(v, parts) for v in value)
        case {"ref": position}:
            return parts[position]
        case {"float": text}:
            return types.NAN if text == "nan" else float.fromhex(text)
        case {"decimal": text}:
            return PythonDecimal(text)
        case {"bytes": text}:
            return base64.b64decode(text)
        case {"enum": [name, member]}:
            return _ENUMS[name][member]
        case dict():
            raise ValueError(f"{value}")
        case _:
            return value
