-- ORDER BY with LIMIT and OFFSET over total orders; NULLS FIRST and LAST; top-k inside other operators.

-- name: top_five
SELECT id, salary FROM emp ORDER BY salary DESC, id LIMIT 5;

-- name: bottom_nulls_first
SELECT id, salary FROM emp ORDER BY salary ASC NULLS FIRST, id DESC LIMIT 6;

-- name: nulls_last_ascending
SELECT id, level FROM emp ORDER BY level ASC NULLS LAST, id LIMIT 23;

-- name: nulls_first_descending
SELECT id, bonus FROM emp ORDER BY bonus DESC NULLS FIRST, id LIMIT 7;

-- name: limit_offset
SELECT id, hired FROM emp ORDER BY hired, id LIMIT 5 OFFSET 3;

-- name: offset_only
SELECT id, qty FROM sale ORDER BY qty DESC, id OFFSET 30;

-- name: limit_beyond_rows
SELECT id FROM dept ORDER BY id LIMIT 1000;

-- name: limit_zero
SELECT id FROM dept ORDER BY id LIMIT 0;

-- name: limit_over_duplicates
SELECT a, b, c FROM t1 ORDER BY a, b, c LIMIT 9;

-- name: order_by_expression
SELECT id, name FROM emp ORDER BY LENGTH(name) DESC, UPPER(name), id LIMIT 10;

-- name: order_by_hidden_column
SELECT name FROM emp ORDER BY id DESC LIMIT 4;

-- name: order_by_aggregate
SELECT region, SUM(qty) AS total FROM sale GROUP BY region ORDER BY total DESC, region LIMIT 3;

-- name: limit_in_subquery
SELECT AVG(salary) AS mean_of_top
FROM (SELECT salary FROM emp WHERE salary < 100000 ORDER BY salary DESC, id LIMIT 5) q;

-- name: join_over_top
SELECT q.id, d.city
FROM (SELECT id, dept_id FROM emp ORDER BY id DESC LIMIT 8) q LEFT JOIN dept d ON q.dept_id = d.id;

-- name: in_top
SELECT id, emp_id
FROM sale
WHERE emp_id IN (SELECT id FROM emp ORDER BY bonus DESC, id LIMIT 3);

-- name: scalar_top_one
SELECT id, (SELECT e.name FROM emp e ORDER BY e.id LIMIT 1) AS first_name
FROM dept;

-- name: top_of_union
(SELECT a, b FROM t1 UNION SELECT a, b FROM t2) ORDER BY b DESC, a LIMIT 6;

-- name: top_over_empty
SELECT k FROM nothing ORDER BY k LIMIT 3;

-- name: top_strings
SELECT id, title FROM doc ORDER BY title DESC NULLS LAST, id LIMIT 12;

-- name: order_without_limit
SELECT id, name FROM emp ORDER BY name, id;

-- name: sort_by_without_limit
SELECT id, name FROM emp WHERE id IN (SELECT id FROM emp ORDER BY id LIMIT 7) DISTRIBUTE BY id SORT BY name;

-- name: top_per_join_group
SELECT d.id, COUNT(*) AS n FROM dept d JOIN emp e ON e.dept_id = d.id GROUP BY d.id ORDER BY n DESC, d.id LIMIT 2 OFFSET 1;
