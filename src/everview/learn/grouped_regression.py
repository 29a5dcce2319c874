"""One linear model a group: what a covariance with ``group_by`` is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self

from everview.errors import UnknownName
from everview.learn.estimator import MomentSource
from everview.learn.linear_regression import LinearRegression


class GroupedSource(MomentSource, Protocol):
    """A covariance that knows its groups."""

    def groups(self) -> list[dict[str, Any]]:
        """The groups that there are, each as the keywords of ``moments``."""


class GroupedRegression(Mapping[tuple[Any, ...], LinearRegression]):
    """A ``LinearRegression`` for each group of a covariance, by the group's values in order.

    Args:
        cov: The covariance, with ``group_by``.
        label: The continuous feature to predict.
        **parameters: Those of ``LinearRegression``.
    """

    def __init__(self, cov: GroupedSource, label: str, **parameters: Any) -> None:
        self.cov = cov
        self.label = label
        self.parameters = parameters
        self._models: dict[tuple[Any, ...], LinearRegression] = {}

    def refresh(self) -> Self:
        """Refreshes all models, each from its last parameters; groups that are gone lose theirs, new ones get one."""
        models = {}
        for group in self.cov.groups():
            key = tuple(group.values())
            known = self._models.get(key)
            models[key] = known or LinearRegression(self.cov, self.label, group=group, **self.parameters)
            models[key].refresh()
        self._models = models
        return self

    fit = refresh

    def __getitem__(self, group: Any) -> LinearRegression:
        key = group if isinstance(group, tuple) else (group,)
        if key not in self._models:
            raise UnknownName(f"there is no group {key} with a model.", hint="refresh() takes in new groups.")
        return self._models[key]

    def __contains__(self, group: object) -> bool:
        return (group if isinstance(group, tuple) else (group,)) in self._models

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def __repr__(self) -> str:
        return f"<GroupedRegression of {self.label}, {len(self)} groups>"
