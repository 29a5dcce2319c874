from __future__ import annotations

import decimal

import pytest

import everview as ev


@pytest.fixture
def shop(db: ev.Database) -> ev.Database:
    """A database made by SQL alone."""
    db.sql("""
        CREATE TABLE item (id BIGINT PRIMARY KEY, name STRING NOT NULL COMMENT 'it''s; a name', price DECIMAL(8, 2));
        CREATE TABLE sale (item BIGINT, qty INT); -- no key; duplicates count
        INSERT INTO item VALUES (1, 'pen', 1.5), (2, 'ink;', 7);
        CREATE MATERIALIZED VIEW revenue AS
            SELECT name, sum(price * qty) AS total FROM item JOIN sale ON item = id GROUP BY name;
        INSERT INTO sale VALUES (1, 10), (1, 10), (2, 1)
    """)
    return db


def test_a_script(shop: ev.Database) -> None:
    """Statements run in order; semicolons in strings and comments are text."""
    assert sorted(shop.view("revenue").rows()) == [("ink;", decimal.Decimal(7)), ("pen", decimal.Decimal(30))]
    assert shop.table("item").primary_key == ("id",)
    assert not shop.table("item").schema.field("name").nullable
    assert shop.version == 2
    assert shop.sql(" ; -- nothing\n;") is None


def test_what_statements_return(shop: ev.Database) -> None:
    """DDL gives handles, DML the commit, queries a result; of several statements the last counts."""
    assert isinstance(shop.sql("CREATE TABLE a (x int)"), ev.Table)
    assert isinstance(shop.sql("CREATE TABLE IF NOT EXISTS a (y int)"), ev.Table)
    view = shop.sql("CREATE VIEW v (n) AS SELECT qty FROM sale -- the end")
    assert isinstance(view, ev.View)
    assert view.columns == ("n",)
    assert isinstance(shop.sql("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS one"), ev.View)
    commit = shop.sql("SELECT 1; INSERT INTO a SELECT qty FROM sale")
    assert isinstance(commit, ev.Commit)
    assert commit.version == 3
    assert isinstance(shop.sql("CREATE ASSERTION few AS SELECT * FROM a WHERE x > 100"), ev.Assertion)
    assert shop.sql("DROP VIEW v; DROP MATERIALIZED VIEW revenue; DROP ASSERTION few; DROP TABLE a") is None


def test_a_result(shop: ev.Database) -> None:
    """The answer of a query can be read in every way, and printed."""
    result = shop.sql("SELECT id, name, price FROM item ORDER BY id LIMIT 5")
    assert isinstance(result, ev.Result)
    rows = [(1, "pen", decimal.Decimal("1.50")), (2, "ink;", decimal.Decimal("7.00"))]
    assert result.rows() == list(result) == rows
    assert len(result) == 2
    assert result.columns == ("id", "name", "price")
    assert result.to_arrow().num_rows == len(result.to_pandas()) == result.to_spark().count() == 2
    assert repr(result) == (" id | name | price\n----+------+-------\n  1 | pen  |  1.50\n  2 | ink; |  7.00\n(2 rows)")
    many = shop.sql("SELECT explode(sequence(1, 30)) AS n")
    assert repr(many).endswith("\n 20\n(30 rows, the first 20 shown)")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, total FROM revenue WHERE total > 10",
        "WITH r AS (SELECT * FROM revenue) SELECT name, total FROM r WHERE total > 10",
        "(SELECT 'pen' AS name, 30 AS total)",
        "VALUES ('pen', 30)",
        "FROM revenue SELECT name, total WHERE total > 10",
    ],
)
def test_queries(shop: ev.Database, query: str) -> None:
    """Whatever is a query in Spark is one here, over tables and views."""
    result = shop.sql(query)
    assert isinstance(result, ev.Result)
    assert result.rows() == [("pen", 30)]


def test_table_statement(shop: ev.Database) -> None:
    """``TABLE t`` reads a table or view."""
    result = shop.sql("TABLE revenue")
    assert isinstance(result, ev.Result)
    assert len(result) == 2


