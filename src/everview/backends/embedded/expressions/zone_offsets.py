"""Time zones over whole columns: the offset of each day, tabulated when it is first needed.

Within a day whose first and last instant have one offset, that offset holds (no zone changes its clocks twice in 24 hours).
Days on which clocks change, and times outside of the years 1900 to 2100, are left to the definition.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from everview.backends.embedded.expressions.cells import any_of
from everview.backends.embedded.vectors import Bools, Ints
from everview.relational.functions.civil import MICROS_PER_DAY
from everview.relational.functions.zones import Zone, zone_named

_FIRST_DAY: Final = -25_567
_DAYS: Final = 73_414
_UNKNOWN: Final = 2**62
_CHANGING: Final = 2**61


class ZoneOffsets:
    """The offsets of one zone."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self.fixed: int | None = getattr(zone, "offset", None)
        """The offset of a zone that has no clock changes."""
        self._by_day = np.full(_DAYS, _UNKNOWN, dtype=np.int64)

    def to_local(self, instants: Ints) -> tuple[Ints, Bools | None]:
        """The local times, and the mask of those that are unknown here."""
        if self.fixed is not None:
            return self._shifted(instants, self.fixed)
        offsets, odd = self._offsets(instants // MICROS_PER_DAY)
        return instants + offsets, odd

    def from_local(self, local: Ints) -> tuple[Ints, Bools | None]:
        """The instants of local times, and the mask of those that are unknown here."""
        if self.fixed is not None:
            return self._shifted(local, -self.fixed)
        day = local // MICROS_PER_DAY
        offsets, odd = self._offsets(day)
        for neighbour in (day - 1, day + 1):  # the instant may lie in either, by at most a day
            other, other_odd = self._offsets(neighbour)
            different = other != offsets if other_odd is None else (other != offsets) | other_odd
            if any_of(different):
                odd = different if odd is None else odd | different
        return local - offsets, odd

    def _shifted(self, times: Ints, offset: int) -> tuple[Ints, Bools | None]:
        if offset == 0:
            return times, None
        shifted = times + offset
        wrapped = (shifted < times) != (offset < 0)
        return shifted, wrapped if any_of(wrapped) else None

    def _offsets(self, days: Ints) -> tuple[Ints, Bools | None]:
        places = days - _FIRST_DAY
        beyond = (places < 0) | (places >= _DAYS)
        if any_of(beyond):
            places = np.where(beyond, 0, places)
        offsets = self._by_day[places]
        unknown = offsets == _UNKNOWN
        if any_of(unknown):
            for place in np.unique(places[unknown]).tolist():
                self._by_day[place] = self._offset_of_day((place + _FIRST_DAY) * MICROS_PER_DAY)
            offsets = self._by_day[places]
        odd = beyond | (offsets == _CHANGING)
        if not any_of(odd):
            return offsets, None
        return np.where(odd, 0, offsets), odd

    def _offset_of_day(self, start: int) -> int:
        first, last = self._zone.offset_at(start), self._zone.offset_at(start + MICROS_PER_DAY - 1)
        return first if first == last else _CHANGING


@lru_cache(maxsize=64)
def offsets_of(zone: str | None) -> ZoneOffsets:
    """The offsets of a zone by its name; None is UTC."""
    return ZoneOffsets(zone_named(zone or "UTC"))
