"""The scalar functions of Spark SQL that everview computes: one declaration each, grouped by what they work on.

Importing the package declares all of them. A name is Spark's own, in lower case, or an operator's symbol; where Catalyst has
an expression without a name (a date plus an interval), the name says what it does.
"""

from everview.relational.functions import (
    arithmetic,
    arrays,
    bits,
    comparison,
    dates,
    datetime_conversions,
    encodings,
    intervals,
    logic,
    mathematics,
    patterns,
    rounding,
    strings,
    text_search,
    timestamps,
)
from everview.relational.functions.casts import bind_cast
from everview.relational.functions.comparison import sort_key
from everview.relational.functions.registry import function_named, function_names, is_function

__all__ = [
    "arithmetic",
    "arrays",
    "bind_cast",
    "bits",
    "comparison",
    "dates",
    "datetime_conversions",
    "encodings",
    "function_named",
    "function_names",
    "intervals",
    "is_function",
    "logic",
    "mathematics",
    "patterns",
    "rounding",
    "sort_key",
    "strings",
    "text_search",
    "timestamps",
]
