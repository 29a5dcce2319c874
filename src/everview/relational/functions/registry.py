"""How a scalar function is declared: its name, when it is NULL, and what it computes.

A module of this package declares its functions with ``@function("name")`` on a *binder*: given the call (argument types,
result type, zone) it returns the Python function from argument values to the result value. Binding once and calling per
row keeps type dispatch out of the loop. With ``Nulls.STRICT`` (nearly all of them) the result is NULL when an argument
is, and the bound function sees no None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from everview.relational.types import DataType

if TYPE_CHECKING:
    from everview.relational.expressions import Call

Binder = Callable[["Call"], Callable[..., Any]]
TypeRule = Callable[[tuple[DataType, ...]], DataType]


class Nulls(Enum):
    """How a function treats NULL arguments."""

    STRICT = "strict"
    """NULL in, NULL out; never NULL otherwise."""
    STRICT_OR_NULL = "strict or null"
    """NULL in, NULL out; may be NULL otherwise (try_divide, element_at, …)."""
    NEVER = "never"
    """Sees NULLs and never returns one (IS NULL, <=>)."""
    OWN = "own"
    """Sees NULLs and may return one (AND, COALESCE, …)."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: deterministic, and a function of its argument values alone."""

    name: str
    nulls: Nulls
    result_type: TypeRule
    bind: Binder

    def is_nullable(self, args: tuple[bool, ...]) -> bool:
        """Whether the result can be NULL, given which arguments can."""
        match self.nulls:
            case Nulls.STRICT:
                return any(args)
            case Nulls.NEVER:
                return False
            case Nulls.STRICT_OR_NULL:
                return True
            case Nulls.OWN:
                # COALESCE and its like are NULL only when every argument can be; AND, OR when any can.
                return all(args) if self.name in ("coalesce", "greatest", "least") else any(args)


_FUNCTIONS: dict[str, Function] = {}


def _always(t: DataType) -> TypeRule:
    return lambda _args: t


def function(name: str, result_type: TypeRule | DataType, nulls: Nulls = Nulls.STRICT) -> Callable[[Binder], Binder]:
    """Declares a function; ``result_type`` is a type or a rule from argument types to the result type."""
    rule = _always(result_type) if isinstance(result_type, DataType) else result_type

    def register(bind: Binder) -> Binder:
        assert name not in _FUNCTIONS, f"function {name!r} is declared twice"
        _FUNCTIONS[name] = Function(name, nulls, rule, bind)
        return bind

    return register


def function_named(name: str) -> Function:
    """The declaration of a function that the front end has accepted."""
    return _FUNCTIONS[name]


def is_function(name: str) -> bool:
    """Whether such a function is declared."""
    return name in _FUNCTIONS


def function_names() -> tuple[str, ...]:
    """All declared names, sorted."""
    return tuple(sorted(_FUNCTIONS))
