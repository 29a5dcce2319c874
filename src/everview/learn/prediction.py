"""Predictions of a linear model for whatever holds rows: a pandas, Arrow or Spark DataFrame, a dict of columns.

A category that the model has not seen adds nothing, as if the feature had no effect; so does NULL, unless NULL was a
category of its own. A row with NULL in a continuous feature has no prediction: NaN, or NULL in Spark.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.errors import UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.design import DesignColumn
from everview.learn.moments import FloatArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_spark_frame(data: object) -> bool:
    """Whether this is a DataFrame of PySpark, classic or Connect; without importing it."""
    return type(data).__module__.startswith("pyspark.sql")


def predict_rows(
    columns: Sequence[DesignColumn], weights: FloatArray, intercept: float, features: Sequence[str], data: Any
) -> FloatArray:
    """A number for each row."""
    rows = _table(data)
    _check_columns(features, rows.column_names)
    found = np.full(len(rows), intercept)
    indicators: dict[str, dict[Hashable, float]] = {f: {} for f in features}
    for column, weight in zip(columns, weights, strict=True):
        if column.is_indicator:
            indicators[column.feature][column.category] = float(weight)
        else:
            found += float(weight) * _numbers(rows.column(column.feature), column.feature)
    for feature, effects in indicators.items():
        if effects:
            found += _effects(rows.column(feature), effects)
    return found


def predict_spark(
    columns: Sequence[DesignColumn], weights: FloatArray, intercept: float, features: Sequence[str], data: DataFrame
) -> DataFrame:
    """The same rows with a column ``prediction``, computed by Spark."""
    from pyspark.sql import functions  # noqa: PLC0415 -- pyspark is imported by those who have it

    _check_columns(features, data.columns)
    found = functions.lit(intercept)
    for column, weight in zip(columns, weights, strict=True):
        if not column.is_indicator:
            found += functions.lit(float(weight)) * functions.col(column.feature).cast("double")
    for feature in dict.fromkeys(c.feature for c in columns if c.is_indicator):
        effect = functions.lit(0.0)
        for column, weight in zip(columns, weights, strict=True):
            if column.is_indicator and column.feature == feature:
                is_it = functions.col(feature).eqNullSafe(functions.lit(column.category))
                effect = functions.when(is_it, functions.lit(float(weight))).otherwise(effect)
        found += effect
    return data.withColumn("prediction", found)


def _numbers(column: pa.ChunkedArray, feature: str) -> FloatArray:
    try:
        numbers = column.cast(pa.float64(), safe=False)  # an integer of more than 53 bits is rounded, as Spark does it
    except pa.ArrowException as error:
        raise UnsupportedOperation(
            f"column '{feature}' is {column.type}, and the model learned it as a number: {error}"
        ) from error
    return np.asarray(numbers.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _effects(column: pa.ChunkedArray, effects: Mapping[Hashable, float]) -> FloatArray:
    encoded = column.combine_chunks().dictionary_encode()
    by_code = np.array([effects.get(v, 0.0) for v in encoded.dictionary.to_pylist()] + [effects.get(None, 0.0)])
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(by_code[codes], dtype=np.float64)  # code -1, a NULL, is the last of them


def _table(data: Any) -> pa.Table:
    if isinstance(data, list):
        return pa.Table.from_pylist(data)
    if hasattr(data, "iloc"):
        return pa.Table.from_pandas(data, preserve_index=False)
    return pa.table(data)


def _check_columns(features: Sequence[str], given: Sequence[str]) -> None:
    for feature in features:
        if feature not in given:
            raise UnknownName(f"the rows have no column '{feature}'.", hint=did_you_mean(feature, given))
