"""A view's upkeep in plain words: what a changed row of each table meets, with the numbers of the rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everview.relational.clock import CLOCK
from everview.relational.nodes import Scan
from everview.trigger.row_cost import Cost, Meeting, RowCost
from everview.trigger.tree_program import AccessKind

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SHOWN = 4
"""So many look-ups are named."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the rows of a table are spread over the values of some columns, NULL aside: on average, and at most."""

    rows: int
    values: int
    most: int

    @property
    def is_unique(self) -> bool:
        """Whether no value is there twice."""
        return self.most <= 1

    @property
    def text(self) -> str:
        """For ``explain``.

        >>> Spread(1200, 100, 340).text
        '12 on average, 340 at most'
        """
        if not self.rows:
            return "none is there yet"
        mean = self.rows / self.values
        shown = f"{mean:,.0f}" if mean >= 10 or mean == int(mean) else f"{mean:,.1f}"
        return f"{shown} on average, {self.most:,} at most"


SpreadOf: TypeAlias = Callable[[Scan, tuple[int, ...]], Spread | None]
"""The spread of the rows of a table or view over some of its columns; None where nobody can look."""


def summary_lines(costs: Sequence[RowCost], spread_of: SpreadOf) -> list[str]:
    """One line for each table."""
    return [f"{_subject(cost.table)} costs {cost}: {_words(cost, spread_of)}" for cost in costs]


def _subject(table: str) -> str:
    return "a move of the clock" if table == CLOCK else f"a changed row of {table}"


def _words(cost: RowCost, spread_of: SpreadOf) -> str:
    parts, looked_up, is_many = [], list[Meeting](), False
    for meeting in (*cost.meetings, None):
        if meeting is not None and meeting.kind is AccessKind.LOOKUP:
            looked_up.append(meeting)
            continue
        if looked_up:
            parts.append(_lookups(looked_up, is_many=is_many))
            looked_up = []
        if meeting is not None:
            parts.append(_found(meeting, spread_of))
            is_many |= meeting.cost not in (Cost.CONSTANT, Cost.LOGARITHMIC)
    return "; ".join(dict.fromkeys(parts)) or "nothing is looked up"


def _lookups(meetings: Sequence[Meeting], *, is_many: bool) -> str:
    count = len(meetings)
    named = list(dict.fromkeys(_by(m.what, m.by) for m in meetings))
    shown = ", ".join(named[:_SHOWN]) + (", …" if len(named) > _SHOWN else "")
    number = _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
    return f"{number} look-up{'s' if count > 1 else ''}{' for each' if is_many else ''} ({shown})"


def _by(what: str, by: Sequence[str]) -> str:
    return f"{what} by {', '.join(by)}" if by else what


def _found(meeting: Meeting, spread_of: SpreadOf) -> str:
    """What is met, where it may be more than one row."""
    spread = None if meeting.place is None else spread_of(*meeting.place)
    numbers = "" if spread is None else f": {spread.text}"
    same = " and ".join(meeting.by)
    ordered = "" if meeting.ordered is None else f" in the order of {meeting.ordered}"
    match meeting.kind:
        case AccessKind.SLICE if same:
            return f"it meets all rows of {meeting.what} with the same {same}{numbers}"
        case AccessKind.SLICE:
            return f"it meets {meeting.what}"
        case AccessKind.SCAN:
            return f"it meets all rows of {meeting.what}"
        case AccessKind.RANGE if meeting.ordered is None:
            return f"it finds {meeting.what}"
        case AccessKind.RANGE if meeting.cost is Cost.LOGARITHMIC:
            return f"it sums a range of {_by(meeting.what, meeting.by)}{ordered}"
        case AccessKind.RANGE:
            return f"it meets a range of {_by(meeting.what, meeting.by)}{ordered}"
        case AccessKind.GROUP if meeting.cost is Cost.LINEAR and not meeting.by:
            return f"all rows of {meeting.what} are computed anew"
        case AccessKind.GROUP if meeting.place is None:
            return f"{_by(meeting.what, meeting.by)} are read"
        case AccessKind.GROUP:
            return f"the rows of {meeting.what} with the same {same} are computed anew{numbers}"
        case _:
            raise AssertionError(f"{meeting.kind} finds one row")


def key_places(costs: Sequence[RowCost]) -> Iterator[tuple[Scan, tuple[int, ...]]]:
    """The columns by which tables are searched and more than one row may be found, each once."""
    found = (m.place for c in costs for m in c.meetings if m.kind is AccessKind.SLICE and m.place is not None)
    yield from dict.fromkeys((scan, tuple(sorted(set(columns)))) for scan, columns in found)
