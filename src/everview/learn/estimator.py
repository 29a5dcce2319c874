"""What models have in common, in scikit-learn's manners: parameters of the constructor, learned values with a ``_`` behind.

A constructor keeps what it is given and computes nothing. ``fit`` learns from nothing, ``refresh`` from what was learned last.
scikit-learn itself is not needed; its ``clone`` works, and a clone reads the same covariance.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol, Self

from everview.errors import UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.moments import Moments


class LearningWarning(UserWarning):
    """Something about the data or the fit that a user should know: the answer is still the documented one."""


class ConvergenceWarning(LearningWarning):
    """Gradient descent ended before the gradient was small."""


class CollinearityWarning(LearningWarning):
    """Features are constant or combinations of each other: of the many best answers, the one of least norm is given."""


class MomentSource(Protocol):
    """What a model reads: the handle that ``db.create_covariance`` gives."""

    def moments(self, **group: Any) -> Moments:
        """What is known now, of one group where there are groups."""


class Estimator:
    """Parameters by name, as scikit-learn asks for them."""

    @classmethod
    def _parameters(cls) -> tuple[str, ...]:
        return tuple(p for p in inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Changes parameters; what was learned stays until the next ``fit`` or ``refresh``."""
        known = self._parameters()
        for name, value in params.items():
            if name not in known:
                raise UnknownName(f"{type(self).__name__} has no parameter '{name}'.", hint=did_you_mean(name, known))
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params())

    def _check_fitted(self, attribute: str) -> None:
        if attribute not in self.__dict__:
            raise UnsupportedOperation(
                f"this {type(self).__name__} has not learned anything yet.", hint="call fit() or refresh() first."
            )

    def __repr__(self) -> str:
        given = {n: v for n, v in self.get_params().items() if n != "cov" and v != self._default(n)}
        return f"{type(self).__name__}({', '.join(f'{n}={_shown(v)}' for n, v in given.items())})"

    @classmethod
    def _default(cls, name: str) -> Any:
        return inspect.signature(cls).parameters[name].default


def moments_of_source(source: MomentSource, group: Mapping[str, Any] | None) -> Moments:
    """The current moments of the group that a model is about."""
    return source.moments(**(group or {}))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
