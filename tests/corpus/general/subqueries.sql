-- Scalar, IN and EXISTS subqueries: uncorrelated, correlated by equality and inequality, nested, in every clause.

-- name: scalar_uncorrelated
SELECT id, salary
FROM emp
WHERE salary > (SELECT AVG(salary) FROM emp WHERE salary < 100000);

-- name: scalar_in_select
SELECT id, (SELECT MAX(qty) FROM sale) AS top_qty
FROM emp;

-- name: scalar_empty_is_null
SELECT id, (SELECT MAX(v) FROM nothing) AS nothing_max, (SELECT COUNT(*) FROM nothing) AS nothing_count
FROM dept;

-- name: scalar_correlated_equality
SELECT e.id, e.salary
FROM emp e
WHERE e.salary >= (SELECT AVG(x.salary) FROM emp x WHERE x.dept_id = e.dept_id);

-- name: scalar_correlated_in_select
SELECT d.id, (SELECT SUM(e.salary) FROM emp e WHERE e.dept_id = d.id) AS total
FROM dept d;

-- name: scalar_correlated_count
SELECT d.id, (SELECT COUNT(*) FROM emp e WHERE e.dept_id = d.id) AS people
FROM dept d;

-- name: scalar_correlated_count_filter
SELECT d.id, d.name
FROM dept d
WHERE (SELECT COUNT(*) FROM emp e WHERE e.dept_id = d.id) = 0;

-- name: scalar_correlated_inequality
SELECT e.id, (SELECT COUNT(*) FROM emp x WHERE x.salary > e.salary) AS richer
FROM emp e;

-- name: scalar_inequality_sum_threshold
SELECT t1.a, t1.b
FROM t1
WHERE (SELECT SUM(y.e) FROM t3 y WHERE y.b <= t1.b AND y.e < 1000) > 5;

-- name: scalar_max_inequality
SELECT t1.a, t1.b
FROM t1
WHERE t1.b < (SELECT MAX(t2.b) FROM t2 WHERE t2.a > t1.a);

-- name: scalar_correlated_two_columns
SELECT x.id, x.salary
FROM emp x
WHERE x.salary = (SELECT MIN(y.salary) FROM emp y WHERE y.dept_id = x.dept_id AND y.active = x.active);

-- name: scalar_arithmetic
SELECT id, salary - (SELECT MIN(salary) FROM emp) AS above_minimum
FROM emp;

-- name: scalar_in_case
SELECT t1.a, CASE WHEN t1.b > (SELECT AVG(b) FROM t2) THEN 'high' ELSE 'low' END AS side
FROM t1;

-- name: scalar_key_lookup
SELECT e.id, (SELECT MAX(d.city) FROM dept d WHERE d.id = e.dept_id) AS city
FROM emp e;

-- name: in_uncorrelated
SELECT id, name
FROM emp
WHERE dept_id IN (SELECT id FROM dept WHERE city = 'Bern');

-- name: in_correlated
SELECT t1.a, t1.b
FROM t1
WHERE t1.b IN (SELECT t2.b FROM t2 WHERE t2.a = t1.a);

-- name: in_correlated_inequality
SELECT t1.a, t1.b
FROM t1
WHERE t1.a IN (SELECT t2.a FROM t2 WHERE t2.b < t1.b);

-- name: in_multi_column
SELECT a, b, c
FROM t1
WHERE (a, b) IN (SELECT a, b FROM t2);

-- name: in_with_aggregate
SELECT id, dept_id, salary
FROM emp
WHERE (dept_id, salary) IN (SELECT dept_id, MAX(salary) FROM emp GROUP BY dept_id);

-- name: not_in_null_aware_with_nulls
SELECT a, b
FROM t1
WHERE b NOT IN (SELECT b FROM t2);

-- name: not_in_without_nulls
SELECT a, b
FROM t1
WHERE b NOT IN (SELECT b FROM t2 WHERE b IS NOT NULL);

-- name: not_in_not_null_column
SELECT id, emp_id
FROM sale
WHERE emp_id NOT IN (SELECT id FROM emp WHERE active);

-- name: not_in_empty
SELECT a
FROM t1
WHERE a NOT IN (SELECT k FROM nothing);

-- name: not_in_correlated
SELECT t1.a, t1.b
FROM t1
WHERE t1.b NOT IN (SELECT t2.b FROM t2 WHERE t2.a = t1.a);

-- name: not_in_multi_column
SELECT a, b
FROM t1
WHERE (a, b) NOT IN (SELECT a, b FROM t2 WHERE a IS NOT NULL AND b IS NOT NULL);

-- name: not_in_multi_column_with_nulls
SELECT a, b
FROM t1
WHERE (a, b) NOT IN (SELECT a, b FROM t2 WHERE a = 2);

-- name: exists_uncorrelated
SELECT id
FROM dept
WHERE EXISTS (SELECT 1 FROM emp WHERE salary > 8000);

-- name: exists_uncorrelated_empty
SELECT id
FROM dept
WHERE NOT EXISTS (SELECT 1 FROM nothing);

