"""Other systems' figures for TPC-H under updates, and the table that sets ours beside them.

Source: the project's ``anchors.md``, measured on one 2-core machine of the kind we develop on (AMD EPYC, g++ 12 -O3, one core
used). Constants there are those systems' own (Q18 ``> 100`` where the official text has ``> 300``, Q1's date 1997-09-01 where
ours is 1998-09-02), so a ratio is a sense of scale, not a race on equal terms. DBToaster's transactions are 1,000 rows mixed
over all tables, and so are ours beside them; F-IVM's are 1,000 rows of one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.table import Table

from benchmarks.tpch_stream import MIXED, ONE_TABLE
from everview.cli.bench_results import Figure

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


def anchor_ratio(anchors: Mapping[str, float], case: str, tuples_per_second: float | None) -> float | None:
    """Our rate at batch 1,000 over another system's; None where one of them is not there.

    >>> anchor_ratio(DBTOASTER, "q08", 0.86e6), anchor_ratio(FIVM, "q02", 0.86e6)
    (2.0, None)
    """
    theirs = anchors.get(case)
    return None if not tuples_per_second or theirs is None else tuples_per_second / (theirs * 1e6)


def comparison(results: Sequence[Figure]) -> Table:
    """One line a query: our rates beside the anchors' and the baselines of the same run, geometric means below.

    Transactions of rows of all tables come first, with DBToaster, whose figures were made with such; then those of one table,
    with F-IVM. ``cpu`` is a rate in processor time, for machines that others use too; a ratio is our trusted rate over theirs,
    and ``strict`` behind it that of strict tables.
    """
    table = Table(
        title=f"TPC-H, thousands of tuples a second, transactions of {ANCHOR_BATCH:,}: mixed, then of one table",
        title_justify="left",
        caption=ANCHOR_SOURCE,
    )
    mixed = ("mixed strict", "cpu", "trusted", "cpu", "DBToaster", "ratio", "strict", "x DuckDB", "x Spark")
    single = ("one table strict", "trusted", "F-IVM", "ratio", "changes", "p50 µs", "p99 µs", "MB")
    for heading in ("query", *mixed, *single, "answer"):
        table.add_column(heading, justify="left" if heading in ("query", "answer") else "right")
    means: dict[int, list[float]] = {}
    for case in dict.fromkeys(r.case for r in results):
        own = [r for r in results if r.case == case]
        strict, trusted = _rate(own, "strict", MIXED), _rate(own, "trusted", MIXED)
        alone, alone_trusted = _rate(own, "strict", ONE_TABLE), _rate(own, "trusted", ONE_TABLE)
        cells: list[tuple[float | None, Callable[[float | None], str], bool]] = [
            (strict, _thousands, True),
            (_cpu_rate(own, "strict"), _thousands, False),
            (trusted, _thousands, True),
            (_cpu_rate(own, "trusted"), _thousands, False),
            (DBTOASTER[case] * 1e6, _thousands, False),
            (anchor_ratio(DBTOASTER, case, trusted), _shown, True),
            (anchor_ratio(DBTOASTER, case, strict), _shown, True),
            (_value(own, "ratio_to_duckdb"), _shown, True),
            (_value(own, "ratio_to_spark"), _shown, True),
            (alone, _thousands, True),
            (alone_trusted, _thousands, True),
            (FIVM.get(case, 0.0) * 1e6, _thousands, False),
            (anchor_ratio(FIVM, case, alone_trusted), _shown, True),
            (_rate(own, "strict", ONE_TABLE, "changes"), _thousands, True),
            (_micros(_value(own, "latency_p50")), _shown, False),
            (_micros(_value(own, "latency_p99")), _shown, False),
            ((_value(own, "state_bytes") or 0) / 1e6, _shown, False),
        ]
        for place, (value, _, has_mean) in enumerate(cells):
            if has_mean and value:
                means.setdefault(place, []).append(value)
        wrong = sorted({str(r.params["mode"]) for r in own if r.params.get("answer") == "WRONG"})
        table.add_row(case, *(show(v) for v, show, _ in cells), f"WRONG: {', '.join(wrong)}" if wrong else "right")
    shows = [_thousands if i in (0, 2, 9, 10, 13) else _shown for i in range(len(mixed) + len(single))]
    table.add_section()
    table.add_row("mean", *(show(geometric_mean(means.get(i, []))) for i, show in enumerate(shows)), "")
    return table


def _micros(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _rate(results: Sequence[Figure], mode: str, setting: str, phase: str = "inserts") -> float | None:
    return next((r.value for r in _rates(results, mode, setting, phase)), None)


def _cpu_rate(results: Sequence[Figure], mode: str) -> float | None:
    found = _rates(results, mode, MIXED, "inserts")
    return next((r.params["tuples"] / r.params["cpu_seconds"] for r in found), None)


def _rates(results: Sequence[Figure], mode: str, setting: str, phase: str) -> Iterator[Figure]:
    wanted = {"mode": mode, "phase": phase, "batch": ANCHOR_BATCH, "transactions": setting}
    return (r for r in results if r.metric == "tuples_per_second" and wanted.items() <= r.params.items())


def _value(results: Sequence[Figure], metric: str) -> float | None:
    """The strict setting's value where both were measured."""
    return next((r.value for r in sorted(results, key=lambda r: str(r.params["mode"])) if r.metric == metric), None)


def _thousands(value: float | None) -> str:
    return "" if not value or math.isnan(value) else f"{value / 1e3:,.0f}"


def _shown(value: float | None) -> str:
    if not value or math.isnan(value):
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