def test_insert_with_columns(shop: ev.Database) -> None:
    """Columns may be named; those left out are NULL, if they can be."""
    shop.sql("INSERT INTO TABLE item (NAME, id) VALUES ('cap', 3)")
    assert shop.table("item").lookup(id=3) == [(3, "cap", None)]
    shop.sql("INSERT INTO item (SELECT 4, 'nib', 2)")
    assert shop.table("item").lookup(id=4) == [(4, "nib", decimal.Decimal(2))]
    with pytest.raises(ev.InvalidChange) as caught:
        shop.sql("INSERT INTO item (id) VALUES (5)")
    assert str(caught.value) == "column 'name' of table 'item' is NOT NULL, but has NULL in row 0."
    with pytest.raises(ev.UnknownName) as unknown:
        shop.sql("INSERT INTO item (id, nam) VALUES (5, 'x')")
    assert str(unknown.value) == "column 'nam' is not in table 'item'. Hint: did you mean 'name'?"
    with pytest.raises(ev.InvalidQuery) as wrong:
        shop.sql("INSERT INTO item VALUES (5, 'x')")
    assert str(wrong.value) == "INSERT INTO 'item' needs 3 columns, but the query gives 2."


def test_update(shop: ev.Database) -> None:
    """UPDATE computes all new values from the old row, for each copy of it."""
    commit = shop.sql(
        "UPDATE sale AS s SET qty = s.qty + 1, s.item = s.qty WHERE s.item = 1 AND s.qty BETWEEN 1 AND 10"
    )
    assert isinstance(commit, ev.Commit)
    assert sorted(shop.table("sale").rows()) == [(2, 1), (10, 11), (10, 11)]
    shop.sql("UPDATE item SET price = price * 2 WHERE id IN (SELECT item FROM sale) /* only sold ones */")
    assert sorted(shop.table("item").rows())[1][2] == decimal.Decimal(14)
    before = shop.version
    shop.sql("UPDATE sale SET qty = 0 WHERE false")
    assert shop.version == before + 1


def test_update_of_keys_is_atomic(shop: ev.Database) -> None:
    """A statement is judged as a whole: keys may change places, but not collide."""
    shop.sql("UPDATE item SET id = 3 - id")
    assert min(shop.table("item").rows())[1] == "ink;"
    with pytest.raises(ev.InvalidChange, match="more than one row with the same primary key"):
        shop.sql("UPDATE item SET id = 1")


def test_delete(shop: ev.Database) -> None:
    """DELETE takes every copy of the rows it finds; without WHERE, all."""
    shop.sql("DELETE FROM sale s WHERE EXISTS (SELECT 1 FROM item i WHERE i.id = s.item AND name = 'pen')")
    assert shop.table("sale").rows() == [(2, 1)]
    shop.sql("DELETE FROM sale")
    assert shop.table("sale").rows() == []
    assert shop.view("revenue").rows() == []


def test_store_assignment(shop: ev.Database) -> None:
    """Values are cast to the column's type as Spark does on INSERT in ANSI mode, and no further."""
    shop.sql("INSERT INTO item VALUES (cast(5 AS tinyint), 6, 2.5D)")
    assert shop.table("item").lookup(id=5) == [(5, "6", decimal.Decimal("2.50"))]
    with pytest.raises(ev.InvalidQuery) as caught:
        shop.sql("INSERT INTO sale VALUES ('1', 2)")
    assert str(caught.value) == (
        "column 'item' of table 'sale' is bigint and cannot be assigned a string. Hint: write a CAST if that is what you mean."
    )
    with pytest.raises(ev.EvaluationError) as overflow:
        shop.sql("UPDATE sale SET qty = qty + 3000000000")
    assert str(overflow.value).startswith("the new values for table 'sale' cannot be computed: ")
    assert overflow.value.condition.startswith("CAST_OVERFLOW")


def test_assertion_statements(shop: ev.Database) -> None:
    """Both forms of CREATE ASSERTION say that a query stays empty."""
    shop.sql("CREATE ASSERTION a AS SELECT * FROM sale WHERE qty < 0")
    shop.sql("CREATE ASSERTION b CHECK (NOT EXISTS (SELECT * FROM sale WHERE qty > (SELECT 100)))")
    for rows in ("(1, -1)", "(1, 101)"):
        with pytest.raises(ev.AssertionViolated):
            shop.sql(f"INSERT INTO sale VALUES {rows}")
    assert list(shop.assertions) == ["a", "b"]


