"""Mutual information and Chow-Liu trees from counts, against scikit-learn on the columns themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import everview as ev
from everview.learn import ChowLiuTree, MutualInformation
from everview.learn.chow_liu_tree import spanning_tree
from tests.unit.learn.columns import Columns

ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=40)


def columns_of(rows: list[tuple[int, ...]]) -> Columns:
    """Four categorical features."""
    return Columns({}, {name: [row[i] for row in rows] for i, name in enumerate("abcd")})


@given(ROWS, ROWS)
def test_information_is_scikit_learns(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> None:
    """Every pair has the mutual information of its columns, before and after a change; the diagonal has entropies."""
    columns = columns_of(first)
    mi = MutualInformation(columns)
    for rows in (first, second):
        columns.categorical = columns_of(rows).categorical
        mi.refresh()
        for a, b in product("abcd", repeat=2):
            expected = mutual_info_score(columns.categorical[a], columns.categorical[b])
            assert mi.of(a, b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ranking_by_a_label() -> None:
    """Features are ranked by what they say about the label, equal ones in their order."""
    columns = Columns({}, {"y": [0, 0, 1, 1], "x": [0, 0, 1, 1], "noise": [0, 1, 0, 1], "less": [0, 1, 1, 1]})
    mi = MutualInformation(columns)
    assert [name for name, _ in mi.rank("y")] == ["x", "less", "noise"]
    assert mi.rank("y")[0][1] == pytest.approx(np.log(2))
    with pytest.raises(ev.UnknownName, match="did you mean 'noise'"):
        mi.rank("noize")


def test_a_join_without_rows_says_nothing() -> None:
    """No rows: all information is 0, and the tree is there."""
    mi = MutualInformation(columns_of([]))
    assert not mi.matrix.any()
    assert ChowLiuTree(mi).edges == [("a", "b"), ("a", "c"), ("a", "d")]


def test_only_continuous_features_are_refused() -> None:
    """Mutual information without categories is an error that says how to declare bins."""
    with pytest.raises(ev.UnsupportedOperation, match="bins"):
        MutualInformation(Columns({"x": [1.0]}))


@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_the_tree_has_the_most_information(count: int, random: object) -> None:
    """No other spanning tree weighs more: compared with all of them for few features."""
    import itertools

    values = np.array([[random.random() for _ in range(count)] for _ in range(count)])  # type: ignore[attr-defined]
    matrix = values + values.T
    edges = spanning_tree(matrix)
    assert len(edges) == count - 1
    if count > 5:
        return
    weights = []
    for chosen in itertools.combinations(itertools.combinations(range(count), 2), count - 1):
        reached = {0}
        for _ in chosen:
            reached |= {x for e in chosen if set(e) & reached for x in e}
        if len(reached) == count:
            weights.append(sum(matrix[e] for e in chosen))
    assert sum(matrix[e] for e in edges) == pytest.approx(max(weights))


def test_ties_are_stable() -> None:
    """Equal weights, roundings apart, are decided by the order of the features."""
    matrix = np.ones((4, 4))
    matrix[0, 3] = matrix[3, 0] = 1 + 1e-15
    assert spanning_tree(matrix) == [(0, 1), (0, 2), (0, 3)]


def test_texts_and_pictures() -> None:
    """The matrix and the tree have a text, and a picture where matplotlib is there."""
    import matplotlib as mpl

    mpl.use("Agg")
    columns = Columns({}, {"y": [0, 0, 1, 1], "x": [0, 0, 1, 1], "z": [0, 1, 1, 1]})
    mi = MutualInformation(columns)
    tree = ChowLiuTree(mi)
    assert tree.edges == [("y", "x"), ("y", "z")]
    assert str(tree) == "y\n├─ x  0.6931\n└─ z  0.2158"
    assert str(mi).splitlines()[1].split() == ["y", "0.6931", "0.6931", "0.2158"]
    from matplotlib import pyplot

    assert mi.plot().get_title() == "mutual information (nats)"
    assert len(tree.plot().texts) == 3
    pyplot.close("all")
    columns.categorical["x"] = [0, 1, 0, 1]
    assert tree.refresh().edges == [("y", "z"), ("z", "x")]
