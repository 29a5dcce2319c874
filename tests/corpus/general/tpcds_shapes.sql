-- Small queries in the shapes of TPC-DS.

-- name: existence_in_or
-- Query 10 and 35: bought in one way, or in another.
SELECT e.dept_id, e.active, COUNT(*) AS n, MIN(e.grade) AS low, MAX(e.grade) AS high, AVG(e.grade) AS mean
FROM emp e
WHERE EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.region = 'north')
  AND (EXISTS (SELECT 1 FROM sale s WHERE s.emp_id = e.id AND s.product = 'fig')
       OR EXISTS (SELECT 1 FROM event v WHERE v.user_id = e.grade))
GROUP BY e.dept_id, e.active;

-- name: rank_in_subquery
-- Query 67: the best of each category over a rollup.
SELECT region, product, total, rk
FROM (SELECT region, product, total, RANK() OVER (PARTITION BY region ORDER BY total DESC) AS rk
      FROM (SELECT region, product, SUM(qty * price) AS total FROM sale GROUP BY ROLLUP (region, product)) x) y
WHERE rk <= 2;

-- name: best_and_worst
-- Query 44: the same rank from both ends, joined.
SELECT best.rk, best.id AS best_id, worst.id AS worst_id
FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY price DESC, id) AS rk FROM sale WHERE price IS NOT NULL) best
JOIN (SELECT id, ROW_NUMBER() OVER (ORDER BY price ASC, id) AS rk FROM sale WHERE price IS NOT NULL) worst ON best.rk = worst.rk
WHERE best.rk <= 5;

-- name: year_over_year
-- Query 4, 11 and 74: a CTE of yearly totals joined with itself.
WITH yearly AS (
  SELECT region, YEAR(sold_on) AS y, SUM(qty * price) AS total FROM sale WHERE sold_on IS NOT NULL GROUP BY region, YEAR(sold_on)
)
SELECT b.region, b.total AS before_, a.total AS after_, CASE WHEN b.total > 0 THEN a.total / b.total END AS growth
FROM yearly b JOIN yearly a ON a.region <=> b.region AND a.y = b.y + 1;

-- name: count_distinct_case
-- Query 16, 94 and 95: conditional distinct counts.
SELECT COUNT(DISTINCT CASE WHEN qty > 0 THEN emp_id END) AS sellers, COUNT(DISTINCT CASE WHEN qty < 0 THEN emp_id END) AS takers,
       COUNT(DISTINCT emp_id) AS everyone, SUM(price) AS total
FROM sale;

-- name: rollup_with_grouping_rank
-- Query 36, 70 and 86: a rank within each level of a rollup.
SELECT SUM(qty) AS total, region, product, GROUPING(region) + GROUPING(product) AS lochierarchy,
       RANK() OVER (PARTITION BY GROUPING(region) + GROUPING(product), CASE WHEN GROUPING(product) = 0 THEN region END ORDER BY SUM(qty) DESC) AS rank_within_parent
FROM sale
GROUP BY ROLLUP (region, product);

-- name: above_average_of_group
-- Query 1, 30 and 81: returns above 1.2 times the average of the group.
WITH returns AS (SELECT emp_id, region, SUM(price) AS total FROM sale GROUP BY emp_id, region)
SELECT r.emp_id, r.region FROM returns r
WHERE r.total > (SELECT AVG(x.total) * 1.2 FROM returns x WHERE x.region = r.region);

-- name: buckets_of_counts
-- Query 9 and 28: scalar subqueries choose what to show.
SELECT CASE WHEN (SELECT COUNT(*) FROM sale WHERE qty BETWEEN 1 AND 3) > 10
            THEN (SELECT AVG(price) FROM sale WHERE qty BETWEEN 1 AND 3)
            ELSE (SELECT AVG(discount) FROM sale WHERE qty BETWEEN 1 AND 3) END AS bucket1,
       (SELECT COUNT(DISTINCT price) FROM sale WHERE qty > 3) AS bucket2
FROM dept WHERE id = 1;

