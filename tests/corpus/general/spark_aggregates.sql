-- Aggregates that only Spark's own code computes, from the rows of each group that changes.

-- name: spark_aggregate_counts
SELECT region, approx_count_distinct(product) AS n, approx_count_distinct(qty, 0.01) AS m, COUNT(*) AS rows_
FROM sale GROUP BY region;

-- name: spark_aggregate_of_everything
SELECT approx_count_distinct(name) AS n, hll_sketch_estimate(hll_sketch_agg(name)) AS h,
       theta_sketch_estimate(theta_sketch_agg(id)) AS t FROM emp;

-- name: spark_aggregate_filtered
SELECT dept_id, approx_count_distinct(level) FILTER (WHERE active) AS n,
       approx_count_distinct(get_json_object(concat('{"a":', level, '}'), '$.a')) AS m
FROM emp GROUP BY dept_id HAVING approx_count_distinct(id) > 0;

-- name: spark_aggregate_of_pairs
SELECT region, percentile(qty, 0.5, abs(qty) + 1) AS p, count_min_sketch(product, 0.5d, 0.5d, 1) AS s
FROM sale GROUP BY region;

-- name: spark_aggregate_bitmaps
SELECT dept_id, bitmap_construct_agg(id % 100) AS m, bitmap_count(bitmap_construct_agg(bitmap_bit_position(level))) AS n
FROM emp GROUP BY dept_id;

-- name: spark_aggregate_of_bitmaps
SELECT region, bitmap_or_agg(m) AS m, bitmap_count(bitmap_or_agg(DISTINCT m)) AS n
FROM (SELECT region, product, bitmap_construct_agg(qty + 20) AS m FROM sale GROUP BY region, product) q
GROUP BY region;