def test_explain(shop: ev.Database) -> None:
    """EXPLAIN takes the name of a view or a query."""
    assert shop.sql("EXPLAIN revenue") == shop.view("revenue").explain()
    told = str(
        shop.sql("EXPLAIN SELECT s.item, sum(s.qty) AS q FROM sale s JOIN item i ON s.item = i.id GROUP BY s.item")
    )
    assert "scan sale" in told
    if shop.view("revenue").explain().startswith("view revenue"):  # the reference recomputes everything
        assert "a view of this query would be maintained so:\na changed row of sale costs O(" in told
    assert list(shop.views) == ["revenue"]
    assert "scan item" in str(shop.sql("EXPLAIN item"))


def test_drop(shop: ev.Database) -> None:
    """DROP names the right kind, and IF EXISTS forgives absence only."""
    assert shop.sql("DROP TABLE IF EXISTS nothing") is None
    with pytest.raises(ev.UnknownName) as caught:
        shop.sql("DROP TABLE itme")
    assert str(caught.value) == "there is no table 'itme'. Hint: did you mean 'item'?"
    with pytest.raises(ev.UnknownName) as caught:
        shop.sql("DROP TABLE IF EXISTS revenue")
    assert str(caught.value) == "'revenue' is a view. Hint: use DROP VIEW."
    with pytest.raises(ev.DependencyError):
        shop.sql("DROP TABLE item")


def test_an_error_carries_its_statement(shop: ev.Database) -> None:
    """In a script one sees which statement failed; those before it have happened."""
    with pytest.raises(ev.InvalidChange) as caught:
        shop.sql("INSERT INTO sale VALUES (3, 3); INSERT INTO item VALUES (1, 'x', 1); DELETE FROM sale")
    assert caught.value.statement == "INSERT INTO item VALUES (1, 'x', 1)"
    assert caught.value.__notes__ == ["in the statement: INSERT INTO item VALUES (1, 'x', 1)"]
    assert len(shop.table("sale")) == 4


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT * FROM itm", ev.UnknownName, "table or view 'itm' does not exist. Hint: did you mean 'item'?"),
        ("INSERT INTO itm VALUES (1)", ev.UnknownName, "there is no table 'itm'. Hint: did you mean 'item'?"),
        (
            "INSERT INTO revenue VALUES ('x', 1)",
            ev.UnknownName,
            "'revenue' is a view, not a table. Hint: changes go to the tables it reads; db.view() gives the view.",
        ),
        (
            "UPDATE item SET prce = 1",
            ev.UnknownName,
            "column 'prce' is not in table 'item'. Hint: did you mean 'price'?",
        ),
        (
            "DELETE FROM item WHERE pric = 1",
            ev.UnknownName,
            "column 'pric' cannot be resolved. Hint: did you mean 'price'?",
        ),
        ("SELECT 1/0", ev.EvaluationError, "division by zero. Hint: try_divide gives NULL instead."),
    ],
)
def test_errors_of_statements(shop: ev.Database, text: str, error: type[ev.EverviewError], message: str) -> None:
    """A mistake in a statement is named as it would be in a call."""
    with pytest.raises(error) as caught:
        shop.sql(text)
    assert str(caught.value) == message


def test_show_and_describe(db: ev.Database) -> None:
    """SHOW and DESCRIBE answer as Spark does, with patterns, for tables and views alike."""
    db.sql("CREATE TABLE emp (id INT NOT NULL, pay DECIMAL(10, 2)); CREATE TABLE dept (name STRING)")
    db.sql("CREATE VIEW pays AS SELECT pay, COUNT(*) AS n FROM emp GROUP BY pay")
    assert db.sql("SHOW TABLES").rows() == [("", "dept", False), ("", "emp", False), ("", "pays", False)]
    assert db.sql("SHOW TABLES LIKE 'D*|E_p'").rows() == [("", "dept", False)]
    assert db.sql("SHOW VIEWS").rows() == [("", "pays", False)]
    assert db.sql("SHOW COLUMNS IN Emp").rows() == [("id",), ("pay",)]
    assert db.sql("DESCRIBE pays").rows() == [("pay", "decimal(10,2)", None), ("n", "bigint", None)]
    assert db.sql("DESC TABLE dept").columns == ("col_name", "data_type", "comment")
    with pytest.raises(ev.UnknownName, match=r"no table or view 'nobody'"):
        db.sql("DESCRIBE nobody")
    with pytest.raises(ev.UnsupportedOperation, match="has no SHOW FUNCTIONS"):
        db.sql("SHOW FUNCTIONS")
