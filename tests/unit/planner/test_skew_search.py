"""Which relations are partitioned on what, which auxiliary views there are, and what the paper's theorems say they cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from everview.planner.bound import Bound
from everview.planner.join_query import Atom, Dependency, JoinQuery
from everview.planner.skew_options import SkewOptions
from everview.planner.skew_plan import SkewPlan
from everview.planner.skew_search import NoSkewPlan, plan_skew

HALF, ONE = Fraction(1, 2), Fraction(1)
TRIANGLE = {"R": "AB", "S": "BC", "T": "CA"}
FOUR_PATH = {"R": "A", "S": "AB", "T": "BC", "U": "C"}
TENTHS = [Fraction(i, 10) for i in range(11)]


def query(shape: dict[str, str], free: str = "") -> JoinQuery:
    """A join of relations over variables of one letter."""
    return JoinQuery(tuple(Atom(name, name, tuple(variables)) for name, variables in shape.items()), tuple(free))


def planned(shape: dict[str, str], epsilon: Fraction | dict[str, Fraction], *, is_refined: bool = False) -> SkewPlan:
    """The plan for one exponent, or for one a relation."""
    given = epsilon if isinstance(epsilon, dict) else dict.fromkeys(shape, epsilon)
    return plan_skew(query(shape), given, is_refined=is_refined)


def views(plan: SkewPlan) -> dict[str, str]:
    """The auxiliary views: their keys and parts."""
    return {f"{v.name}({','.join(v.keys)})": " ".join(plan.name_of(p) for p in v.parts) for v in plan.views}


@pytest.mark.parametrize("epsilon", TENTHS)
def test_theorem_3(epsilon: Fraction) -> None:
    """A triangle: updates O(N^max(ε, 1-ε)), space O(N^(1+min(ε, 1-ε)))."""
    plan = planned(TRIANGLE, epsilon)
    assert {c.bound for c in plan.costs} == {Bound(max(epsilon, 1 - epsilon))}
    assert plan.space == Bound(1 + min(epsilon, 1 - epsilon))


def test_figure_2() -> None:
    """The auxiliary views of the triangle, and what R, S and T are partitioned on."""
    plan = planned(TRIANGLE, HALF)
    assert views(plan) == {"V1(A,B)": "S_h T_l", "V2(B,C)": "R_l T_h", "V3(A,C)": "R_h S_l"}
    assert [[k.variables for k in keys] for keys in plan.partitions] == [[("A",)], [("B",)], [("C",)]]


def test_figure_3() -> None:
    """How a change of R meets the parts of S and T: lines 3 to 6."""
    plan = planned(TRIANGLE, Fraction(2, 5))
    found = {
        " ".join(plan.name_of(p) for p in case.parts): (
            case.view.name if case.view else [plan.name_of(p) for p in case.join.steps],
            case.exponent,
        )
        for case in plan.cases[0]
    }
    assert found == {
        "S_h T_h": (["T_h", "S_h"], Fraction(3, 5)),
        "S_h T_l": ("V1", 0),
        "S_l T_h": (["S_l", "T_h"], Fraction(2, 5)),
        "S_l T_l": (["S_l", "T_l"], Fraction(2, 5)),
    }


@pytest.mark.parametrize("epsilon", [Fraction(0), ONE])
def test_classical_maintenance_is_recovered(epsilon: Fraction) -> None:
    """With ε = 0 or 1 there is one part of each relation and no view (appendix A.1)."""
    plan = planned(TRIANGLE, epsilon)
    assert not plan.views
    assert not plan.is_partitioned
    assert plan.space == Bound(ONE)
    assert {c.bound for c in plan.costs} == {Bound(ONE)}


@pytest.mark.parametrize("of_r", [Fraction(0), ONE])
def test_factorized_maintenance_is_recovered(of_r: Fraction) -> None:
    """With ε_S = 0 and ε_T = 1 the view S ⋈ T is stored whole: R is O(1), S and T are O(N), space O(N²) (appendix A.2)."""
    plan = planned(TRIANGLE, {"R": of_r, "S": Fraction(0), "T": ONE})
    assert views(plan) == {"V1(A,B)": "S T"}
    assert {c.atom: c.bound for c in plan.costs} == {"R": Bound(), "S": Bound(ONE), "T": Bound(ONE)}
    assert plan.space == Bound(Fraction(2))


@pytest.mark.parametrize("epsilon", TENTHS)
def test_theorem_16(epsilon: Fraction) -> None:
    """Refined partitions: the same time, space O(N^max(min(1+ε, 2-2ε), 1)), linear from ε = 1/2 on."""
    plan = planned(TRIANGLE, epsilon, is_refined=True)
    assert {c.bound for c in plan.costs} == {Bound(max(epsilon, 1 - epsilon))}
    expected = max(min(1 + epsilon, 2 - 2 * epsilon), ONE)
    assert plan.space.exponent <= expected
    assert epsilon < HALF or plan.space == Bound(ONE)


def test_figure_8() -> None:
    """The views of refined partitions join parts that are heavy on what the view exports."""
    assert views(planned(TRIANGLE, HALF, is_refined=True)) == {
        "V1(A,B)": "S_hl T_hl",
        "V2(B,C)": "R_lh T_lh",
        "V3(A,C)": "R_hl S_lh",
    }


@pytest.mark.parametrize("degree", [3, 4, 5, 6, pytest.param(7, marks=pytest.mark.slow)])
def test_theorem_25(degree: int) -> None:
    """Loomis-Whitney queries cost what the triangle does, whatever their degree, with one auxiliary view a relation."""
    variables = "ABCDEFG"[:degree]
    shape = {f"R{v}": "".join(u for u in variables if u != v) for v in variables}
    for epsilon in (Fraction(1, 3), HALF)[: 1 if degree > 6 else 2]:
        plan = planned(shape, epsilon)
        assert plan.exponent == max(epsilon, 1 - epsilon)
        assert plan.space == Bound(1 + min(epsilon, 1 - epsilon))
        assert len(plan.views) == degree


@pytest.mark.parametrize("epsilon", TENTHS[1:-1])
def test_theorem_37(epsilon: Fraction) -> None:
    """All joins of three relations: cyclic ones as the triangle, others that are not hierarchical in linear space."""
    cyclic = planned({"R": "ABZ", "S": "BCZ", "T": "CAZ"}, epsilon)
    assert cyclic.exponent == max(epsilon, 1 - epsilon)
    assert cyclic.space == Bound(1 + min(epsilon, 1 - epsilon))
    for shape in ({"R": "A", "S": "AB", "T": "B"}, {"R": "AZ", "S": "ABZ", "T": "BZ"}):
        path = planned(shape, epsilon)
        assert path.exponent == max(epsilon, 1 - epsilon)
        assert path.space == Bound(ONE)


def test_variables_that_go_together_are_one_key() -> None:
    """Two variables of the same relations are partitioned on together."""
    plan = planned({"R": "AXB", "S": "BC", "T": "CAX"}, HALF)
    assert plan.partitions[0][0].variables == ("A", "X")
    assert plan.shape == "triangle"


def bounds(plan: SkewPlan) -> dict[str, str]:
    """What a change of each relation costs."""
    return {cost.atom: str(cost.bound) for cost in plan.costs}


def test_groups_on_a_vertex() -> None:
    """The edges at the vertex are sublinear; the opposite one meets any number of groups (corollary 15), which is said."""
    plan = plan_skew(query(TRIANGLE, "A"), dict.fromkeys(TRIANGLE, HALF))
    assert bounds(plan) == {"R": "O(√N)", "S": "O(N)", "T": "O(√N)"}
    assert "without A it meets any number of groups" in plan.costs[1].reason
    assert plan.shape == "triangle with groups"


def test_groups_cost_nothing_where_the_opposite_edge_is_fixed() -> None:
    """If it does not change, or if a key of it leaves one group, every change is sublinear."""
    atoms = query(TRIANGLE, "A").atoms
    fixed = JoinQuery((atoms[0], replace(atoms[1], updatable=False), atoms[2]), ("A",))
    assert bounds(plan_skew(fixed, dict.fromkeys(TRIANGLE, HALF))) == {"R": "O(√N)", "T": "O(√N)"}
    keyed = replace(query(TRIANGLE, "A"), dependencies=(Dependency(frozenset("B"), frozenset("A")),))
    assert set(bounds(plan_skew(keyed, dict.fromkeys(TRIANGLE, HALF))).values()) == {"O(√N)"}


@pytest.mark.parametrize("epsilon", TENTHS[2:-1:3])
def test_theorem_27(epsilon: Fraction) -> None:
    """The 4-path: updates O(N^max(ε, 1-ε)), space O(N^(1+min(ε, 1-ε)))."""
    plan = planned(FOUR_PATH, epsilon)
    assert plan.exponent == max(epsilon, 1 - epsilon)
    assert plan.space.exponent <= 1 + min(epsilon, 1 - epsilon)
    assert plan.shape == "4-path"


def test_figure_14() -> None:
    """A 4-path has views over two and three parts, some restricted to what is heavy in the relation beside them."""
    plan = planned(FOUR_PATH, HALF)
    assert [[k.variables for k in keys] for keys in plan.partitions] == [[], [("A",), ("B",)], [("B",), ("C",)], []]
    found = {(" ".join(plan.name_of(p) for p in v.parts), "".join(v.keys)) for v in plan.views}
    assert {("S_ll T_lh", "AC"), ("S_hl T_ll", "AC"), ("S_hl T_ll U", "A"), ("R S_ll T_lh", "C")} <= found
    assert {("T_lh U S_heavy_B", "B"), ("R S_hl T_heavy_B", "B"), ("R S_ll", "B"), ("T_ll U", "B")} <= found


def test_triangles_inside_a_larger_join() -> None:
    """The edges stay sublinear; what hangs on a vertex is looked up, and costs more only where it changes itself."""
    assert bounds(planned({**TRIANGLE, "U": "A"}, HALF)) == dict.fromkeys("RST", "O(√N)") | {"U": "O(N)"}
    tail = planned({**TRIANGLE, "U": "AD", "W": "D"}, HALF)
    assert {n: b for n, b in bounds(tail).items() if n in TRIANGLE} == dict.fromkeys("RST", "O(√N)")
    assert tail.shape == "triangle inside a join of 5 relations"
    beside = planned({**TRIANGLE, "U": "D", "W": "D"}, HALF)
    assert bounds(beside) == dict.fromkeys("RST", "O(√N)") | {"U": "O(1)", "W": "O(1)"}
    fixed = query({**TRIANGLE, "U": "AD", "W": "D"})
    fixed = replace(fixed, atoms=tuple(replace(a, updatable=a.name in TRIANGLE) for a in fixed.atoms))
    plan = plan_skew(fixed, dict.fromkeys("RSTUW", HALF))
    assert bounds(plan) == dict.fromkeys("RST", "O(√N)")


def test_other_joins_have_no_plan() -> None:
    """Squares, long paths, joins of two, refined partitions of four relations: each says why."""
    for shape, why in (
        ({"R": "AB", "S": "BC", "T": "CD", "U": "DA"}, "no partition"),
        ({"R": "A", "S": "AB", "T": "BC", "U": "CD", "W": "D"}, "no partition"),
        ({"R": "AB", "S": "BC"}, "joins 2 relations"),
        ({**TRIANGLE, **dict.fromkeys("UVWX", "A")}, "joins 7 relations"),
    ):
        with pytest.raises(NoSkewPlan, match=why):
            planned(shape, HALF)
    with pytest.raises(NoSkewPlan, match="in joins of three"):
        planned({"R": "ABC", "S": "BCD", "T": "CDA", "U": "DAB"}, HALF, is_refined=True)


def test_exponents_by_name() -> None:
    """Of a table, of all its occurrences, or of one; a name that is none is refused."""
    graph = JoinQuery((Atom("e", "0", ("A", "B")), Atom("e#1", "1", ("B", "C")), Atom("t", "2", ("C", "A"))), free=())
    options = SkewOptions(HALF, (("E", Fraction(1, 3)), ("e#1", ONE)))
    assert options.of_atoms(graph) == {"e": Fraction(1, 3), "e#1": ONE, "t": HALF}
    with pytest.raises(NoSkewPlan, match="epsilon names 'x'"):
        SkewOptions(HALF, (("x", HALF),)).of_atoms(graph)