-- name: pivot_by_weekday
-- Query 2, 43 and 59: sums by day of the week.
SELECT region, SUM(CASE WHEN DAYOFWEEK(sold_on) = 1 THEN qty END) AS sun, SUM(CASE WHEN DAYOFWEEK(sold_on) = 2 THEN qty END) AS mon,
       SUM(CASE WHEN DAYOFWEEK(sold_on) IN (6, 7) THEN qty ELSE 0 END) AS late
FROM sale GROUP BY region;

-- name: three_channels
-- Query 5, 77 and 80: a union of channels under a rollup.
SELECT channel, who, SUM(n) AS n, SUM(amount) AS amount
FROM (SELECT 'sale' AS channel, emp_id AS who, COUNT(*) AS n, SUM(price) AS amount FROM sale GROUP BY emp_id
      UNION ALL SELECT 'event', user_id, COUNT(*), SUM(amount) FROM event GROUP BY user_id
      UNION ALL SELECT 'payroll', dept_id, COUNT(*), SUM(salary) FROM emp WHERE active GROUP BY dept_id) x
GROUP BY ROLLUP (channel, who);

-- name: intersect_of_channels
-- Query 8, 14 and 38: who is in all of them.
SELECT COUNT(*) AS n FROM (SELECT DISTINCT id FROM emp INTERSECT SELECT DISTINCT emp_id FROM sale INTERSECT SELECT DISTINCT user_id FROM event) q;

-- name: except_of_channels
-- Query 87.
SELECT COUNT(*) AS n FROM ((SELECT DISTINCT id FROM emp) EXCEPT (SELECT DISTINCT emp_id FROM sale) EXCEPT (SELECT DISTINCT user_id FROM event)) q;

-- name: deviation_from_average
-- Query 47, 57 and 89: monthly sums far from their own average, with neighbours.
WITH monthly AS (
  SELECT region, MONTH(sold_on) AS m, SUM(qty) AS total, AVG(SUM(qty)) OVER (PARTITION BY region) AS mean,
         LAG(SUM(qty)) OVER (PARTITION BY region ORDER BY MONTH(sold_on)) AS before_
  FROM sale WHERE sold_on IS NOT NULL GROUP BY region, MONTH(sold_on)
)
SELECT region, m, total, mean, before_ FROM monthly WHERE mean > 0 AND ABS(total - mean) / mean > 0.1;

-- name: cumulative_full_join
-- Query 51: running sums of two sources, side by side.
WITH a AS (SELECT day, SUM(SUM(amount)) OVER (ORDER BY day ROWS UNBOUNDED PRECEDING) AS cume FROM event WHERE kind = 'view' GROUP BY day),
     b AS (SELECT day, SUM(SUM(amount)) OVER (ORDER BY day ROWS UNBOUNDED PRECEDING) AS cume FROM event WHERE kind = 'buy' GROUP BY day)
SELECT COALESCE(a.day, b.day) AS day, a.cume AS views, b.cume AS buys FROM a FULL JOIN b ON a.day = b.day;

-- name: ratio_to_class
-- Query 12, 20 and 98: a share within a class.
SELECT region, product, SUM(price) AS revenue, SUM(price) * 100 / SUM(SUM(price)) OVER (PARTITION BY region) AS ratio
FROM sale WHERE price IS NOT NULL GROUP BY region, product;

-- name: disjunctive_bands
-- Query 13 and 48: an OR of conjunctions across tables.
SELECT AVG(s.qty) AS mean, SUM(s.price) AS total
FROM sale s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id
WHERE (d.city = 'Bern' AND s.price BETWEEN 10 AND 50) OR (d.city = 'Oslo' AND s.qty > 0) OR (d.city = 'Lima' AND e.active);

-- name: same_item_twice_not_elsewhere
-- Query 95 and 97: overlap of two sets of pairs.
SELECT SUM(CASE WHEN x.a IS NOT NULL AND y.a IS NULL THEN 1 ELSE 0 END) AS only_left,
       SUM(CASE WHEN x.a IS NULL AND y.a IS NOT NULL THEN 1 ELSE 0 END) AS only_right,
       SUM(CASE WHEN x.a IS NOT NULL AND y.a IS NOT NULL THEN 1 ELSE 0 END) AS both_
FROM (SELECT a, b FROM t1 GROUP BY a, b) x FULL JOIN (SELECT a, b FROM t2 GROUP BY a, b) y ON x.a = y.a AND x.b = y.b;
