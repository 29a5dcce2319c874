-- Aggregates over the ordered values of a group. Where Spark leaves an order open, the query sorts what it is given.

-- name: median_by_group
SELECT dept_id, MEDIAN(salary) AS m, MEDIAN(bonus) AS mb, MEDIAN(grade) AS mg
FROM emp
GROUP BY dept_id;

-- name: median_global
SELECT MEDIAN(qty) AS m, MEDIAN(qty) FILTER (WHERE qty < -1000000) AS nothing
FROM sale;

-- name: percentiles
SELECT region, PERCENTILE(qty, 0.9) AS p90, PERCENTILE(discount, 0.0) AS low, PERCENTILE(price, 1.0) AS high,
       PERCENTILE(qty, ARRAY(0.25, 0.5, 0.75)) AS quartiles
FROM sale
GROUP BY region;

-- name: percentile_extremes
SELECT PERCENTILE(f64, 0.5) AS a, PERCENTILE(f64, ARRAY(0.0, 0.3, 1.0)) AS b, PERCENTILE(i64, 0.5) AS c,
       PERCENTILE(dec, 0.75) AS d, PERCENTILE(f32, 0.4) AS e
FROM typed;

-- name: percentile_within_group
SELECT region, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY qty) AS up, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY qty DESC) AS down,
       PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY price) AS dup, PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY price DESC) AS ddown,
       PERCENTILE_DISC(0.0) WITHIN GROUP (ORDER BY qty) AS least
FROM sale
GROUP BY region;

-- name: percentile_distinct
SELECT region, PERCENTILE(DISTINCT qty, 0.5) AS m
FROM sale
GROUP BY region;

-- name: approx_percentiles
SELECT region, PERCENTILE_APPROX(qty, 0.5) AS m, APPROX_PERCENTILE(price, ARRAY(0.1, 0.9), 100) AS p, PERCENTILE_APPROX(sold_on, 0.5) AS d,
       PERCENTILE_APPROX(sold_at, 0.25) AS t, PERCENTILE_APPROX(discount, 0.5) AS f
FROM sale
GROUP BY region;

-- name: median_over_join
SELECT d.city, MEDIAN(e.salary) AS m
FROM emp e JOIN dept d ON e.dept_id = d.id
GROUP BY d.city
HAVING MEDIAN(e.salary) > 0;

-- name: modes
SELECT region, MODE(product, TRUE) AS m, MODE() WITHIN GROUP (ORDER BY qty) AS low, MODE() WITHIN GROUP (ORDER BY qty DESC) AS high,
       MODE() WITHIN GROUP (ORDER BY price) AS p, MODE() WITHIN GROUP (ORDER BY discount DESC) AS f
FROM sale
GROUP BY region;

-- name: mode_of_types
SELECT MODE(s, TRUE) AS a, MODE(bin, TRUE) AS b, MODE(d, TRUE) AS c, MODE(flag, TRUE) AS e, MODE(dec, TRUE) AS f
FROM typed;

-- name: listagg_ordered
SELECT region, LISTAGG(product, ',') WITHIN GROUP (ORDER BY product) AS a, LISTAGG(product) WITHIN GROUP (ORDER BY product DESC) AS b,
       STRING_AGG(DISTINCT product, '; ') WITHIN GROUP (ORDER BY product) AS c
FROM sale
GROUP BY region;

-- name: listagg_by_another_column
SELECT region, LISTAGG(product, '-') WITHIN GROUP (ORDER BY qty DESC NULLS FIRST, id) AS a
FROM sale
GROUP BY region;

-- name: collected
SELECT region, SORT_ARRAY(COLLECT_LIST(qty)) AS a, SORT_ARRAY(COLLECT_SET(product)) AS b, SORT_ARRAY(ARRAY_AGG(DISTINCT price)) AS c,
       SIZE(COLLECT_SET(qty)) AS n
FROM sale
GROUP BY region;

-- name: collected_global
SELECT SORT_ARRAY(COLLECT_LIST(qty) FILTER (WHERE qty > 3)) AS a, SORT_ARRAY(COLLECT_SET(note)) AS b
FROM sale;

-- name: collected_structs
SELECT dept_id, SORT_ARRAY(COLLECT_LIST(STRUCT(grade, name))) AS people
FROM emp
GROUP BY dept_id;

-- name: greatest_by_k
SELECT region, MAX_BY(id, STRUCT(qty, id), 3) AS most, MIN_BY(product, STRUCT(qty, id), 2) AS least
FROM sale
GROUP BY region;

-- name: greatest_by_k_of_nothing
SELECT MAX_BY(name, salary, 2) AS a
FROM emp
WHERE id < 0;

-- name: bits
SELECT dept_id, BIT_AND(level) AS a, BIT_OR(grade) AS o, BIT_XOR(id) AS x
FROM emp
GROUP BY dept_id;

-- name: bits_of_extremes
SELECT BIT_AND(i64) AS a, BIT_OR(i64) AS b, BIT_XOR(i8) AS c, BIT_XOR(DISTINCT i32) AS d
FROM typed;

-- name: shapes
SELECT region, SKEWNESS(qty) AS s, KURTOSIS(qty) AS k, SKEWNESS(discount) AS sd, KURTOSIS(price) AS kp
FROM sale
GROUP BY region;

-- name: shapes_of_one
SELECT id, SKEWNESS(bonus) AS s, KURTOSIS(bonus) AS k
FROM emp
GROUP BY id;

-- name: percentile_window
SELECT id, PERCENTILE(qty, 0.5) OVER (PARTITION BY region) AS m
FROM sale;

-- name: collect_window
SELECT id, COLLECT_LIST(product) OVER (PARTITION BY region ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS l
FROM sale;
