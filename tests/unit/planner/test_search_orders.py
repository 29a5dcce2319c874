"""The search: known best orders, statistics and static tables, blocks of many atoms."""

from __future__ import annotations

import pytest

from everview.planner.check_tree import check_tree
from everview.planner.cost import update_costs
from everview.planner.encoded_query import EncodedQuery
from everview.planner.estimates import Estimates
from everview.planner.order_cost import SIZE, WRITE, order_cost
from everview.planner.plan_tree import plan_tree
from everview.planner.search_orders import search_order
from everview.planner.variable_order import canonical_order, parse_order
from everview.planner.view_tree import InnerView
from tests.unit.planner.queries import join_query, only_updates_to

ROWS = {"L": 6e6, "O": 1.5e6, "C": 150e3, "P": 200e3, "S": 10e3, "N1": 25.0, "N2": 25.0, "R": 5.0}
Q8 = join_query(
    "Q[year, nation] = P[p, type] S[s, n2] L[o, p, s, v] O[o, c, year] C[c, n1] N1[n1, r] N2[n2, nation] R[r, name]",
    "p -> type; s -> n2; o -> c year; c -> n1; n1 -> r; n2 -> nation; r -> name",
    rows=ROWS,
)


def test_a_large_table_decides_the_order() -> None:
    """Of the ends of a path the one that changes most is joined without a scan."""
    text = "Q[] = R[A, B] S[B, C] T[C, D]"
    left = join_query(text, rows={"R": 1e6, "S": 1e3, "T": 1e3})
    right = join_query(text, rows={"R": 1e3, "S": 1e3, "T": 1e6})
    bounds = {c.atom: str(c.bound) for c in plan_tree(left).costs}
    assert bounds["R"] == "O(1)"
    assert {c.atom: str(c.bound) for c in plan_tree(right).costs}["T"] == "O(1)"


def test_tables_that_never_change_cost_nothing() -> None:
    """With updates to T only, T is joined last: the root is over C, whatever R and S cost."""
    query = only_updates_to(join_query("Q[] = R[A, B] S[B, C] T[C, D]", rows={"R": 1e6}), "T")
    assert [(c.atom, str(c.bound)) for c in plan_tree(query).costs] == [("T", "O(1)")]
    assert search_order(query).roots[0].variable == "C"


def test_lines_of_orders_take_constant_time_in_tpch_8() -> None:
    """Foreign keys lead from a line to one row of each other table."""
    plan = plan_tree(Q8)
    bounds = {c.atom: str(c.bound) for c in plan.costs}
    assert bounds["L"] == "O(1)"
    assert max(c.bound.exponent for c in plan.costs) == 1
    assert plan.estimated_cost < 500


def test_bad_orders_cost_more() -> None:
    """Summing lines up to customers before they are joined is estimated worse than the order found, as lines change most."""
    query = join_query("Q[o] = C[c, s] O[o, c] L[o]", "c -> s; o -> c", rows=ROWS)
    bad = parse_order(query, "s - c - o")
    assert order_cost(query, search_order(query)) < order_cost(query, bad)


@pytest.mark.parametrize(
    "text",
    [
        f"Q[x0, x20] = {' '.join(f'R{i}[x{i}, x{i + 1}]' for i in range(20))}",
        f"Q[x0] = {' '.join(f'R{i}[k, x{i}]' for i in range(20))}",
        f"Q[x0, x1] = F[{', '.join(f'k{i}' for i in range(20))}] {' '.join(f'D{i}[k{i}, x{i}]' for i in range(20))}",
        f"Q[] = {' '.join(f'E{i}_{j}[x{i}, x{j}]' for i in range(8) for j in range(i))}",
    ],
    ids=["path", "star", "snowflake", "clique"],
)
def test_large_blocks_are_planned(text: str) -> None:
    """Blocks too large for an exhaustive search still have valid trees."""
    query = join_query(text)
    plan = plan_tree(query)
    check_tree(query, plan.tree)
    assert len(plan.costs) == len(query.atoms)


def test_a_star_is_joined_at_its_centre() -> None:
    """All satellites meet in one flat view."""
    query = join_query(f"Q[] = {' '.join(f'R{i}[k, x{i}]' for i in range(6))}")
    plan = plan_tree(query)
    (root,) = plan.tree.roots
    assert {c.bound.exponent for c in plan.costs} == {0}
    assert isinstance(root, InnerView)
    assert len(root.children) == 6


def test_estimates_follow_keys_and_statistics() -> None:
    """A look-up by a key finds one row, by a foreign key the average number, by nothing all of them."""
    query = join_query("Q[] = O[o, c] C[c, n]", "o -> c; c -> n", rows={"O": 1000.0, "C": 100.0})
    encoded = EncodedQuery(query)
    estimates = Estimates(encoded)

    def matches(wanted: str, bound: str) -> float:
        both = encoded.all_atoms
        return estimates.matches(encoded.variable_set(wanted.split()), encoded.variable_set(bound.split()), both)

    assert matches("c", "o") == 1
    assert matches("n", "o") == 1
    assert matches("o", "c") == 10
    assert matches("o c", "") == 1000
    assert matches("c", "") == 100


