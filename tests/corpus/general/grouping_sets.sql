-- ROLLUP, CUBE and GROUPING SETS, with grouping() and grouping_id(); NULL keys beside NULL totals.

-- name: rollup_two
SELECT region, product, SUM(qty) AS total, GROUPING(region) AS g_region, GROUPING(product) AS g_product
FROM sale
GROUP BY ROLLUP (region, product);

-- name: rollup_with_clause
SELECT dept_id, active, COUNT(*) AS n
FROM emp
GROUP BY dept_id, active WITH ROLLUP;

-- name: cube_two
SELECT region, product, COUNT(*) AS n, GROUPING_ID() AS gid
FROM sale
GROUP BY CUBE (region, product);

-- name: cube_with_grouping_id_arguments
SELECT a, c, SUM(b) AS total, GROUPING_ID(a, c) AS gid
FROM t1
GROUP BY CUBE (a, c);

-- name: grouping_sets_explicit
SELECT region, product, SUM(qty) AS total, GROUPING_ID(region, product) AS gid
FROM sale
GROUP BY GROUPING SETS ((region, product), (region), ());

-- name: grouping_sets_mixed
SELECT region, product, YEAR(sold_on) AS y, COUNT(*) AS n
FROM sale
GROUP BY region, GROUPING SETS ((product), (YEAR(sold_on)));

-- name: grouping_sets_empty_only
SELECT COUNT(*) AS n, SUM(qty) AS total
FROM sale
GROUP BY GROUPING SETS (());

-- name: rollup_expression
SELECT YEAR(sold_on) AS y, MONTH(sold_on) AS m, COUNT(*) AS n
FROM sale
GROUP BY ROLLUP (YEAR(sold_on), MONTH(sold_on));

-- name: rollup_having_grouping
SELECT region, product, SUM(qty) AS total
FROM sale
GROUP BY ROLLUP (region, product)
HAVING GROUPING(product) = 1;

-- name: rollup_distinct_aggregate
SELECT region, COUNT(DISTINCT product) AS products, COUNT(*) AS n
FROM sale
GROUP BY ROLLUP (region);

-- name: rollup_label
SELECT CASE WHEN GROUPING(region) = 1 THEN 'all regions' ELSE COALESCE(region, 'unknown') END AS label,
       AVG(price) AS mean
FROM sale
GROUP BY ROLLUP (region);

-- name: rollup_empty
SELECT k, COUNT(*) AS n
FROM nothing
GROUP BY ROLLUP (k);

-- name: cube_over_join
SELECT d.city, e.active, MAX(e.salary) AS top
FROM emp e JOIN dept d ON e.dept_id = d.id
GROUP BY CUBE (d.city, e.active);

-- name: grouping_sets_over_nothing
SELECT COUNT(*) AS n FROM nothing GROUP BY GROUPING SETS (());
