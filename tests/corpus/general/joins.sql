-- Inner and cross joins: equality, arbitrary conditions, USING, NATURAL, self joins, duplicates and NULL keys.

-- name: inner_equality
SELECT e.id, e.name, d.name AS dept
FROM emp e JOIN dept d ON e.dept_id = d.id;

-- name: inner_comma_where
SELECT t1.a, t1.c, t2.d
FROM t1, t2
WHERE t1.a = t2.a AND t1.b > 0;

-- name: inner_two_keys
SELECT t1.a, t1.b, t1.c, t2.d
FROM t1 JOIN t2 ON t1.a = t2.a AND t1.b = t2.b;

-- name: inner_null_safe_equality
SELECT t1.a, t1.b, t2.d
FROM t1 JOIN t2 ON t1.a <=> t2.a AND t1.b <=> t2.b;

-- name: inner_inequality
SELECT t1.a AS a1, t2.a AS a2, t1.b AS b1, t2.b AS b2
FROM t1 JOIN t2 ON t1.b < t2.b AND t1.a > t2.a;

-- name: inner_band
SELECT e.id, d.id AS dept_id
FROM emp e JOIN dept d ON e.hired BETWEEN d.opened AND d.opened + INTERVAL 5 YEAR;

-- name: inner_or_condition
SELECT t1.a, t1.b, t2.d
FROM t1 JOIN t2 ON t1.a = t2.a OR t1.c = t2.d;

-- name: inner_expression_keys
SELECT t1.a, t3.b, t3.e
FROM t1 JOIN t3 ON t1.a * 10 = t3.b;

-- name: inner_mixed_types_key
SELECT t1.a, t3.e
FROM t1 JOIN t3 ON t1.a = t3.e;

-- name: inner_using
SELECT a, c, d
FROM t1 JOIN t2 USING (a);

-- name: inner_using_two
SELECT a, b, c, d
FROM t1 JOIN t2 USING (a, b);

-- name: natural_inner
SELECT *
FROM t1 NATURAL JOIN t2;

-- name: cross_join
SELECT d.id AS dept_id, t3.b, t3.e
FROM dept d CROSS JOIN t3
WHERE d.id <= 3;

-- name: cross_join_empty
SELECT t1.a, n.k
FROM t1 CROSS JOIN nothing n;

-- name: self_join_manager
SELECT e.name AS employee, m.name AS manager
FROM emp e JOIN emp m ON e.manager_id = m.id;

-- name: self_join_pairs
SELECT x.id AS left_id, y.id AS right_id, x.salary
FROM emp x JOIN emp y ON x.salary = y.salary AND x.id < y.id;

-- name: self_join_three_levels
SELECT e.id, m.id AS boss, b.id AS big_boss
FROM emp e JOIN emp m ON e.manager_id = m.id JOIN emp b ON m.manager_id = b.id;

-- name: chain_of_three
SELECT t1.a, t1.b, t2.d, t3.e
FROM t1 JOIN t2 ON t1.a = t2.a JOIN t3 ON t2.b = t3.b;

-- name: triangle
SELECT COUNT(*) AS triangles
FROM t1 x JOIN t2 y ON x.b = y.b JOIN t1 z ON y.a = z.a AND z.b = x.b;

-- name: star_of_three
SELECT e.name, d.city, s.product, s.qty
FROM sale s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id
WHERE s.qty > 0;

-- name: join_of_aggregates
SELECT x.a, x.n, y.total
FROM (SELECT a, COUNT(*) AS n FROM t1 GROUP BY a) x
JOIN (SELECT a, SUM(b) AS total FROM t2 GROUP BY a) y ON x.a = y.a;

-- name: join_string_keys
SELECT t1.a, t1.c, t2.a AS a2
FROM t1 JOIN t2 ON UPPER(t1.c) = UPPER(t2.d);

-- name: join_on_dates
SELECT s.id AS sale_id, e.id AS event_id
FROM sale s JOIN event e ON s.sold_on = e.day OR MONTH(s.sold_on) = MONTH(e.day) AND s.qty = e.user_id;

-- name: join_inline_values
SELECT e.id, v.label
FROM emp e JOIN (VALUES (1, 'one'), (2, 'two'), (3, CAST(NULL AS STRING)), (3, 'three')) AS v(dept_id, label)
  ON e.dept_id = v.dept_id;

-- name: join_constant_false
SELECT t1.a, t2.d
FROM t1 JOIN t2 ON 1 = 0;
