"""Any algebra expression as one Spark SQL text, a common table expression for each node.

Rows are positional in the algebra, so columns are named ``c0``, ``c1``, … in every one of them; a relation without columns
has the column ``u``, because SQL knows none. Contract: run in an ANSI session in the plan's time zone, over views that hold
the scanned bags in the same naming, the text returns the bag that ``relational.nodes`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from everview.backends.spark.sql_aggregates import aggregate_sql
from everview.backends.spark.sql_expressions import expression_sql
from everview.backends.spark.sql_literals import literal_sql
from everview.backends.spark.sql_windows import ROW, WindowSql, order_sql, whole_row
from everview.errors import UnsupportedQuery
from everview.relational.definitions.spark_aggregates import depends_on_order
from everview.relational.expressions import TRUE, Column
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.rules.split_outer_join import split_outer_join
from everview.relational.schema import schema

_JOINS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}


def column_names(count: int) -> list[str]:
    """How the columns of a relation with so many are called."""
    return [f"c{i}" for i in range(count)]


def answer_name(query: SparkQuery) -> str:
    """The name under which the answer to a query is scanned, which has been computed before the text is written."""
    return f"answer {hash(query)}"


def plan_sql(
    plan: Relation, view_of: Callable[[str], str], is_small: Callable[[Relation], bool] = lambda _plan: False
) -> str:
    """The text of a plan.

    Args:
        plan: What to compute.
        view_of: The temporary view that holds a scanned table.
        is_small: Which inputs of joins are worth sending to all tasks.

    Raises:
        UnsupportedQuery: an expression has no form in Spark SQL.
    """
    return _Writer(view_of, is_small).write(plan)


class _Writer:
    def __init__(self, view_of: Callable[[str], str], is_small: Callable[[Relation], bool]) -> None:
        self._view_of = view_of
        self._is_small = is_small
        self._texts: list[str] = []
        self._names: dict[Relation, str] = {}

    def write(self, plan: Relation) -> str:
        root = self._name(plan)
        return f"WITH {', '.join(self._texts)} SELECT * FROM {root}"

    def _name(self, relation: Relation) -> str:
        known = self._names.get(relation)
        if known is None:
            text = self._select(relation)
            known = f"n{len(self._texts)}"
            self._texts.append(f"{known} AS ({text})")
            self._names[relation] = known
        return known

    def _select(self, relation: Relation) -> str:
        match relation:
            case Scan():
                return f"SELECT * FROM {self._view_of(relation.table)}"
            case Values():
                return _values(relation)
            case Filter():
                names = column_names(len(schema(relation)))
                condition = expression_sql(relation.condition, names)
                return f"SELECT * FROM {self._name(relation.child)} WHERE {condition}"
            case Project():
                names = column_names(len(schema(relation.child)))
                listed = _listed([expression_sql(e, names) for e in relation.expressions])
                return f"SELECT {listed} FROM {self._name(relation.child)}"
            case Join():
                return self._join(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Distinct():
                child = self._name(relation.child)
                if not schema(relation):
                    return f"SELECT * FROM {child} LIMIT 1"
                return f"SELECT DISTINCT * FROM {child}"
            case Recursive():
                raise UnsupportedQuery(
                    "the spark backend does not maintain recursive queries.",
                    operator="WITH RECURSIVE",
                    hint="the embedded backend does.",
                )
            case SparkQuery():
                return f"SELECT * FROM {self._view_of(answer_name(relation))}"
            case UnionAll():
                return " UNION ALL ".join(f"SELECT * FROM {self._name(i)}" for i in relation.inputs)
            case ExceptAll():
                return self._set_operation("EXCEPT ALL", relation.left, relation.right)
            case IntersectAll():
                return self._set_operation("INTERSECT ALL", relation.left, relation.right)
            case UnionMax():
                # max(l, r) = l + (r - l) with the subtraction stopping at zero
                left, right = self._name(relation.left), self._name(relation.right)
                more = f"SELECT * FROM {right} EXCEPT ALL SELECT * FROM {left}"
                return f"SELECT * FROM {left} UNION ALL ({more})"
            case Window():
                return self._window(relation)
            case TopK():
                return self._top(relation)
            case Generate():
                return self._generate(relation)
            case _:
                assert_never(relation)

    def _set_operation(self, word: str, left: Relation, right: Relation) -> str:
        return f"SELECT * FROM {self._name(left)} {word} SELECT * FROM {self._name(right)}"

    def _join(self, join: Join) -> str:
        if join.kind is JoinKind.MARK:
            split = split_outer_join(join)
            assert split is not None
            return f"SELECT * FROM {self._name(split)}"
        left, right = self._name(join.left), self._name(join.right)
        count = len(schema(join.left))
        left_names = [f"l.c{i}" for i in range(count)]
        right_names = [f"r.c{i}" for i in range(len(schema(join.right)))]
        condition = expression_sql(join.condition, [*left_names, *right_names])
        if join.kind is JoinKind.SINGLE:
            return self._single(join, left, right, condition)
        has_right = join.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        listed = _listed([*left_names, *(right_names if has_right else [])])
        on = "" if join.condition == TRUE and join.kind is JoinKind.INNER else f" ON {condition}"
        word = _JOINS[join.kind] if on else "CROSS JOIN"
        return f"SELECT {self._hint(join)}{listed} FROM {left} l {word} {right} r{on}"

    def _hint(self, join: Join) -> str:
        if join.kind is JoinKind.INNER and self._is_small(join.left):
            return "/*+ BROADCAST(l) */ "
        if join.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT) and self._is_small(join.right):
            return "/*+ BROADCAST(r) */ "
        return ""

    def _single(self, join: Join, left: str, right: str, condition: str) -> str:
        """A scalar subquery, which is an error where it finds two rows."""
        count = len(schema(join.right))
        inside = ", ".join(f"'c{i}', r.c{i}" for i in range(count)) or "'u', 1"
        where = "" if join.condition == TRUE else f" WHERE {condition}"
        found = f"(SELECT named_struct({inside}) FROM {right} r{where}) AS v"
        own = [f"w.c{i}" for i in range(len(schema(join.left)))]
        listed = _listed([*own, *(f"w.v.c{i}" for i in range(count))])
        return f"SELECT {listed} FROM (SELECT l.*, {found} FROM {left} l) w"

    def _aggregate(self, node: Aggregate) -> str:
        child = self._name(node.child)
        names = column_names(len(schema(node.child)))
        computed = [(i, e) for i, e in enumerate(node.keys) if not isinstance(e, Column)]
        source = child
        if computed:  # computed first: GROUP BY takes a constant for a position
            listed = ", ".join(f"{expression_sql(e, names)} AS k{i}" for i, e in computed)
            source = f"(SELECT *, {listed} FROM {child})"
        keys = [names[e.index] if isinstance(e, Column) else f"k{i}" for i, e in enumerate(node.keys)]
        if any(depends_on_order(c) for c in node.aggregates):
            return self._ordered_aggregate(node, source, keys)
        calls = [aggregate_sql(c, names) for c in node.aggregates]
        if not keys and not calls:
            return "SELECT 1 AS u"
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {_listed([*keys, *calls])} FROM {source}{group}"

    def _ordered_aggregate(self, node: Aggregate, source: str, keys: list[str]) -> str:
        """Groups that lie in one partition in the order of each call's arguments: a copy of the rows for each such call.

        All rows of a group are in one task, so that Spark aggregates them where they are, in that order. Other calls, whose
        DISTINCT would lay the rows differently, are computed beside them.
        """
        names = column_names(len(schema(node.child)))
        ordered = {c: i for i, c in enumerate(c for c in node.aggregates if depends_on_order(c))}
        copies = f"SELECT *, explode(sequence(0, {len(ordered) - 1})) AS copy FROM {source}"
        terms = [*keys, "copy"]
        for call, copy in ordered.items():
            args = ", ".join(f"{expression_sql(a, names)} AS a{i}" for i, a in enumerate(call.args[:-1]))
            terms.append(f"CASE WHEN copy = {copy} THEN struct({args}) END")
        if keys:
            lying = f"SELECT * FROM ({copies}) DISTRIBUTE BY {', '.join(keys)} SORT BY {', '.join(terms)}"
        else:
            lying = f"SELECT * FROM (SELECT /*+ REPARTITION(1) */ * FROM ({copies})) SORT BY {', '.join(terms)}"
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        made = [f"{k} AS k{i}" for i, k in enumerate(keys)]
        found = ", ".join(
            [*made, *(f"{aggregate_sql(c, names, only=f'copy = {i}')} AS o{i}" for c, i in ordered.items())]
        )
        plain = {c: i for i, c in enumerate(c for c in node.aggregates if c not in ordered)}
        beside = ", ".join([*made, *(f"{aggregate_sql(c, names)} AS p{i}" for c, i in plain.items())])
        columns = [f"o.k{i}" for i in range(len(keys))]
        columns += [f"o.o{ordered[c]}" if c in ordered else f"p.p{plain[c]}" for c in node.aggregates]
        text = f"SELECT {_listed(columns)} FROM (SELECT {found} FROM ({lying}){group}) o"
        if plain:
            same = " AND ".join(f"o.k{i} <=> p.k{i}" for i in range(len(keys))) or "TRUE"
            text += f" JOIN (SELECT {beside} FROM {source}{group}) p ON {same}"
        return text

    def _window(self, window: Window) -> str:
        names = column_names(len(schema(window.child)))
        texts = WindowSql(window, names)
        numbered = f"(SELECT *, {texts.row_number()} AS {ROW} FROM {self._name(window.child)})"
        listed = _listed([*names, *(texts.call(c) for c in window.functions)])
        return f"SELECT {listed} FROM {numbered}"

    def _top(self, top: TopK) -> str:
        names = column_names(len(schema(top)))
        terms = [*order_sql(top.order, names), *whole_row(names)]
        order = f" ORDER BY {', '.join(terms)}" if terms else ""
        limit = "" if top.limit is None else f" LIMIT {top.limit}"
        offset = f" OFFSET {top.offset}" if top.offset else ""
        return f"SELECT * FROM {self._name(top.child)}{order}{limit}{offset}"

    def _generate(self, node: Generate) -> str:
        names = [f"t.c{i}" for i in range(len(schema(node.child)))]
        outer = "OUTER " if node.outer else ""
        function, made = ("posexplode", ["p", "e"]) if node.with_position else ("explode", ["e"])
        array = expression_sql(node.array, names)
        listed = _listed([*names, *(f"g.{m}" for m in made)])
        source = self._name(node.child)
        return f"SELECT {listed} FROM {source} t LATERAL VIEW {outer}{function}({array}) g AS {', '.join(made)}"


def _listed(texts: list[str]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts)) or "1 AS u"


def _values(values: Values) -> str:
    if not values.fields:
        return " UNION ALL ".join("SELECT 1 AS u" for _ in values.rows) or "SELECT 1 AS u WHERE FALSE"
    types = [f.type for f in values.fields]
    if not values.rows:
        return f"SELECT {_listed([literal_sql(None, t) for t in types])} WHERE FALSE"
    rows = ", ".join(
        "(" + ", ".join(literal_sql(v, t) for v, t in zip(row, types, strict=True)) + ")" for row in values.rows
    )
    return f"SELECT * FROM VALUES {rows} AS t({', '.join(column_names(len(types)))})"
