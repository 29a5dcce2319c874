-- Left, right, full, semi and anti joins; conditions on either side, unmatched rows, filters above.

-- name: left_equality
SELECT e.id, e.name, d.name AS dept
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id;

-- name: left_condition_on_right
SELECT e.id, d.city
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id AND d.city = 'Oslo';

-- name: left_condition_on_left
SELECT e.id, d.city
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id AND e.active;

-- name: left_inequality
SELECT t1.a, t1.b, t2.b AS b2
FROM t1 LEFT JOIN t2 ON t1.a = t2.a AND t1.b < t2.b;

-- name: left_arbitrary_condition
SELECT t1.a, t2.a AS a2
FROM t1 LEFT JOIN t2 ON t1.b > t2.b + 40;

-- name: left_only_unmatched
SELECT e.id, e.dept_id
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id
WHERE d.id IS NULL;

-- name: left_empty
SELECT t1.a, n.v
FROM t1 LEFT JOIN nothing n ON t1.a = n.k;

-- name: left_chain
SELECT e.id, d.name AS dept, p.name AS parent
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id LEFT JOIN dept p ON d.parent_id = p.id;

-- name: left_then_inner
SELECT t1.a, t2.d, t3.e
FROM t1 LEFT JOIN t2 ON t1.a = t2.a JOIN t3 ON t3.b = t1.b;

-- name: left_grouped_count
SELECT d.id, COUNT(e.id) AS people, COUNT(*) AS rows_seen, SUM(e.salary) AS salaries
FROM dept d LEFT JOIN emp e ON e.dept_id = d.id
GROUP BY d.id;

-- name: left_using
SELECT a, c, d
FROM t1 LEFT JOIN t2 USING (a);

-- name: right_equality
SELECT e.id, d.id AS dept_id, d.name
FROM emp e RIGHT JOIN dept d ON e.dept_id = d.id;

-- name: right_arbitrary
SELECT t1.a, t2.a AS a2, t2.b
FROM t1 RIGHT JOIN t2 ON t1.b = t2.b AND t1.a <> t2.a;

-- name: full_equality
SELECT t1.a AS a1, t1.c, t2.a AS a2, t2.d
FROM t1 FULL JOIN t2 ON t1.a = t2.a;

-- name: full_two_conditions
SELECT t1.a AS a1, t1.b AS b1, t2.a AS a2, t2.b AS b2
FROM t1 FULL OUTER JOIN t2 ON t1.a = t2.a AND t1.b >= t2.b;

-- name: full_inequality_only
SELECT x.b AS b1, y.b AS b2
FROM t3 x FULL JOIN t3 y ON x.b > y.e + 50;

-- name: full_using
SELECT a, c, d
FROM t1 FULL JOIN t2 USING (a);

-- name: full_null_safe
SELECT t1.a AS a1, t2.a AS a2
FROM t1 FULL JOIN t2 ON t1.a <=> t2.a;

-- name: full_empty
SELECT n.k, t3.b
FROM nothing n FULL JOIN t3 ON n.k = t3.b;

-- name: natural_left
SELECT *
FROM t1 NATURAL LEFT JOIN t3;

-- name: natural_full
SELECT *
FROM t1 NATURAL FULL JOIN t2;

-- name: left_semi
SELECT e.id, e.name
FROM emp e LEFT SEMI JOIN sale s ON e.id = s.emp_id;

-- name: left_semi_condition
SELECT t1.a, t1.b
FROM t1 LEFT SEMI JOIN t2 ON t1.a = t2.a AND t1.b <> t2.b;

-- name: left_semi_inequality
SELECT t1.a, t1.b
FROM t1 LEFT SEMI JOIN t3 ON t1.b > t3.e + 20;

-- name: left_anti
SELECT e.id, e.name
FROM emp e LEFT ANTI JOIN sale s ON e.id = s.emp_id;

-- name: left_anti_condition
SELECT t1.a, t1.b
FROM t1 LEFT ANTI JOIN t2 ON t1.a = t2.a AND t1.b < t2.b;

-- name: left_anti_empty
SELECT t1.a
FROM t1 LEFT ANTI JOIN nothing n ON t1.a = n.k;

-- name: outer_of_aggregate
SELECT d.id, d.name, s.total
FROM dept d LEFT JOIN (SELECT dept_id, SUM(salary) AS total FROM emp GROUP BY dept_id) s ON s.dept_id = d.id;

-- name: outer_join_coalesced_keys
SELECT COALESCE(t1.a, t2.a) AS a, COUNT(t1.b) AS left_rows, COUNT(t2.b) AS right_rows
FROM t1 FULL JOIN t2 ON t1.a = t2.a AND t1.b = t2.b
GROUP BY COALESCE(t1.a, t2.a);

-- name: left_join_filter_keeps_nulls
SELECT t1.a, t2.d
FROM t1 LEFT JOIN t2 ON t1.a = t2.a
WHERE t2.d IS NULL OR t2.d <> 'p';

-- name: right_of_distinct_rows_with_condition
WITH w AS (SELECT DISTINCT t1.a, t1.b AS x, t1.a + 1 AS y, t2.b AS z FROM t1 JOIN t2 ON t1.a = t2.a)
SELECT l.z AS lz, r.z AS rz
FROM w l RIGHT JOIN w r ON l.y = r.y
WHERE r.z > 0 AND (r.x <=> 1 OR l.y = r.a);
