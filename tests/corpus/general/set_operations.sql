-- UNION, EXCEPT and INTERSECT, as sets and as bags, nested and over aggregates.

-- name: union_distinct
SELECT a, b FROM t1 UNION SELECT a, b FROM t2;

-- name: union_all
SELECT a, b FROM t1 UNION ALL SELECT a, b FROM t2;

-- name: union_all_self
SELECT a FROM t1 UNION ALL SELECT a FROM t1;

-- name: union_type_widening
SELECT a AS v FROM t1 UNION SELECT e FROM t3;

-- name: union_decimal_widening
SELECT salary AS v FROM emp UNION ALL SELECT budget FROM dept WHERE budget < 10000000;

-- name: except_distinct
SELECT a, b FROM t1 EXCEPT SELECT a, b FROM t2;

-- name: except_all
SELECT a, b FROM t1 EXCEPT ALL SELECT a, b FROM t2;

-- name: minus_synonym
SELECT a FROM t1 MINUS SELECT a FROM t2;

-- name: intersect_distinct
SELECT a, b FROM t1 INTERSECT SELECT a, b FROM t2;

-- name: intersect_all
SELECT a, b FROM t1 INTERSECT ALL SELECT a, b FROM t2;

-- name: except_all_self_filtered
SELECT a, b FROM t1 EXCEPT ALL SELECT a, b FROM t1 WHERE b > 10;

-- name: three_way_nested
(SELECT a FROM t1 EXCEPT SELECT a FROM t2) UNION ALL (SELECT a FROM t1 INTERSECT SELECT a FROM t2);

-- name: precedence
SELECT a FROM t1 UNION SELECT b FROM t3 INTERSECT SELECT b FROM t2;

-- name: except_empty
SELECT a FROM t1 EXCEPT ALL SELECT k FROM nothing;

-- name: intersect_empty
SELECT a FROM t1 INTERSECT ALL SELECT k FROM nothing;

-- name: aggregate_over_union
SELECT a, COUNT(*) AS n, SUM(b) AS total
FROM (SELECT a, b FROM t1 UNION ALL SELECT a, b FROM t2) u
GROUP BY a;

-- name: union_of_aggregates
SELECT 't1' AS source, COUNT(*) AS n, MAX(b) AS top FROM t1
UNION ALL
SELECT 't2', COUNT(*), MAX(b) FROM t2
UNION ALL
SELECT 'nothing', COUNT(*), MAX(k) FROM nothing;

-- name: join_over_union
SELECT u.a, u.src, d.name
FROM (SELECT a, 1 AS src FROM t1 UNION ALL SELECT a, 2 FROM t2) u JOIN dept d ON d.id = u.a;

-- name: union_null_columns
SELECT id, name, CAST(NULL AS STRING) AS city FROM emp UNION ALL SELECT id, NULL, city FROM dept;

-- name: union_strings_case
SELECT c AS v FROM t1 UNION SELECT d FROM t2;

-- name: intersect_all_multiplicities
SELECT c FROM t1 INTERSECT ALL SELECT d FROM t2;

-- name: except_of_join
SELECT d.id FROM dept d EXCEPT SELECT e.dept_id FROM emp e JOIN sale s ON s.emp_id = e.id;
