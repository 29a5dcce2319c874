"""Definitions of tables and views as JSON and back, field by field under the field's own name.

A field that a definition gains later is written by itself, and has its default where the text is older. A field that this
version does not know means that a newer one wrote it, which is an error: leaving it out could change what a view means.
Contract: ``definition_from_json(definition_to_json(d))`` has equal fields.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from everview.catalog import Definition, TableDefinition, ViewDefinition
from everview.errors import CorruptDatabase
from everview.relational.serialize import value_from_json, value_to_json

_CATALOG: Final = TableDefinition.__module__
_CLASSES: Final[dict[str, type[Any]]] = {
    c.__name__: c
    for c in vars(sys.modules[_CATALOG]).values()
    if isinstance(c, type) and is_dataclass(c) and c.__module__ == _CATALOG
}


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """A value that ``json`` can write."""
    return _object_to_json(definition)


def definition_from_json(written: Any) -> Definition:
    """The definition that was written.

    Raises:
        CorruptDatabase: it is none, or a newer version of everview wrote it.
    """
    try:
        made = _from_json(written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDatabase(f"a stored definition cannot be read: {error!r}.") from error
    if not isinstance(made, TableDefinition | ViewDefinition):
        raise CorruptDatabase(f"a stored definition cannot be read: {written!r}.")
    return made


def _object_to_json(value: Any) -> dict[str, Any]:
    return {"is": type(value).__name__, **{f.name: _to_json(getattr(value, f.name)) for f in fields(value)}}


def _to_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case tuple() if all(v is None or isinstance(v, bool | int | str) or _is_ours(v) for v in value):
            return [_to_json(v) for v in value]
        case _ if _is_ours(value):
            return _object_to_json(value)
        case _:  # plans, columns, numbers that JSON does not keep
            return {"is": "value", "of": value_to_json(value)}


def _is_ours(value: Any) -> bool:
    return type(value).__name__ in _CLASSES and type(value).__module__ == _CATALOG


def _from_json(written: Any) -> Any:
    match written:
        case {"is": "value", "of": inner}:
            return value_from_json(inner)
        case {"is": str() as name, **given}:
            made = _CLASSES[name]
            known = {f.name: f for f in fields(made)}
            for field in given:
                if field not in known:
                    raise CorruptDatabase(
                        f"a stored {name} has a field '{field}', which this version of everview does not know.",
                        hint="open the database with the version of everview that wrote it, or a newer one.",
                    )
            for field, declared in known.items():
                if field not in given and declared.default is MISSING and declared.default_factory is MISSING:
                    raise KeyError(field)
            return made(**{str(field): _from_json(value) for field, value in given.items()})
        case list():
            return tuple(_from_json(v) for v in written)
        case dict():
            raise ValueError(f"{written}")
        case _:
            return written
