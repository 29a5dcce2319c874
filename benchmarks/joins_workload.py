"""A workload of the papers: tables, their natural join, the sum over it, and the order in which rows arrive.

``tables`` are sorted by the variable order from the root down, which is how F-IVM's experiments feed them. ``counted`` gives
DuckDB the sum and the number of rows of the join without listing it, where the join is too large for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Workload:
    """One data set and what is asked of it.

    ``key`` is the variable at the root of the order; ``facts`` the table that alone is streamed in the cases that say so;
    ``params`` are the sizes that the results are to carry.
    """

    name: str
    tables: Mapping[str, pa.Table]
    keys: Mapping[str, tuple[str, ...]]
    summed: str
    key: str
    facts: str | None = None
    counted_by: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables, each once."""
        return tuple(dict.fromkeys(name for table in self.tables.values() for name in table.column_names))

    @property
    def sum_sql(self) -> str:
        """The sum of one variable over the natural join."""
        return f"SELECT SUM({self.summed}) AS total FROM {self._join}"

    @property
    def join_sql(self) -> str:
        """The natural join with all its variables."""
        return f"SELECT {', '.join(self.columns)} FROM {self._join}"

    @property
    def counted(self) -> str:
        """For DuckDB: the sum and the number of rows of the join."""
        return self.counted_by or f"SELECT SUM({self.summed}), COUNT(*) FROM {self._join}"

    @property
    def _join(self) -> str:
        return " NATURAL JOIN ".join(self.tables)


def skewed_choices(rng: np.random.Generator, groups: int, each: int, among: int) -> Integers:
    """For each group, ``each`` distinct numbers below ``among``, small ones far more often: an array of a row a group.

    The numbers are cut into ``each`` consecutive intervals whose lengths grow geometrically, and a group takes one of every
    interval: a number's frequency falls as one over the length of its interval, about as in Zipf's law, and no group has a
    number twice.
    """
    assert each <= among, "a group cannot have more distinct numbers than there are"
    bounds = np.maximum(np.geomspace(1, among + 1, each + 1).astype(np.int64) - 1, np.arange(each + 1))
    bounds[-1] = among
    return rng.integers(bounds[:-1], bounds[1:], size=(groups, each))
