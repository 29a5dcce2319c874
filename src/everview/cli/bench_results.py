"""What a benchmark measures and where: the results of a suite, and the JSON that keeps them.

The layout is fixed, so that runs of different days and machines can be laid side by side::

    {"suite": …, "machine": {…}, "results": [{"case": …, "metric": …, "value": …, "unit": …, "params": {…}}]}
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

METRICS = ("tuples_per_second", "seconds", "state_bytes", "exponent", "latency_p50", "latency_p99", "rows_touched")
RATIO = "ratio_to_"
"""A metric is one of these names, or this prefix and the name of a baseline."""

_PACKAGES = ("everview", "pyspark", "numpy", "numba", "pyarrow", "duckdb")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: what was run, what was measured, and under which parameters.

    >>> Figure("q3", "tuples_per_second", 1.2e6, "1/s", {"batch": 1000}).metric
    'tuples_per_second'
    """

    case: str
    metric: str
    value: float
    unit: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.metric in METRICS or self.metric.startswith(RATIO), f"unknown metric {self.metric!r}"


def report(suite: str, results: Sequence[Figure]) -> dict[str, Any]:
    """The JSON document of a run on this machine."""
    return {"suite": suite, "machine": machine(), "results": [asdict(result) for result in results]}


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the code: processor, memory, versions."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """The model name where Linux tells it; elsewhere the platform module's word."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
