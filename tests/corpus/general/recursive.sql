-- Recursive common tables: walks, levels, generated numbers.

-- name: recursive_numbers
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10)
SELECT n
FROM r;

-- name: recursive_levels
WITH RECURSIVE below(id, name, depth) AS (
  SELECT id, name, 0 FROM emp WHERE manager_id IS NULL
  UNION ALL
  SELECT e.id, e.name, b.depth + 1 FROM below b JOIN emp e ON e.manager_id = b.id WHERE b.depth < 20)
SELECT id, name, depth
FROM below;

-- name: recursive_closure
WITH RECURSIVE reach(a, b, d) AS (
  SELECT a, b, 1 FROM t1
  UNION ALL
  SELECT r.a, t.b, r.d + 1 FROM reach r JOIN t1 t ON t.a = r.b WHERE r.d < 3)
SELECT DISTINCT a, b
FROM reach;

-- name: recursive_shortest
WITH RECURSIVE reach(a, b, d) AS (
  SELECT a, b, 1 FROM t1
  UNION ALL
  SELECT r.a, t.b, r.d + 1 FROM reach r JOIN t1 t ON t.a = r.b WHERE r.d < 3)
SELECT a, b, MIN(d) AS steps, COUNT(*) AS walks
FROM reach
GROUP BY a, b;

-- name: recursive_joined
WITH RECURSIVE up(id, parent_id, hops) AS (
  SELECT id, parent_id, 0 FROM dept
  UNION ALL
  SELECT u.id, d.parent_id, u.hops + 1 FROM up u, dept d WHERE d.id = u.parent_id AND u.hops < 10)
SELECT e.name, u.parent_id, u.hops
FROM emp e JOIN up u ON u.id = e.dept_id;

-- name: recursive_level_limit
WITH RECURSIVE r(n) MAX RECURSION LEVEL 20 AS (SELECT a FROM t2 UNION ALL SELECT n + 1 FROM r WHERE n < 7)
SELECT n, COUNT(*) AS c
FROM r
GROUP BY n;
