"""Bounds on work as functions of N, the number of rows of the database."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, order=True)
class Bound:
    """O(N^exponent · log^logs N); of two bounds, the one that grows faster is the greater.

    >>> print(Bound(), Bound(logs=1), Bound(Fraction(1, 2)), Bound(Fraction(1)), Bound(Fraction(3, 2)))
    O(1) O(log N) O(√N) O(N) O(N^3/2)
    >>> print(max(Bound(Fraction(1, 2), logs=1), Bound(logs=2)))
    O(√N log N)
    """

    exponent: Fraction = Fraction(0)
    logs: int = 0

    def __str__(self) -> str:
        power = {Fraction(0): "", Fraction(1, 2): "√N", Fraction(1): "N"}.get(self.exponent, f"N^{self.exponent}")
        logarithm = {0: "", 1: "log N"}.get(self.logs, f"log^{self.logs} N")
        return f"O({' '.join(filter(None, (power, logarithm))) or '1'})"