-- name: exists_equality
SELECT d.id, d.name
FROM dept d
WHERE EXISTS (SELECT * FROM emp e WHERE e.dept_id = d.id AND e.salary > 4000);

-- name: exists_inequality
SELECT x.a, x.b
FROM t1 x
WHERE EXISTS (SELECT * FROM t2 y WHERE y.a = x.a AND y.b > x.b);

-- name: not_exists_equality
SELECT d.id
FROM dept d
WHERE NOT EXISTS (SELECT * FROM emp e WHERE e.dept_id = d.id);

-- name: not_exists_inequality
SELECT x.id, x.salary
FROM emp x
WHERE NOT EXISTS (SELECT * FROM emp y WHERE y.dept_id = x.dept_id AND y.salary > x.salary);

-- name: exists_and_not_exists
SELECT e.id
FROM emp e
WHERE EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.qty > 2)
  AND NOT EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.qty < 0);

-- name: exists_in_or
SELECT e.id
FROM emp e
WHERE e.salary > 6000 OR EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.region = 'north');

-- name: two_exists_in_or
SELECT e.id, e.name
FROM emp e
WHERE EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.region = 'north')
   OR EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.region = 'south');

-- name: in_inside_or
SELECT a, b
FROM t1
WHERE b IS NULL OR a IN (SELECT a FROM t2 WHERE d = 'p');

-- name: scalar_inside_or
SELECT t1.a, t1.b
FROM t1
WHERE t1.c = 'z' OR t1.b > (SELECT AVG(t2.b) FROM t2 WHERE t2.a = t1.a);

-- name: exists_in_select
SELECT d.id, EXISTS (SELECT 1 FROM emp e WHERE e.dept_id = d.id) AS has_people
FROM dept d;

-- name: nested_exists
SELECT d.id
FROM dept d
WHERE EXISTS (SELECT 1 FROM emp e
              WHERE e.dept_id = d.id
                AND EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.qty >= 3));

-- name: nested_in_in
SELECT id, city
FROM dept
WHERE id IN (SELECT dept_id FROM emp WHERE id IN (SELECT emp_id FROM sale WHERE product = 'fig'));

-- name: nested_scalar_in_in
SELECT id
FROM emp
WHERE dept_id IN (SELECT d.id FROM dept d WHERE d.budget > (SELECT AVG(budget) FROM dept WHERE budget < 1000000));

-- name: nested_correlated_scalars
SELECT d.id
FROM dept d
WHERE 1 <= (SELECT COUNT(*) FROM emp e
            WHERE e.dept_id = d.id
              AND e.salary > (SELECT AVG(x.salary) FROM emp x WHERE x.manager_id = e.manager_id));

-- name: not_exists_not_exists_division
SELECT DISTINCT x.a
FROM t1 x
WHERE NOT EXISTS (SELECT 1 FROM t2 y
                  WHERE y.d = 'p' AND y.a = x.a
                    AND NOT EXISTS (SELECT 1 FROM t3 z WHERE z.b = y.b));

-- name: having_scalar
SELECT dept_id, SUM(salary) AS total
FROM emp
GROUP BY dept_id
HAVING SUM(salary) > (SELECT AVG(salary) FROM emp WHERE salary < 100000);

-- name: having_in
SELECT region, COUNT(*) AS n
FROM sale
GROUP BY region
HAVING COUNT(*) IN (SELECT a FROM t1);

-- name: having_exists
SELECT e.dept_id, COUNT(*) AS n
FROM emp e
GROUP BY e.dept_id
HAVING EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept_id AND d.city = 'Lima');

-- name: subquery_over_join
SELECT e.id
FROM emp e JOIN dept d ON e.dept_id = d.id
WHERE e.salary > (SELECT AVG(x.salary) FROM emp x JOIN dept y ON x.dept_id = y.id WHERE y.city = d.city);

-- name: subquery_in_from_correlated_exists
SELECT q.dept_id, q.n
FROM (SELECT dept_id, COUNT(*) AS n FROM emp GROUP BY dept_id) q
WHERE EXISTS (SELECT 1 FROM dept d WHERE d.id = q.dept_id AND d.parent_id = 1);

-- name: not_of_in_and_exists
SELECT a, b
FROM t1
WHERE NOT (a IN (SELECT a FROM t2 WHERE a > 3) OR b < 10);

-- name: in_of_what_simplifies_to_null
SELECT id, (CASE WHEN 'a' NOT LIKE 'a%' THEN name END IN (SELECT name FROM emp WHERE dept_id = 1)) IS NULL AS unknown
FROM emp
WHERE (CASE WHEN 1 = 2 THEN CASE WHEN 3 > 2 THEN name END END IN (SELECT name FROM dept)) IS NOT NULL OR id > 2;

-- name: in_of_what_divides_by_null
SELECT id, (id IN (SELECT nullif(dept_id, 1) FROM emp)) AS there
FROM emp
WHERE ((2 div nullif(0, 0)) IN (SELECT dept_id FROM emp)) IS NOT NULL OR nullif(id, 2) NOT IN (SELECT id FROM dept);
