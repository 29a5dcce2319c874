"""What a changed row of a table meets on its way through the program of a view, and what that costs.

Every search of a rule and every join of a trigger is a *meeting*. A look-up finds one row at most, and so does a slice by a key
(``unique_keys``). The cost of a row is that of its most expensive meeting: rows that a slice finds are met one by one
afterwards, which is O(matches) in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import assert_never

from everview.planner.block_join_builder import FactsOf
from everview.planner.bound import Bound
from everview.planner.plan_recursive import RecursivePlan
from everview.planner.plan_tree import TreePlan
from everview.planner.skew_plan import SkewPlan
from everview.relational.expressions import Column, Expression, conjunction
from everview.relational.failing import can_fail
from everview.relational.join_condition import differing_columns, split_join_condition
from everview.relational.nodes import Aggregate, Join, JoinKind, Recursive, Relation, Scan, SparkQuery, TopK, Window
from everview.relational.range_condition import range_searches
from everview.relational.schema import schema
from everview.relational.sql_text import sql_text
from everview.relational.unique_keys import UniqueKey, kept_apart, unique_keys
from everview.trigger.order_accesses import finds_one, kept_in_order
from everview.trigger.origins import described, origin_of
from everview.trigger.program import (
    Anew,
    Apply,
    CheckSingle,
    Collection,
    FactorizedBlock,
    MatrixBlock,
    NestedFilter,
    Place,
    Program,
    ProgramStatement,
    Search,
    ThresholdFilter,
    TreeBlock,
    scans,
)
from everview.trigger.tree_program import Access, AccessKind, Compute, TreeProgram


class Cost(IntEnum):
    """What one changed row costs, from least to most."""

    CONSTANT = 0
    LOGARITHMIC = 1
    TURNING = 2
    MATCHES = 3
    ORDERED_MATCHES = 4
    SEARCHED_MATCHES = 5
    PARTITION = 6
    LINEAR = 7

    def __str__(self) -> str:
        return _COSTS[self.value]


_COSTS = (
    "O(1)",
    "O(log N)",
    "O(log N + rows that turn)",
    "O(matches)",
    "O(log N + matches)",
    "O(log N * matches)",
    "O(partition)",
    "O(N)",
)


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a change finds: of ``what``, the rows with its values of ``by``.

    ``place`` is the table and the columns that ``by`` are, where they are columns of one, and ``bound`` what a plan of heavy
    and light parts promises.
    """

    kind: AccessKind
    cost: Cost
    what: str
    by: tuple[str, ...] = ()
    place: tuple[Scan, tuple[int, ...]] | None = None
    ordered: str | None = None
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class RowCost:
    """What a changed row of a table costs: the sum of its meetings, in order."""

    table: str
    meetings: tuple[Meeting, ...]

    @property
    def cost(self) -> Cost:
        """That of the most expensive one."""
        return max((m.cost for m in self.meetings), default=Cost.CONSTANT)

    def __str__(self) -> str:
        promised = [m.bound for m in self.meetings if m.cost is self.cost]
        bounds = [b for b in promised if b is not None]
        return str(max(bounds)) if bounds and len(bounds) == len(promised) else str(self.cost)


def cost_of_any_aggregate(aggregate: Aggregate) -> Cost:
    """An engine that computes what is no function of sums from all rows of a touched group."""
    return Cost.PARTITION


@dataclass(frozen=True, slots=True)
class PlannedView:
    """The program of a view, those of the views that it reads (by name in small letters), and what engine runs them.

    ``aggregate_cost`` is what a row costs in an aggregate that is no function of sums; an engine without ``has_order`` compares
    where another searches in order.
    """

    program: Program
    facts_of: FactsOf
    below: Mapping[str, Program] = field(default_factory=dict)
    has_order: bool = True
    aggregate_cost: Callable[[Aggregate], Cost] = cost_of_any_aggregate

    def row_costs(self) -> tuple[RowCost, ...]:
        """The cost for every table below the view that changes, in the order in which they are read."""
        return tuple(RowCost(table, tuple(self._met(self.program, table))) for table in self._tables(self.program))

    def _tables(self, program: Program) -> dict[str, None]:
        found: dict[str, None] = {}
        for given in program.inputs:
            inner = self.below.get(given.name.lower())
            if inner is not None:
                found |= self._tables(inner)
            elif given.is_changing:
                found[given.name] = None
        return found

    def _met(self, program: Program, table: str) -> Iterator[Meeting]:
        """What a changed row of a table meets, in the views that a view reads and then in itself."""
        moving = {table}
        for given in program.inputs:
            inner = self.below.get(given.name.lower())
            if inner is not None and table in self._tables(inner):
                moving.add(given.name)
                yield from self._met(inner, table)
        own = _Meetings(self, program)
        for collection in program.collections:
            for side, scan in enumerate(scans(collection.statement)):
                if scan.table in moving:
                    moving.add(collection.name)
                    yield from own.of(collection, side)


