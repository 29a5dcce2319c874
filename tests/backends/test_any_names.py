"""Tables, views and columns of any names, on every backend, in memory and on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.relational.quoting import quote

NAMES = (("../../out", "a.b"), ("größe-1", "a b; DROP TABLE x"), ("1`2", "'\"%s{}\\"), ("select", "C:\\x*?"))


def files_beside(folder: Path) -> set[Path]:
    """All that lies around a database, and not in it."""
    return {p for p in folder.parent.rglob("*") if folder not in p.parents and p != folder}


@pytest.mark.parametrize(("table_name", "view_name"), NAMES)
def test_names_of_any_kind(backend: str, spark: Any, tmp_path: Path, table_name: str, view_name: str) -> None:
    """Made, changed by rows and by SQL, read by other views, verified, renamed, opened again and dropped."""
    folder = tmp_path / "around" / "db"
    folder.parent.mkdir()
    place: tuple[Any, ...] = () if backend == "reference" else (folder,)
    column = "x`y z"
    with ev.connect(*place, backend=backend, spark=spark) as db:
        table = db.create_table(table_name, f"k int, {quote(column)} int", primary_key="k")
        view = db.create_view(view_name, f"SELECT {quote(column)}, count(*) AS n FROM {quote(table_name)} GROUP BY 1")
        above = db.create_view("above", f"SELECT sum(n) AS n FROM {quote(view_name)}")
        table.insert([(1, 5), (2, 5), (3, 6)])
        db.sql(f"INSERT INTO {quote(table_name)} VALUES (4, 6), (5, NULL)")
        db.sql(f"DELETE FROM {quote(table_name)} WHERE k = 1")
        db.sql(f"UPDATE {quote(table_name)} SET {quote(column)} = 7 WHERE k = 2")
        assert sorted(view.rows(), key=repr) == [(6, 2), (7, 1), (None, 1)]
        assert above.rows() == [(4,)]
        assert view.lookup(**{column: 7}) == [(7, 1)]
        assert db.sql(f"SELECT k FROM {quote(table_name)} WHERE k > 4").rows() == [(5,)]
        assert db.spark_table(table_name).columns == ["k", column]
        assert view_name in db.views
        assert table_name in db.tables
        assert view.explain()
        db.verify()
        assert repr(view_name)[1:-1] in repr(view) or view_name in repr(view)
    if not place:
        return
    assert files_beside(folder) == set()
    with ev.connect(*place, backend=backend, spark=spark) as db:
        db.table(table_name).insert([(9, 6)])
        assert db.view("above").rows() == [(5,)]
        db.verify()
        db.drop("above")
        db.drop(view_name)
        db.drop(table_name)
        assert not db.tables
        assert not db.views
    assert files_beside(folder) == set()