def test_dependencies_need_a_witness() -> None:
    """O determines c in a view over orders, and not in a product of lines and customers."""
    query = join_query("Q[] = L[o] O[o, c] C[c]", "o -> c")
    encoded = EncodedQuery(query)
    o, c = encoded.variable_set(["o"]), encoded.variable_set(["c"])
    assert encoded.closure(o, 0b010) == o | c
    assert encoded.closure(o, 0b101) == o


def test_inlining_flattens_what_is_cheaper_joined_at_once() -> None:
    """Facts of a star with keyed dimensions are joined with all of them in one view, and store nothing in between."""
    text = "Q[a, b, c] = F[k1, k2, k3] D1[k1, a] D2[k2, b] D3[k3, c]"
    query = join_query(text, "k1 -> a; k2 -> b; k3 -> c", rows={"F": 1e6})
    flat, deep = plan_tree(query), plan_tree(query, inline=False)
    assert flat.materialized == {"F", "D1", "D2", "D3", flat.tree.roots[0].name}
    assert len(deep.materialized) > len(flat.materialized)
    assert {c.atom: c.bound.exponent for c in update_costs(query, flat.tree)} == {"F": 0, "D1": 1, "D2": 1, "D3": 1}


def test_wide_views_are_inlined_for_engines_that_cannot_afford_them() -> None:
    """A chain grouped by both ends has a view over the ends of its first half, which may outgrow its relations; or none."""
    query = join_query("Q[A, D] = R[A, B] S[B, C] T[C, D]", rows={"R": 1e6, "S": 1e6, "T": 1e6})
    wide, narrow = plan_tree(query), plan_tree(query, keeps_wide=False)
    assert any(len(c.keys) == 2 for c in wide.tree.roots[0].children if isinstance(c, InnerView))  # type: ignore[union-attr]
    assert narrow.materialized == {"R", "S", "T", narrow.tree.roots[0].name}


def test_constant_updates_come_before_estimates_in_listings() -> None:
    """Of a snowflake with few rows of M, i - m is estimated cheaper, and one changed row of M would meet a share of I."""
    rows = {"F": 1e6, "I": 1e4, "M": 10.0}
    query = join_query("Q[] = F[i] I[i, m] M[m]", "i -> m", rows=rows)
    tempting = plan_tree(query, order=parse_order(query, "i - m"))
    assert tempting.estimated_cost < plan_tree(query).estimated_cost
    assert {c.atom: c.bound.exponent for c in tempting.costs} == {"F": 0, "I": 0, "M": 1}
    assert {c.bound.exponent for c in plan_tree(query).costs} == {0}
    static = only_updates_to(query, "F I")
    assert search_order(static).parents() == tempting.order.parents(), "what never changes may be joined in advance"


def test_guarantees_come_before_estimates_in_factorized_trees() -> None:
    """A - D - B - C would be estimated cheaper, with a view at C that no atom covers: the order found keeps updates O(N)."""
    rows = {"R": 50.0, "S": 1000.0, "T": 50.0, "U": 1000.0}
    query = join_query("Q[A, D] = R[C, A, D] S[C, B] T[B, C] U[C]", rows=rows)
    plan = plan_tree(query, representation="factorized")
    tempting = plan_tree(query, representation="factorized", order=parse_order(query, "A - D - B - C"))
    assert tempting.estimated_cost < plan.estimated_cost
    assert max(c.bound.exponent for c in tempting.costs) == 2
    assert max(c.bound.exponent for c in plan.costs) == 1


def test_the_canonical_order_wins_ties() -> None:
    """B - D - {A, C} costs the same, and is not the order that a hierarchical query is known by."""
    rows = {"S": 50.0, "T": 1e6, "U": 1.0}
    query = join_query("Q[A, B] = R[D, A] S[B, D, C] T[D] U[B, D, C]", rows=rows)
    tie = parse_order(query, "B - D - {A, C}")
    assert order_cost(query, tie) == pytest.approx(order_cost(query, canonical_order(query)))
    assert search_order(query) == canonical_order(query)


def test_costs_count_look_ups_writes_and_sizes() -> None:
    """Two tables of a thousand rows with a common key: a look-up, a write to the leaf and to the root, and what is stored."""
    query = join_query("Q[] = R[A] S[A]")
    sizes = (1000 + 1000 + 1) / 2000
    assert order_cost(query, parse_order(query, "A")) == pytest.approx(1 + WRITE * 2 + SIZE * sizes)
