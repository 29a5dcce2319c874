"""Other systems' figures for TPC-H under updates, and the table that sets ours beside them.

Source: the project's ``anchors.md``, measured on one 2-core machine of the kind we develop on (AMD EPYC, g++ 12 -O3, one core
used). Constants there are those systems' own (Q18 ``> 100`` where the official text has ``> 300``, Q1's date 1997-09-01 where
ours is 1998-09-02), so a ratio is a sense of scale, not a race on equal terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from everview.cli.bench_results import Result

ANCHOR_SOURCE = "anchors.md: DBToaster and F-IVM, SF 0.1, batches of 1,000, millions of tuples a second"

DBTOASTER: dict[str, float] = {
    "q01": 7.5, "q02": 2.3, "q03": 14.6, "q04": 25.7, "q05": 1.0, "q06": 113, "q07": 1.7, "q08": 0.43,
    "q09": 0.12, "q10": 14.0, "q11": 1.9, "q12": 14.1, "q13": 2.1, "q14": 96, "q15": 0.21, "q16": 0.39,
    "q17": 0.37, "q18": 2.7, "q19": 16.9, "q20": 7.1, "q21": 0.88, "q22": 3.9,
}  # fmt: skip
"""DBToaster, batch 1,000."""

DBTOASTER_SINGLE: dict[str, float] = {
    "q01": 1.8, "q02": 1.6, "q03": 10.9, "q04": 22.8, "q05": 1.3, "q06": 190, "q07": 1.6, "q08": 0.51,
    "q09": 0.13, "q10": 9.0, "q11": 0.055, "q12": 25.2, "q13": 1.3, "q14": 68, "q16": 0.46, "q17": 0.44,
    "q18": 1.9, "q19": 8.5, "q20": 0.099, "q21": 1.6, "q22": 0.095,
}  # fmt: skip
"""DBToaster, tuple by tuple; Q15 did not end within 60 s."""

DBTOASTER_STATE_MB: dict[str, float] = {
    "q01": 0, "q02": 20, "q03": 30, "q04": 21, "q05": 262, "q06": 0, "q07": 179, "q08": 483, "q09": 1400,
    "q10": 14, "q11": 27, "q12": 17, "q13": 1, "q14": 0, "q15": 0, "q16": 35, "q17": 80, "q18": 139,
    "q19": 5, "q20": 23, "q21": 210, "q22": 1,
}  # fmt: skip

FIVM: dict[str, float] = {
    "q01": 97.9, "q03": 19.6, "q05": 3.0, "q06": 196, "q08": 2.6, "q09": 0.94, "q10": 19.1, "q12": 18.6, "q14": 50.5,
}  # fmt: skip
"""F-IVM, batch 1,000."""

ANCHOR_BATCH = 1_000


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios; NaN where there are none.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def anchor_ratios(case: str, tuples_per_second: float) -> dict[str, float]:
    """How our rate at batch 1,000 compares: ours divided by theirs, by the name of the system.

    >>> anchor_ratios("q08", 0.86e6)["dbtoaster"]
    2.0
    """
    known = {"dbtoaster": DBTOASTER.get(case), "fivm": FIVM.get(case)}
    return {name: tuples_per_second / (figure * 1e6) for name, figure in known.items() if figure is not None}


def comparison(results: Sequence[Result]) -> Table:
    """One line a query: our rates beside the anchors' and the baselines of the same run, geometric means below.

    ``by cpu`` is the rate in processor time, for machines that others use too; ``ratio`` is our trusted rate over theirs.
    """
    table = Table(
        title=f"TPC-H, thousands of tuples a second, batch {ANCHOR_BATCH:,}",
        title_justify="left",
        caption=ANCHOR_SOURCE,
    )
    columns = ("strict", "by cpu", "trusted", "by cpu", "changes", "x DuckDB", "x Spark", "p50 µs", "p99 µs", "MB")
    for heading in ("query", *columns, "DBToaster", "ratio", "F-IVM", "ratio", "answer"):
        table.add_column(heading, justify="left" if heading in ("query", "answer") else "right")
    ratios: dict[str, list[float]] = {name: [] for name in ("dbtoaster", "fivm", "ratio_to_duckdb", "ratio_to_spark")}
    rates: dict[str, list[float]] = {"strict": [], "trusted": []}
    for case in dict.fromkeys(r.case for r in results):
        own = [r for r in results if r.case == case]
        strict, trusted = _rate(own, "strict"), _rate(own, "trusted")
        against = anchor_ratios(case, trusted) if trusted else {}
        duck, spark = _value(own, "ratio_to_duckdb"), _value(own, "ratio_to_spark")
        for name, ratio in {**against, "ratio_to_duckdb": duck, "ratio_to_spark": spark}.items():
            ratios[name] += [ratio] if ratio else []
        for mode, rate in (("strict", strict), ("trusted", trusted)):
            rates[mode] += [rate] if rate else []
        wrong = sorted({str(r.params["mode"]) for r in own if r.params.get("answer") == "WRONG"})
        table.add_row(
            case,
            *(_thousands(v) for v in (strict, _cpu_rate(own, "strict"), trusted, _cpu_rate(own, "trusted"))),
            _thousands(_rate(own, "strict", "changes")),
            *(_shown(v) for v in (duck, spark)),
            *(_shown(v and v * 1e6) for v in (_value(own, "latency_p50"), _value(own, "latency_p99"))),
            _shown((_value(own, "state_bytes") or 0) / 1e6),
            *(_thousands(v and v * 1e6) for v in (DBTOASTER.get(case),)),
            _shown(against.get("dbtoaster")),
            *(_thousands(v and v * 1e6) for v in (FIVM.get(case),)),
            _shown(against.get("fivm")),
            "WRONG: " + ", ".join(wrong) if wrong else "right",
        )
    mean = {name: _shown(geometric_mean(values)) for name, values in ratios.items()}
    duck_spark = [mean["ratio_to_duckdb"], mean["ratio_to_spark"]]
    table.add_section()
    own_mean = (_thousands(geometric_mean(rates["strict"])), "", _thousands(geometric_mean(rates["trusted"])), "", "")
    table.add_row("mean", *own_mean, *duck_spark, "", "", "", "", mean["dbtoaster"], "", mean["fivm"], "")
    return table


def _rate(results: Sequence[Result], mode: str, phase: str = "inserts") -> float | None:
    return next((r.value for r in _rates(results, mode, phase)), None)


def _cpu_rate(results: Sequence[Result], mode: str) -> float | None:
    return next((r.params["tuples"] / r.params["cpu_seconds"] for r in _rates(results, mode, "inserts")), None)


def _rates(results: Sequence[Result], mode: str, phase: str) -> Iterator[Result]:
    wanted = {"mode": mode, "phase": phase, "batch": ANCHOR_BATCH}
    return (r for r in results if r.metric == "tuples_per_second" and wanted.items() <= r.params.items())


def _value(results: Sequence[Result], metric: str) -> float | None:
    """The strict setting's value where both were measured."""
    return next((r.value for r in sorted(results, key=lambda r: str(r.params["mode"])) if r.metric == metric), None)


def _thousands(value: float | None) -> str:
    return "" if not value or math.isnan(value) else f"{value / 1e3:,.0f}"


def _shown(value: float | None) -> str:
    if not value or math.isnan(value):
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