@dataclass(slots=True)
class _Meetings:
    """The meetings of one program."""

    view: PlannedView
    program: Program
    _keys: dict[str, tuple[UniqueKey, ...]] = field(default_factory=dict)

    def of(self, collection: Collection, side: int) -> Iterator[Meeting]:
        """What a change of an input of a statement meets there."""
        statement = collection.statement
        match statement:
            case Apply(node=Window() as node):
                yield self._partition(node)
            case Apply(node=TopK(limit=limit)):
                cost = Cost.LINEAR if limit is None else Cost.LOGARITHMIC
                yield Meeting(AccessKind.RANGE, cost, "its place in the order")
            case Apply(node=Aggregate() as node, rules=rules) if rules[0].searches[0].place is Place.ORDER:
                cost = self.view.aggregate_cost(node)
                kind = AccessKind.GROUP if cost is Cost.PARTITION else AccessKind.RANGE
                names = tuple(f.name for f in schema(node)[: len(node.keys)])
                what = "the values of its group" if kind is AccessKind.GROUP else "its place in its group"
                yield Meeting(kind, cost, what, names)
            case Apply(node=Recursive()):
                yield Meeting(AccessKind.SLICE, Cost.MATCHES, "what it leads to, round by round")
            case Apply(node=SparkQuery()) | Anew():
                yield Meeting(AccessKind.GROUP, Cost.LINEAR, "the query")
            case Apply(node=node, rules=rules) | CheckSingle(node=node, rules=rules):
                decides = _what_decides(node) if isinstance(node, Join) and self.view.has_order else None
                for search in rules[side].searches:
                    yield self._searched(node, search, decides)
            case NestedFilter(outer=outer, groups=groups, is_by_keys=by_keys, call=call):
                is_judged = call.function == "avg" if by_keys and call.function not in ("max", "min") else bool(groups)
                cost = Cost.LINEAR if side == 2 and is_judged else Cost.TURNING
                yield Meeting(AccessKind.RANGE, cost, f"the rows of {self._called(outer)} that turn")
            case ThresholdFilter(rows=rows):
                if side == 0:
                    yield Meeting(AccessKind.RANGE, Cost.LOGARITHMIC, "its place in the order")
                else:
                    yield Meeting(AccessKind.RANGE, Cost.TURNING, f"the rows of {self._called(rows)} that turn")
            case TreeBlock(lowered=lowered):
                yield from self._in_tree(statement, lowered.program, lowered.plan, lowered.skew, side)
            case FactorizedBlock(planned=planned):
                yield from self._in_tree(statement, planned.factorized.program, planned.plan, planned.skew, side)
            case MatrixBlock(names=names):
                others = [n for i, n in enumerate(names) if i != side]
                yield Meeting(AccessKind.SCAN, Cost.LINEAR, f"the cells of {', '.join(others)}")
            case _:
                assert_never(statement)

    def _called(self, scan: Scan) -> str:
        return described(self.program, scan.table)

    def _partition(self, window: Window) -> Meeting:
        (read,) = scans(Apply(window, ()))
        names = tuple(f.name for f in read.fields)
        by = tuple(sql_text(e, names) for e in window.partition)
        cost = Cost.PARTITION if by else Cost.LINEAR
        return Meeting(AccessKind.GROUP, cost, self._called(read), by, self._place(read, window.partition))

    def _searched(self, node: Relation, search: Search, decides: str | None) -> Meeting:
        read = scans(Apply(node, ()))[search.side]
        names = tuple(f.name for f in read.fields)
        by = tuple(sql_text(e, names) for e in search.by)
        if search.place is not Place.ROWS:
            what = f"the count in {self._called(read)}" if search.place is Place.COUNTS else "its group"
            return Meeting(AccessKind.LOOKUP, Cost.CONSTANT, what, by if search.place is Place.COUNTS else ())
        if self._is_key(read, search.by):
            return Meeting(AccessKind.LOOKUP, Cost.CONSTANT, self._called(read), by)
        kind = search.kind
        if kind is AccessKind.RANGE and not self.view.has_order:
            kind = AccessKind.SLICE if by else AccessKind.SCAN
        ordered = None if search.ordered is None else sql_text(search.ordered, names)
        if decides is not None and search.side == 1:
            return Meeting(AccessKind.LOOKUP, Cost.LOGARITHMIC, f"{decides} {self._called(read)}", by)
        if decides is not None:
            return Meeting(
                AccessKind.RANGE if kind is AccessKind.SCAN else kind,
                Cost.TURNING,
                f"the rows of {self._called(read)} that turn{f', in the order of {ordered}' if ordered else ''}",
            )
        if kind is AccessKind.RANGE:
            cost = Cost.ORDERED_MATCHES if search.reaching is None else Cost.SEARCHED_MATCHES
        else:
            cost = Cost.MATCHES if kind is AccessKind.SLICE else Cost.LINEAR
        return Meeting(kind, cost, self._called(read), by, self._place(read, search.by), ordered)

    def _in_tree(
        self,
        statement: ProgramStatement,
        program: TreeProgram,
        plan: TreePlan | RecursivePlan | None,
        skew: SkewPlan | None,
        side: int,
    ) -> Iterator[Meeting]:
        atom = program.block.atoms[side].name
        is_constant = plan is not None and any(c.atom == atom and c.is_constant for c in plan.costs)
        promised = skew.costs if skew is not None else plan.costs if plan is not None else ()
        bound = next((c.bound for c in promised if c.atom == atom), None)
        if skew is None and bound is not None and bound.exponent <= 1:
            bound = None  # the matches are what it meets, N at most
        trigger = next(t for t in program.triggers if t.atom == side)
        joins = [j for s in trigger.statements if isinstance(s, Compute) for j in s.joins]
        for access in dict.fromkeys(joins):
            yield self._joined(statement, program, access, bound, is_constant=is_constant)
        if self.view.has_order and kept_in_order(program, side):
            yield Meeting(AccessKind.RANGE, Cost.LOGARITHMIC, "its place in the order")

    def _joined(
        self,
        statement: ProgramStatement,
        program: TreeProgram,
        access: Access,
        bound: Bound | None,
        *,
        is_constant: bool,
    ) -> Meeting:
        view = program.view(access.view)
        atoms = sorted(view.atoms or ({view.indicates} if view.indicates is not None else ()))
        read = scans(statement)
        what = " with ".join(dict.fromkeys(self._called(read[i]) for i in atoms)) or access.view
        if access.kind is AccessKind.RANGE and self.view.has_order:
            return Meeting(access.kind, Cost.LOGARITHMIC, what, access.bound, None, access.ordered)
        if access.kind is AccessKind.LOOKUP or is_constant or finds_one(program, access):
            return Meeting(AccessKind.LOOKUP, Cost.CONSTANT, what, access.bound)
        place = None
        for i in atoms:
            values = dict(program.block.atoms[i].variables)
            if set(access.bound) <= values.keys():
                place = self._place(read[i], tuple(values[v] for v in access.bound))
        kind = AccessKind.SLICE if access.bound else AccessKind.SCAN
        cost = Cost.MATCHES if access.bound else Cost.LINEAR
        return Meeting(kind, cost, what, access.bound, place if len(atoms) == 1 else None, None, bound)

    def _is_key(self, read: Scan, by: tuple[Expression, ...]) -> bool:
        """Whether no two rows agree on these expressions, which a join compares: a NULL among them finds nothing."""
        known = {c for c in map(kept_apart, by) if c is not None}
        return any(key.columns <= known and key.present <= known for key in self._keys_of(read))

    def _keys_of(self, scan: Scan) -> tuple[UniqueKey, ...]:
        made = next((c for c in self.program.collections if c.name == scan.table), None)
        if made is None:
            return self.view.facts_of(scan).keys
        if made.name not in self._keys:
            self._keys[made.name] = self._keys_of_statement(made.statement)
        return self._keys[made.name]

    def _keys_of_statement(self, statement: ProgramStatement) -> tuple[UniqueKey, ...]:
        match statement:
            case Apply(node=node) | CheckSingle(node=node):
                return unique_keys(node, self._keys_of)
            case TreeBlock(source=source) | FactorizedBlock(source=source) | MatrixBlock(source=source):
                return unique_keys(source, self._keys_of)
            case Anew(plan=plan):
                return unique_keys(plan, self._keys_of)
            case NestedFilter(outer=rows) | ThresholdFilter(rows=rows):
                return self._keys_of(rows)
            case _:
                assert_never(statement)

    def _place(self, read: Scan, by: tuple[Expression, ...]) -> tuple[Scan, tuple[int, ...]] | None:
        """The table and its columns that these expressions over a collection are, if they are."""
        found = [origin_of(self.program, read, e.index) if isinstance(e, Column) else None for e in by]
        tables = {o[0] for o in found if o is not None}
        if not found or None in found or len(tables) != 1:
            return None
        return tables.pop(), tuple(o[1] for o in found if o is not None)


def _what_decides(join: Join) -> str | None:
    """What says of a row whether it has a partner, where partners need not be looked at."""
    if join.kind in (JoinKind.SEMI, JoinKind.ANTI) and differing_columns(join) is not None:
        return "the number of other values in"
    return "the extreme of" if _is_by_extreme(join) else None


def _is_by_extreme(join: Join) -> bool:
    """Whether the least or greatest partner of a group decides whether a row has one."""
    residual = conjunction(split_join_condition(join).residual)
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or len(split_join_condition(join).residual) != 1:
        return False
    found = range_searches(residual, len(schema(join.left)), len(schema(join.right)))
    return not can_fail(residual) and all(s is not None and len(s.cuts) == 1 and s.reach is None for s in found)
