"""Calls of Spark's functions that have an answer for every argument, by the kind of their result.

A template names its arguments by kind: ``<S>`` is text, ``<I>`` an integer, ``<N>`` a decimal, ``<X>`` a double, ``<D>`` a day,
``<M>`` a timestamp, ``<B>`` a truth value. Results of the kind integer stay small, so that sums and products of them do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tests.oracle.generate_tables import Kind

_ARGUMENTS: Final = {
    "S": Kind.STRING,
    "I": Kind.INTEGER,
    "N": Kind.DECIMAL,
    "X": Kind.DOUBLE,
    "D": Kind.DATE,
    "M": Kind.MOMENT,
    "B": Kind.BOOLEAN,
}
TEMPLATES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.STRING: (
        *("lower(<S>)", "initcap(<S>)", "reverse(<S>)", "ltrim(<S>)", "rtrim(<S>)", "repeat(<S>, 2)"),
        *("lpad(<S>, 4, '*')", "rpad(<S>, 3, 'é')", "left(<S>, 1)", "right(<S>, 2)", "translate(<S>, 'ab', 'x')"),
        *("split_part(<S>, ',', 1)", "substring_index(<S>, ',', 1)", "regexp_replace(<S>, '[ab]+', '-')"),
        *("regexp_extract(<S>, '(a)(.?)', 2)", "regexp_substr(<S>, 'b.')", "overlay(<S> PLACING 'zz' FROM 2)"),
        *("md5(<S>)", "sha2(<S>, 256)", "base64(CAST(<S> AS BINARY))", "hex(<S>)", "bin(<I>)", "hex(<I>)"),
        *("concat_ws('-', <S>, <S>)", "format_string('%s/%d', <S>, <I>)", "elt(2, <S>, <S>)", "nvl2(<S>, <S>, 'no')"),
        *("date_format(<D>, 'yyyy-MM')", "date_format(<M>, 'HH:mm')", "to_json(named_struct('a', <I>, 'b', <S>))"),
        *("get_json_object(to_json(named_struct('a', <I>)), '$.a')", "decode(<I>, 1, 'one', 2, 'two', 'many')"),
        *("array_join(array_sort(array(<S>, <S>)), '|')", "array_join(transform(array(<I>, <I>), x -> x + 1), ',')"),
        *("element_at(map('p', <S>, 'q', <S>), 'q')", "map('p', <S>)['z']", "named_struct('a', <S>, 'b', <I>).a"),
        *("chr(65 + pmod(<I>, 26))", "soundex(<S>)", "if(<B>, <S>, <S>)", "to_csv(named_struct('a', <I>, 'b', <S>))"),
        *("CAST(<D> AS STRING)", "CAST(<B> AS STRING)", "mask(<S>)", "url_encode(<S>)", "monthname(<D>)"),
    ),
    Kind.INTEGER: (
        *("bit_count(<I>)", "ascii(<S>)", "levenshtein(<S>, <S>)", "octet_length(<S>)", "locate('b', <S>)"),
        *("(year(<D>) % 10)", "quarter(<D>)", "weekofyear(<D>)", "dayofweek(<D>)", "dayofyear(<D>)", "minute(<M>)"),
        *("extract(DAY FROM <M>)", "size(split(<S>, ','))", "find_in_set(<S>, 'a,b,ab')", "pmod(<I>, 3)"),
        *(
            "(crc32(<S>) % 7)",
            "(hash(<S>, <I>) % 5)",
            "(xxhash64(<I>, <S>) % 5)",
            "array_position(array(<I>, 1, 2), 2)",
        ),
        *("aggregate(array(<I>, <I>, 1), 0L, (acc, x) -> acc + coalesce(x, 0))", "(try_cast(<S> AS INT) % 100)"),
        *("size(filter(array(<I>, <I>), x -> x > 0))", "(<I> & 3)", "(<I> | 4)", "(<I> ^ 1)", "~(<I>)"),
        *("if(<B>, <I>, <I>)", "nullifzero(<I>)", "zeroifnull(<I>)", "element_at(array(<I>, <I>), -1)"),
        *("map('a', <I>, 'b', 2)['b']", "json_array_length(to_json(array(<I>, <I>)))", "shiftleft(pmod(<I>, 8), 2)"),
        *("try_element_at(array(<I>), 2)", "CAST(try_divide(<I>, <I>) AS INT)", "CAST(sign(<I>) AS INT)"),
        *("array_max(array(<I>, <I>))", "size(array_distinct(array(<I>, <I>, <I>)))", "try_mod(<I>, <I>)"),
    ),
    Kind.BOOLEAN: (
        *("startswith(<S>, 'a')", "endswith(<S>, 'b')", "contains(<S>, 'b')", "(<S> RLIKE '^a')", "(<S> ILIKE 'A%')"),
        *("array_contains(array(<I>, 1), 1)", "exists(array(<I>, <I>), x -> x > 2)", "isnan(<X>)"),
        *(
            "forall(array(<I>), x -> x IS NOT NULL)",
            "arrays_overlap(array(<I>), array(<I>, 1))",
            "equal_null(<I>, <I>)",
        ),
        *(
            "(array(<S>, <S>) = array(<S>, <S>))",
            "(named_struct('a', <I>) < named_struct('a', <I>))",
            "(<S> LIKE ANY ('a%', '%b'))",
        ),
        *("((<I>, <S>) = (<I>, <S>))", "map_contains_key(map(1, <S>), <I>)", "try_cast(<S> AS BOOLEAN)"),
    ),
    Kind.DATE: (
        *("trunc(<D>, 'MM')", "add_months(<D>, 1)", "next_day(<D>, 'MO')", "try_cast(<S> AS DATE)"),
        *("make_date(2024, 1 + pmod(<I>, 12), 1)", "date_from_unix_date(pmod(<I>, 100))", "CAST(<M> AS DATE)"),
    ),
    Kind.MOMENT: (
        *("date_trunc('DAY', <M>)", "(<M> + INTERVAL '90' MINUTE)", "CAST(<D> AS TIMESTAMP)"),
        *("timestamp_seconds(<I> * 3600)", "dateadd(HOUR, 2, <M>)", "from_utc_timestamp(<M>, 'Asia/Tokyo')"),
    ),
    Kind.DOUBLE: ("(<X> / 2)", "CAST(shiftleft(1, pmod(<I>, 5)) AS DOUBLE)", "nanvl(<X>, 1D)"),
    Kind.RATIO: ("sqrt(abs(<X>))", "round(<X>, 1)", "bround(<X>, 1)", "months_between(<D>, <D>)"),
    Kind.DECIMAL: ("bround(<N>, 1)", "floor(<N>)", "ceil(<N>)", "greatest(<N>, <I>)", "try_cast(<S> AS DECIMAL(6,2))"),
}


def call(template: str, argument: Callable[[Kind], str]) -> str:
    """The template with arguments of their kinds.

    >>> call("left(<S>, 1)", lambda kind: kind.name.lower())
    'left(string, 1)'
    """
    return re.sub(r"<([SINXDMB])>", lambda found: argument(_ARGUMENTS[found[1]]), template)
