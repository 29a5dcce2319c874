"""The base of all immutable trees: expressions and relational nodes.

Contract: nodes are frozen and slotted; children sit in fields or tuples of fields; equality is structural over the
fields declared with ``compare=True``; the hash is computed once, when the node is made, from its children's stored
hashes, so hashing a shared DAG is linear in its distinct nodes and comparing equal nodes starts from their identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """Makes a class a frozen, slotted dataclass whose equality and hash are those of ``Node``."""
    made: Any = dataclass(frozen=True, slots=True, eq=False)(cls)
    made._compared = tuple(f.name for f in fields(made) if f.compare)
    return made  # type: ignore[no-any-return]  # dataclass() with slots returns a new class of the same type


class Node:
    """What every tree node has: a stored hash and structural equality."""

    __slots__ = ("_hash", "_memo")
    _compared: ClassVar[tuple[str, ...]]

    if TYPE_CHECKING:  # slots without annotations: a dataclass would take annotated ones for its fields
        _hash: ClassVar[int]
        _memo: ClassVar[Any]

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "_hash", hash((type(self).__name__, *self._key())))
        object.__setattr__(self, "_memo", None)

    def _check(self) -> None:
        """What a constructor can check locally; raises AssertionError on our own mistakes."""

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._compared)

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt through the constructor: hashes of strings differ from process to process.
        values = tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]  # every node is a dataclass
        return type(self), values

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        assert isinstance(other, Node)
        return hash(self) == hash(other) and self._key() == other._key()
