-- Common table expressions: used once, twice, nested, shadowing.

-- name: cte_once
WITH rich AS (SELECT id, dept_id FROM emp WHERE salary > 5000)
SELECT d.name, COUNT(*) AS n FROM rich r JOIN dept d ON r.dept_id = d.id GROUP BY d.name;

-- name: cte_twice
WITH totals AS (SELECT dept_id, SUM(salary) AS total FROM emp GROUP BY dept_id)
SELECT x.dept_id, y.dept_id AS other FROM totals x JOIN totals y ON x.total < y.total;

-- name: cte_max_of_itself
WITH totals AS (SELECT region, SUM(qty) AS total FROM sale GROUP BY region)
SELECT region, total FROM totals WHERE total = (SELECT MAX(total) FROM totals);

-- name: cte_chain
WITH a AS (SELECT a, b FROM t1 WHERE b > 0), b AS (SELECT a, SUM(b) AS s FROM a GROUP BY a), c AS (SELECT * FROM b WHERE s > 20)
SELECT c.a, c.s, t2.d FROM c LEFT JOIN t2 ON c.a = t2.a;

-- name: cte_nested
WITH outer_cte AS (WITH inner_cte AS (SELECT id, salary FROM emp WHERE active) SELECT MAX(salary) AS top FROM inner_cte)
SELECT e.id FROM emp e, outer_cte o WHERE e.salary = o.top;

-- name: cte_shadows_table
WITH t1 AS (SELECT a * 2 AS a FROM t2)
SELECT a, COUNT(*) AS n FROM t1 GROUP BY a;

-- name: cte_column_names
WITH q(key_, value_) AS (SELECT a, b FROM t1)
SELECT key_, MAX(value_) AS top FROM q GROUP BY key_;

-- name: cte_in_subquery
SELECT id FROM dept WHERE id IN (WITH busy AS (SELECT dept_id, COUNT(*) AS n FROM emp GROUP BY dept_id) SELECT dept_id FROM busy WHERE n > 2);

-- name: cte_union_of_itself
WITH u AS (SELECT a FROM t1 WHERE a > 2)
SELECT a FROM u UNION ALL SELECT -a FROM u;

-- name: cte_unused
WITH never AS (SELECT COUNT(*) AS n FROM sale)
SELECT id FROM dept;

-- name: cte_window_self_join
WITH numbered AS (SELECT user_id, id, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id) AS n FROM event)
SELECT x.user_id, x.id, y.id AS next_id, y.amount - x.amount AS change FROM numbered x JOIN numbered y ON x.user_id = y.user_id AND y.n = x.n + 1;
