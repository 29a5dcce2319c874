"""Catalyst's scalar expressions as calls of our functions.

``FUNCTION_NAMES`` maps most classes by name; the few whose JSON carries more than children have a small function each. The
result type comes from the function's declaration. Two things are not in Catalyst's JSON and must be put into the node's fields
by whoever reads the plan: ``escapeChar`` of ``Like`` (None means the default, a backslash) and ``patterns`` of ``LikeAny`` and
its kin.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum
from typing import Final

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_function_names import FUNCTION_NAMES
from everview.frontend.catalyst_json import CatalystNode, simple_name
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Cast, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.functions.dates import TRUNCATIONS
from everview.relational.functions.rounding import rounded_type
from everview.relational.functions.timestamps import CLOCK_UNITS
from everview.relational.types import BOOLEAN, INT32, STRING, TIMESTAMP, TIMESTAMP_NTZ, Array, Struct

Args = tuple[Expression, ...]
Translate = Callable[[CatalystNode, Args], Expression | None]


class EvalMode(Enum):
    """What an operator does where it has no value: fail, or be NULL."""

    ANSI = "ansi"
    TRY = "try"


def translate_function(node: CatalystNode, args: Args, mode: EvalMode) -> Expression | None:
    """The expression for a Catalyst node over its translated children; None for a class that we do not know."""
    if node.name in _SPECIAL:
        return _SPECIAL[node.name](node, args)
    name = FUNCTION_NAMES.get(node.name)
    if name is None:
        return None
    if mode is EvalMode.TRY and name in _TRY_NAMES:
        name = _TRY_NAMES[name]
    return _call(name, args, node.fields.get("timeZoneId"))


def _call(name: str, args: Args, zone: str | None = None) -> Call:
    return Call(name, args, function_named(name).result_type(tuple(a.type for a in args)), zone)


_TRY_NAMES: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def _like(node: CatalystNode, args: Args) -> Expression:
    escape = node.fields.get("escapeChar") or "\\"
    return _call("like", (*args, Literal(escape, STRING)))


def _like_many(connective: str, is_negated: bool) -> Translate:
    def translate(node: CatalystNode, args: Args) -> Expression:
        patterns = node.fields.get("patterns")
        if not isinstance(patterns, list) or not all(p is None or isinstance(p, str) for p in patterns):
            raise UnsupportedQuery(
                f"LIKE {'ANY' if connective == 'or' else 'ALL'} with constant patterns is not supported.",
                operator=node.name,
                hint=f"write one LIKE for each pattern, joined with {connective.upper()}.",
            )
        tests: list[Expression] = []
        for pattern in patterns:
            test: Expression = _call("like", (args[0], Literal(pattern, STRING), Literal("\\", STRING)))
            tests.append(_call("not", (test,)) if is_negated else test)
        result = tests[0]
        for test in tests[1:]:
            result = Call(connective, (result, test), BOOLEAN)
        return result

    return translate


def _rounding(name: str) -> Translate:
    def translate(node: CatalystNode, args: Args) -> Expression:
        places = Literal(evaluate(args[1]), INT32)  # Catalyst has checked that it is a constant
        if places.value is None:
            return Literal(None, rounded_type(args[0].type, 0))
        return Call(name, (args[0], places), rounded_type(args[0].type, places.value))

    return translate


def _failing(strict: str, lenient: str | None = None) -> Translate:
    """A class whose ``failOnError`` says whether it is a ``try_`` form; None for one that we do not have."""

    def translate(node: CatalystNode, args: Args) -> Expression | None:
        name = strict if node.fields.get("failOnError", True) else lenient
        return None if name is None else _call(name, args, node.fields.get("timeZoneId"))

    return translate


def _lenient(name: str) -> Translate:
    """A class that we have only where it does not fail."""
    return lambda node, args: None if node.fields.get("failOnError", False) else _call(name, args)


def _timestamp_making(name: str) -> Translate:
    """GetTimestamp and MakeTimestamp: the result's type and strictness are fields."""

    def translate(node: CatalystNode, args: Args) -> Expression:
        suffix = "_ntz" if node.fields["dataType"] == "timestamp_ntz" else ""
        prefix = "" if node.fields.get("failOnError", True) else "try_"
        return _call(f"{prefix}{name}{suffix}", args, node.fields.get("timeZoneId"))

    return translate


def _with_unit(name: str) -> Translate:
    def translate(node: CatalystNode, args: Args) -> Expression:
        return _call(name, (Literal(node.fields["unit"], STRING), *args), node.fields.get("timeZoneId"))

    return translate


def _truncation(name: str, form_at: int, units: Container[str]) -> Translate:
    """TRUNC and DATE_TRUNC; with a unit that does not exist they are NULL, and Spark does not compute the value.

    Units that are no constants are left to Spark: the value may fail where the unit is none.
    """

    def translate(node: CatalystNode, args: Args) -> Expression | None:
        call, form = _call(name, args, node.fields.get("timeZoneId")), args[form_at]
        if not isinstance(form, Literal):
            return None
        is_unknown = not isinstance(form.value, str) or form.value.upper() not in units
        return Literal(None, call.type) if is_unknown else call

    return translate


def _element_at(node: CatalystNode, args: Args) -> Expression | None:
    if not isinstance(args[0].type, Array):
        return None
    if node.fields.get("failOnError", True):
        return _call("element_at", args)
    if node.fields.get("defaultValueOutOfBound"):
        return _call("try_element_at", (*args, Literal("", STRING)))  # only SPLIT_PART has a default
    return _call("try_element_at", args)


