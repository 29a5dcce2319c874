"""F-IVM's figures for its own workloads, and the table that sets ours beside them.

Source: the project's ``anchors.md``, F-IVM's generated C++ on one 2-core machine of the kind we develop on (one core used,
batches of 1,000, whole batches round robin over the tables, full sizes). Its engine keeps no base tables and checks
nothing, so the ``trusted`` rate is the one to set beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.trial import Outcome, Skipped

TABLE_WIDTH = 190


@dataclass(frozen=True, slots=True)
class Anchor:
    """Millions of tuples a second and megabytes of state."""

    rate: float
    state: float | None = None


FIVM_CPP: Mapping[tuple[str, str, str], Anchor] = {
    ("housing", "sum", "sorted"): Anchor(39, 19),
    ("housing", "sum", "shuffled"): Anchor(7.3, 19),
    ("housing", "factorized join", "sorted"): Anchor(3.9, 163),
    ("housing", "listing join", "sorted"): Anchor(0.16, 472),
    ("retailer", "sum", "sorted"): Anchor(3.7, 493),
    ("retailer", "sum, facts only", "sorted"): Anchor(25),
    ("retailer", "factorized join", "sorted"): Anchor(1.6, 789),
    ("retailer", "listing join", "sorted"): Anchor(0.33, 2_644),
}
"""By workload, case and order of arrival; Housing's listing join at scale 4, all else at full size."""


def anchor_of(workload: str, case: str, params: Mapping[str, Any]) -> Anchor | None:
    """The figure for a trial's case, where there is one."""
    return FIVM_CPP.get((workload, case, str(params.get("order"))))


def print_comparison(workload: str, found: Sequence[Outcome | Skipped]) -> None:
    """Prints the table, wide enough for it."""
    Console(width=max(Console().width, TABLE_WIDTH)).print(comparison(workload, found))


def comparison(workload: str, found: Sequence[Outcome | Skipped]) -> Table:
    """One line a trial: rate, state, views and answer, or why it was skipped, beside F-IVM's figure."""
    table = Table(title=f"{workload}, thousands of tuples a second", title_justify="left")
    left = ("case", "scale", "strategy", "representation", "mode", "order", "note")
    headings = (*left[:6], "rate", "by cpu", "MB", "views", "F-IVM C++", "ratio", "its MB", "answer", "note")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for one in found:
        trial = one.trial
        scale, order = (str(trial.params.get(name, "")) for name in ("scale", "order"))
        told = (trial.case, scale, trial.strategy, trial.representation, trial.mode, order)
        if isinstance(one, Skipped):
            table.add_row(*told, *[""] * 7, "", f"skipped: {one.reason}")
            continue
        anchor = anchor_of(workload, trial.case, trial.params)
        theirs = ("", "", "")
        if anchor is not None:
            state = "" if anchor.state is None else f"{anchor.state:,.0f}"
            theirs = (f"{anchor.rate * 1e3:,.0f}", f"{one.timed.rate / (anchor.rate * 1e6):.3g}", state)
        worked = f"{one.timed.worked_rate / 1e3:,.0f}"
        rates = (f"{one.timed.rate / 1e3:,.0f}", worked, f"{one.state / 1e6:,.1f}", str(one.views))
        batches = f"{len(one.timed.seconds):,} of {one.steps:,} batches"
        note = "" if one.timed.stopped is None else f"{batches}, stopped {one.timed.stopped}"
        table.add_row(*told, *rates, *theirs, one.answer, note)
    return table
