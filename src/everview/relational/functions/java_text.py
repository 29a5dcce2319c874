"""Floating-point numbers as Java writes and reads them.

``Double.toString`` gives the fewest digits, but at least two, that tell the number from its neighbours (JDK 19 and later;
older ones sometimes write one digit more).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as Number
from typing import Final

from everview.relational.functions.floats import float32
from everview.relational.types import DataType, Float32

_JAVA_FLOAT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?", re.ASCII)
_JAVA_HEX_FLOAT: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[dDfF]?", re.ASCII
)
_SPECIAL: Final = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}


def float_text(value: float, t: DataType) -> str:
    """The number as Java prints a float or double.

    >>> from everview.relational.types import FLOAT32, FLOAT64
    >>> float_text(1e7, FLOAT64), float_text(0.1, FLOAT64), float_text(float32(0.1), FLOAT32)
    ('1.0E7', '0.1', '0.1')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest_digits(abs(value), float32 if isinstance(t, Float32) else None)
    if -3 <= exponent < 7:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0") if exponent >= 0 else "0"
        fraction = digits[exponent + 1 :] if exponent >= 0 else "0" * (-exponent - 1) + digits
        return f"{sign}{whole}.{fraction or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_digits(value: float, narrow: Callable[[float], float] | None) -> tuple[str, int]:
    """The decimal digits and the exponent of the first one."""
    if narrow is None:
        mantissa, _, exponent = f"{Number(repr(value)):e}".partition("e")
        digits = mantissa.replace(".", "").rstrip("0") or "0"
        if len(digits) == 1:  # of two digits there may be a nearer choice: 4.9E-324, not 5E-324
            near, _, exponent_of_near = f"{value:.1e}".partition("e")
            if float(f"{near}e{exponent_of_near}") == value:
                return near.replace(".", "").rstrip("0"), int(exponent_of_near)
        return digits, int(exponent)
    exact = Number(value)
    for count in range(2, 10):
        candidates = [exact.normalize(Context(prec=count, rounding=mode)) for mode in (ROUND_FLOOR, ROUND_CEILING)]
        matching = [c for c in candidates if narrow(float(c)) == value]
        if matching:
            best = min(matching, key=lambda c: abs(c - exact))
            return "".join(map(str, best.as_tuple().digits)), best.adjusted()
    raise AssertionError(value)


def read_float(text: str) -> float | None:
    """The double that a string spells for Java and Spark; None where it spells none.

    >>> read_float(" 1.5f "), read_float("Infinity"), read_float("1,5")
    (1.5, inf, None)
    """
    trimmed = text.strip("".join(map(chr, range(0x21))))
    if _JAVA_FLOAT.fullmatch(trimmed):
        return float(trimmed.rstrip("dDfF"))
    if _JAVA_HEX_FLOAT.fullmatch(trimmed):
        try:
            return float.fromhex(trimmed.rstrip("dD").rstrip("fF") if trimmed[-1] in "dDfF" else trimmed)
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    sign = -1.0 if trimmed.startswith("-") else 1.0
    name = trimmed.lower()
    unsigned = name[1:] if name[:1] in ("+", "-") else name
    if unsigned not in _SPECIAL or (unsigned == "nan" and name != unsigned):
        return None
    return sign * _SPECIAL[unsigned]