def _size(node: CatalystNode, args: Args) -> Expression | None:
    is_array = isinstance(args[0].type, Array)
    return _call("size", args) if is_array and not node.fields.get("legacySizeOfNull") else None


def _precise_timestamp(node: CatalystNode, args: Args) -> Expression:
    """What Spark computes time windows with: a timestamp as its microseconds, and back; one without zone as if in UTC."""
    given, wanted = node.fields["fromType"], node.fields["toType"]
    if wanted == "long":
        moment = args[0] if given == "timestamp" else Cast(args[0], TIMESTAMP, zone="UTC")
        return _call("unix_micros", (moment,))
    moment = _call("timestamp_micros", args)
    return moment if wanted == "timestamp" else Cast(moment, TIMESTAMP_NTZ, zone="UTC")


def _struct(node: CatalystNode, args: Args) -> Expression:
    names = tuple(str(evaluate(name)) for name in args[::2])
    values = args[1::2]
    return Call("struct", values, Struct(names, tuple(v.type for v in values)))


def _field(node: CatalystNode, args: Args) -> Expression:
    struct, ordinal = args[0].type, int(node.fields["ordinal"])
    assert isinstance(struct, Struct)
    return Call("getfield", (args[0], Literal(ordinal, INT32)), struct.types[ordinal])


def _fields(node: CatalystNode, args: Args) -> Expression:
    array, ordinal = args[0].type, int(node.fields["ordinal"])
    assert isinstance(array, Array)
    assert isinstance(array.element, Struct)
    return Call("getfields", (args[0], Literal(ordinal, INT32)), Array(array.element.types[ordinal]))


_STATIC_CALLS: Final[dict[tuple[str, str], tuple[str, int]]] = {
    ("ByteArray", "lpad"): ("lpad", 3),
    ("ByteArray", "rpad"): ("rpad", 3),
    ("ByteArrayMethods", "startsWith"): ("startswith", 2),
    ("ByteArrayMethods", "endsWith"): ("endswith", 2),
    ("ByteArrayMethods", "contains"): ("contains", 2),
    ("Base64", "encode"): ("base64", 2),
    ("Encode", "encode"): ("encode", 2),
    ("StringDecode", "decode"): ("decode", 2),
}
"""Functions that Catalyst calls in Java: object and method, our name, and how many arguments are the function's own."""


def _static_invoke(node: CatalystNode, args: Args) -> Expression | None:
    found = _STATIC_CALLS.get((simple_name(node.fields["staticObject"]), node.fields["functionName"]))
    return _call(found[0], args[: found[1]]) if found else None


def _first_child(node: CatalystNode, args: Args) -> Expression:
    return args[0]


_SPECIAL: Final[dict[str, Translate]] = {
    "TruncDate": _truncation("trunc", 1, TRUNCATIONS),
    "TruncTimestamp": _truncation("date_trunc", 0, {"MICROSECOND", *CLOCK_UNITS, *TRUNCATIONS}),
    "Like": _like,
    "LikeAny": _like_many("or", is_negated=False),
    "LikeAll": _like_many("and", is_negated=False),
    "NotLikeAny": _like_many("or", is_negated=True),
    "NotLikeAll": _like_many("and", is_negated=True),
    "Round": _rounding("round"),
    "BRound": _rounding("bround"),
    "RoundFloor": _rounding("floor"),
    "RoundCeil": _rounding("ceil"),
    "GetTimestamp": _timestamp_making("to_timestamp"),
    "MakeTimestamp": _timestamp_making("make_timestamp"),
    "MakeDate": _failing("make_date", "try_make_date"),
    "NextDay": _failing("next_day"),
    "UnixTimestamp": _failing("unix_timestamp"),
    "ToUnixTimestamp": _failing("unix_timestamp"),
    "TimestampAdd": _with_unit("timestampadd"),
    "TimestampDiff": _with_unit("timestampdiff"),
    "SubtractTimestamps": lambda node, args: (
        None if node.fields.get("legacyInterval") else _call("subtract_timestamps", args, node.fields.get("timeZoneId"))
    ),
    "SubtractDates": lambda node, args: None if node.fields.get("legacyInterval") else _call("subtract_dates", args),
    "Unhex": _lenient("unhex"),
    "ElementAt": _element_at,
    "GetArrayItem": _failing("subscript", "get"),
    "GetStructField": _field,
    "GetArrayStructFields": _fields,
    "CreateNamedStruct": _struct,
    "PreciseTimestampConversion": _precise_timestamp,
    "Size": _size,
    "StaticInvoke": _static_invoke,
    "KnownNotNull": _first_child,
    "KnownNullable": _first_child,
    "KnownNotContainsNull": _first_child,
    "KnownFloatingPointNormalized": _first_child,
    "NormalizeNaNAndZero": _first_child,
}


NONDETERMINISTIC: Final[dict[str, str]] = {
    "Rand": "rand",
    "Randn": "randn",
    "RandStr": "randstr",
    "Uniform": "uniform",
    "Uuid": "uuid",
    "Shuffle": "shuffle",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "SparkPartitionID": "spark_partition_id",
    "InputFileName": "input_file_name",
    "InputFileBlockStart": "input_file_block_start",
    "InputFileBlockLength": "input_file_block_length",
    "CurrentTime": "current_time",
    "CurrentBatchTimestamp": "current_timestamp",
    "CurrentTimeZone": "current_timezone",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "CurrentUser": "current_user",
    "CurrentPath": "current_path",
    "CallMethodViaReflection": "reflect",
    "TryReflect": "try_reflect",
}
"""Catalyst classes whose value is not a function of the row alone, with the name to show the user."""
