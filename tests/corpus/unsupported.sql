-- Queries that must be refused when the view is created: their answer is not a function of the tables' rows.

-- name: rand_in_select
SELECT a, rand() AS r FROM t1;

-- name: rand_seeded_filter
SELECT a FROM t1 WHERE rand(42) < 0.5;

-- name: randn_in_select
SELECT a, randn() AS r FROM t1;

-- name: random_synonym
SELECT a, random() AS r FROM t1;

-- name: shuffle_array
SELECT a, shuffle(array(a, b)) AS r FROM t1;

-- name: uuid_in_select
SELECT a, uuid() AS u FROM t1;

-- name: monotonically_increasing_id_in_select
SELECT monotonically_increasing_id() AS n, a FROM t1;

-- name: spark_partition_id_in_select
SELECT spark_partition_id() AS p, a FROM t1;

-- name: input_file_name_in_select
SELECT input_file_name() AS f, a FROM t1;

-- name: limit_without_order
SELECT a FROM t1 LIMIT 3;

-- name: limit_without_order_in_subquery
SELECT COUNT(*) AS n FROM (SELECT a FROM t1 LIMIT 3) q;

-- name: offset_without_order
SELECT a FROM t1 OFFSET 2;

-- name: sort_by_limit
SELECT a FROM t1 SORT BY a LIMIT 3;

-- name: cluster_by_limit
SELECT a, b FROM t1 CLUSTER BY a LIMIT 3;

-- name: sort_by_limit_in_subquery
SELECT COUNT(*) AS n FROM (SELECT a FROM t1 SORT BY b LIMIT 3) q;

-- name: tablesample_percent
SELECT a FROM t1 TABLESAMPLE (50 PERCENT);

-- name: tablesample_rows
SELECT a FROM t1 TABLESAMPLE (5 ROWS);

-- name: tablesample_seeded
SELECT a FROM t1 TABLESAMPLE (50 PERCENT) REPEATABLE (7);

-- name: reflect_call
SELECT a, java_method('java.lang.System', 'nanoTime') AS n FROM t1;

-- name: kll_sketch_aggregate
SELECT a, kll_sketch_agg_bigint(b) AS n FROM t1 GROUP BY a;
