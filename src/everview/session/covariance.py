"""The handle of a covariance: a view whose rows are sums, and the ways to read them as matrices.

Sums are read as they are kept. Nothing here costs more than the matrix itself, however many rows the join has.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.algebra.floats import FLOATS
from everview.backends.base import KeepsNumbers, VersionedDelta
from everview.catalog import CovarianceFeatures
from everview.errors import InvalidQuery
from everview.learn.moments import CategoryCounts, CodeArray, Moments, PairCounts, centred_of_pairs, upper_half
from everview.session.relations import View
from everview.session.subscriptions import JointSubscription, Subscription

if TYPE_CHECKING:
    from pyspark.ml.linalg import DenseMatrix

FloatMatrix = npt.NDArray[np.float64]


def named(columns: Iterable[str]) -> tuple[str, ...]:
    """The names of some columns, also of a single one that is given without brackets."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


class Covariance(View):
    """The sums of a join's features, by group: a view that models learn from. Made by ``db.create_covariance``.

    Its own rows have, for each group, the number of joined rows, ``sum_x`` for each continuous feature and ``sum_x_y`` for
    each two. What is known of categorical features is in ``moments()``.
    """

    @property
    def features(self) -> CovarianceFeatures:
        """The names of the features, and of the columns that it is grouped by."""
        found = self._definition.covariance
        assert found is not None, "a covariance has features"
        return found

    @property
    def continuous(self) -> tuple[str, ...]:
        """The continuous features."""
        return self.features.continuous

    @property
    def categorical(self) -> tuple[str, ...]:
        """The categorical features."""
        return self.features.categorical

    def groups(self) -> list[dict[str, Any]]:
        """The groups that there are, each as the keywords that ``moments`` takes; without ``group_by`` the one of all rows."""
        names = list(self.features.group_by)
        if not names:
            return [{}]
        columns = [self.to_arrow()[name].to_pylist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def moments(self, **group: Any) -> Moments:
        """All sums of one group; of a group that has no rows they are 0.

        Args:
            **group: A value for each column of ``group_by``.

        Raises:
            InvalidQuery: a column is missing, or is none of ``group_by``.
        """
        features = self.features
        wanted = self._group(group)
        with self._locked():  # all of one version
            kept = self._kept_sums(wanted)
            numbers = (
                self._read_sums(wanted) if kept is None else FLOATS.values(kept.reshape(-1, 2)).reshape(kept.shape[:2])
            )
            parts = [self._read(part, wanted) for part in features.parts(self.name)]
        keys, k = len(features.group_by), len(features.continuous)
        row = numbers[0] if len(numbers) else np.zeros(1 + k + k * (k + 1) // 2)
        products, (across, down) = np.empty((k, k)), upper_half(k)
        products[across, down] = products[down, across] = row[1 + k :]
        categories, known = {}, []
        for name, part in zip(features.categorical, parts[: len(features.categorical)], strict=True):
            values = part.column(keys).to_pylist()
            sums = _numbers(part, keys + 1)
            categories[name] = CategoryCounts(values, sums[:, 0], np.ascontiguousarray(sums[:, 1:]))
            known.append(part.column(keys))
        pairs = {}
        for (i, j), part in zip(features.pairs, parts[len(features.categorical) :], strict=True):
            left, right = (_codes(part.column(keys + place), known[c]) for place, c in enumerate((i, j)))
            pair = features.categorical[i], features.categorical[j]
            pairs[pair] = PairCounts(left, right, _numbers(part, keys + 2)[:, 0])
        centred = None
        if kept is not None and row[0] > 0:
            centred = centred_of_pairs(row[0], kept[0, 1 : 1 + k], kept[0, 1 + k :])
        sums = row[1 : 1 + k].copy()
        return Moments(
            features.continuous, features.categorical, float(row[0]), sums, products, categories, pairs, centred
        )

    def subscribe(self, callback: Callable[[VersionedDelta], object]) -> Subscription:
        """Calls ``callback`` once after every commit that moves any of the sums, also only those of categories.

        It is given the change of the covariance's own rows, or of the first part that moved.

        Raises:
            UnsupportedOperation: the covariance is lazy, so that commits do not compute its changes.
        """
        told = -1

        def once(change: VersionedDelta) -> None:
            nonlocal told
            if change.version != told:
                told = change.version
                callback(change)

        first = super().subscribe(once)
        parts = self.features.parts(self.name)
        return JointSubscription(first, [self._core.subscriptions.add(part, once) for part in parts])

    def to_numpy(self, **group: Any) -> FloatMatrix:
        """Σ z zᵀ over the joined rows of a group, where z is 1 and then the continuous features: (k + 1, k + 1), symmetric.

        The first row is the number of rows and the sums. This is the matrix that least squares solve for.
        """
        moments = self.moments(**group)
        head = np.concatenate(([moments.count], moments.sums))
        return np.block([[head[:1, None], head[None, 1:]], [head[1:, None], moments.products]])

    def covariance(self, *, ddof: int = 1, **group: Any) -> FloatMatrix:
        """The covariance matrix of the continuous features, as ``numpy.cov`` of the joined rows has it: (k, k).

        NaN where a group has no more than ``ddof`` rows.
        """
        moments = self.moments(**group)
        if moments.count <= ddof:
            return np.full(moments.products.shape, np.nan)
        return moments.centred_products() / (moments.count - ddof)

    def to_spark_matrix(self, **group: Any) -> DenseMatrix:
        """``to_numpy`` as a matrix of Spark ML."""
        matrix, linalg = self.to_numpy(**group), importlib.import_module("pyspark.ml.linalg")
        made: DenseMatrix = linalg.DenseMatrix(len(matrix), len(matrix), matrix.ravel(order="F"))
        return made

    def explain(self, mode: str = "text") -> str:
        """How the sums of the continuous features are maintained, then how each of the parts is that count categories."""
        texts = [super().explain(mode)]
        if mode in ("json", "svg") or not self.categorical:
            return texts[0]
        with self._locked():
            backend = self._core.backend
            parts = self.features.parts(self.name)
            texts.extend(f"part {part}\n{backend.explain(part, mode)}" for part in parts)
        return "\n\n".join(texts)

    def stats(self) -> dict[str, Any]:
        """As of a view, of the whole: bytes and seconds are those of all parts."""
        with self._locked():
            backend = self._core.backend
            found = backend.stats(self.name)
            for part in self.features.parts(self.name):
                own = backend.stats(part)
                found["seconds"] += own["seconds"]
                found["bytes"] = {**found["bytes"], **{f"{part}{what}": size for what, size in own["bytes"].items()}}
        return found

    def _group(self, group: Mapping[str, Any]) -> dict[str, Any]:
        names = {name.lower(): name for name in self.features.group_by}
        given = {names.get(key.lower(), key): value for key, value in group.items()}
        if set(given) != set(names.values()):
            listed = ", ".join(names.values()) or "nothing"
            raise InvalidQuery(
                f"covariance '{self.name}' is grouped by {listed}, and the group given has ({', '.join(group)}).",
                hint="give a value for each of these columns, as in cov.moments(city='Oslo').",
            )
        return given

    def _read(self, part: str, group: Mapping[str, Any]) -> pa.Table:
        """The rows of a part that belong to a group."""
        backend = self._core.backend
        if not group:
            return backend.read(part)
        return backend.lookup(part, self._key(group))

    def _kept_sums(self, group: Mapping[str, Any]) -> FloatMatrix | None:
        """The number of rows, sums and products, as double-doubles: a row, or none. None if they are kept otherwise."""
        backend = self._core.backend
        return backend.numbers(self.name, self._key(group)) if isinstance(backend, KeepsNumbers) else None

    def _read_sums(self, group: Mapping[str, Any]) -> FloatMatrix:
        """The number of rows, sums and products of a group: a row, or none."""
        return _numbers(self._read(self.name, group), len(self.features.group_by))

    def __repr__(self) -> str:
        by = f" by {', '.join(self.features.group_by)}" if self.features.group_by else ""
        return f"<Covariance {self.name} of {', '.join((*self.continuous, *self.categorical))}{by}>"


def _numbers(table: pa.Table, first: int) -> FloatMatrix:
    """The columns from one on, which is a number of rows, as a matrix; a sum of no rows is 0."""
    chosen = table.select(range(first, table.num_columns)).combine_chunks()
    if not chosen.num_columns or not chosen.num_rows:
        return np.zeros(chosen.shape)
    (batch,) = chosen.to_batches()
    numbers: FloatMatrix = batch.to_tensor(null_to_nan=True).to_numpy().astype(np.float64)
    numbers[numbers[:, 0] == 0] = 0.0
    return numbers


def _codes(column: pa.ChunkedArray, categories: pa.ChunkedArray) -> CodeArray:
    """The place of each value among the categories, where it stands once; NULL is one of them, and so is NaN."""
    if pa.types.is_nested(column.type) or pa.types.is_floating(column.type):  # 0.0 and -0.0 are one, too
        place = {_hashable(value): code for code, value in enumerate(categories.to_pylist())}
        return np.array([place[_hashable(v)] for v in column.to_pylist()], dtype=np.int64)
    found = pc.index_in(column, value_set=categories.combine_chunks(), skip_nulls=False)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _hashable(value: Any) -> Any:
    """A category as a key: all NaNs are one."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
