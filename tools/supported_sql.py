"""Writes docs/supported-sql.md from the corpus of the tests, so that the page claims what a test proves, nothing else.

Every query listed is run by the tests against Spark on the same rows; every refused one is tested to be refused when
the view is created. Run as ``make docs``; a test fails while the page is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from everview.relational.functions import function_names
from tests.corpus.data import Query, queries

PAGE = Path(__file__).resolve().parents[1] / "docs" / "supported-sql.md"
EXCERPT = 110

FOLDERS: dict[str, str] = {
    "general": "Topics",
    "tpch": "TPC-H",
    "multilevel": "Queries of the multilevel IVM paper",
    "queryplan": "Queries of the query-plan IVM paper",
}
"""The folders of the corpus that the tests run against Spark, in the page's order."""

AGGREGATES = """
    any any_value approx_count_distinct array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list collect_set
    corr count count_if covar_pop covar_samp every first histogram_numeric kurtosis last listagg max max_by mean median
    min min_by mode percentile percentile_approx percentile_cont percentile_disc product regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp
    string_agg sum try_avg try_sum var_pop var_samp variance
"""
WINDOWS = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
"""Spark's names; the page lists those that a query of the corpus calls."""

_KEYWORDS = frozenset(("as", "by", "decimal", "in", "on", "over", "and", "or"))
_CALL = re.compile(r"(?<!like )\b([a-z_][a-z0-9_]*)\s*\(", re.IGNORECASE)
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'")


def render() -> str:
    """The whole page."""
    lines = [
        "# Supported SQL",
        "",
        "Written by `make docs` from `tests/corpus`; do not edit. Each query below is a test: everview's answer equals",
        "Spark's, as bags. What is not here may work too: Spark resolves the query, and what cannot be maintained is",
        "refused with `UnsupportedQuery` when the view is created, never later. Where the answer of a refused query is a",
        'function of the tables\' rows, `strategy="recompute"` takes it all the same ([any query](any-query.md)).',
        "",
    ]
    proven: list[Query] = []
    for folder, title in FOLDERS.items():
        found = queries(folder)
        proven += found
        lines += [f"## {title}", "", *_folder(found), ""]
    called = {name.lower() for query in proven for name in _CALL.findall(_STRING.sub("''", query.sql))}
    lines += ["## Aggregate functions", "", _names(called & set(AGGREGATES.split())), ""]
    lines += ["## Window functions", "", f"{_names(called & set(WINDOWS.split()))}, and aggregates over a window.", ""]
    lines += [
        "## Scalar functions and operators",
        "",
        "By the algebra's name, which is Spark's in most cases:",
        "",
    ]
    lines += [_names(function_names()), ""]
    lines += [
        "## Computed by Spark's own code",
        "",
        "Every other deterministic scalar function of Spark, and Python and SQL functions of the user's session: a batch at a",
        "time, said in `explain`, on all backends. `tests/spark/test_all_functions.py` tries what `SHOW FUNCTIONS` lists. The",
        "queries of the topic *Spark code* above are all computed so; they call:",
        "",
    ]
    by_spark = {
        n.lower() for q in proven if q.file.stem == "spark_code" for n in _CALL.findall(_STRING.sub("''", q.sql))
    }
    words = {*AGGREGATES.split(), *WINDOWS.split(), *function_names(), *_KEYWORDS}
    lines += [_names(by_spark - words), ""]
    lines += ["## Refused", "", *_file_table(queries("unsupported.sql")), ""]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Writes the page, or with ``--check`` says whether it is up to date."""
    page = render()
    if "--check" not in arguments:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
    if not is_current:
        print(f"{PAGE.name} is out of date. Hint: make docs", file=sys.stderr)
    return 0 if is_current else 1


def _folder(found: Sequence[Query]) -> Iterator[str]:
    """A section a file where files hold several queries, one table where each holds one."""
    files = list(dict.fromkeys(query.file for query in found))
    if len(files) == len(found):
        yield from _file_table(found, describe=True)
        return
    for number, file in enumerate(files):
        if number:
            yield ""
        yield f"### {file.stem.replace('_', ' ').capitalize()}"
        yield ""
        yield from _file_table([query for query in found if query.file == file])


def _file_table(found: Sequence[Query], describe: bool = False) -> Iterator[str]:
    if not describe and (about := _opening_comment(found[0].file)):
        yield from (about, "")
    yield "| query | SQL |"
    yield "| --- | --- |"
    for query in found:
        about = _opening_comment(query.file) if describe else ""
        yield f"| {query.name} | {about + '<br>' if about else ''}`{_excerpt(query.sql)}` |"


def _opening_comment(file: Path) -> str:
    """What a file says of itself before its first query."""
    words = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("--") or line.startswith("-- name:"):
            break
        words.append(line.removeprefix("--").strip())
    return " ".join(words)


def _excerpt(sql: str) -> str:
    """The statement on one line, cut at a word; a bar would end the cell of the table, a back-tick the code."""
    line = " ".join(sql.split()).replace("|", "\\|").replace("`", "")
    return line if len(line) <= EXCERPT else line[:EXCERPT].rsplit(" ", maxsplit=1)[0] + " …"


def _names(names: Sequence[str] | set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
