-- NULL, NaN, infinity and negative zero in keys, comparisons, aggregates and orders.

-- name: nan_comparisons
SELECT k, x = x AS eq, x > 1e308 AS gt, x < 0 AS lt, x = DOUBLE('NaN') AS is_nan, ISNAN(x) AS isnan_, ISNAN(y) AS isnan_y, x <=> NULL AS nse
FROM special;

-- name: nanvl_function
SELECT k, NANVL(x, 0) AS a, NANVL(y, x) AS b, NANVL(x, NULL) AS c, COALESCE(NULLIF(x, DOUBLE('NaN')), -1) AS e
FROM special;

-- name: nan_group
SELECT x, COUNT(*) AS n FROM special GROUP BY x;

-- name: nan_distinct
SELECT DISTINCT y FROM special;

-- name: nan_join
SELECT a.k, b.k AS other FROM special a JOIN special b ON a.x = b.x AND a.k < b.k;

-- name: nan_float_double_join
SELECT a.k, b.k AS other FROM special a JOIN special b ON a.x = b.y;

-- name: nan_min_max
SELECT g, MIN(x) AS low, MAX(x) AS high, MIN(y) AS low_y, MAX(y) AS high_y FROM special GROUP BY g;

-- name: nan_sum_avg
SELECT g, SUM(x) AS total, AVG(x) AS mean, COUNT(x) AS n, SUM(y) AS total_y FROM special GROUP BY g;

-- name: nan_variance
SELECT g, VAR_POP(x) AS vp, STDDEV_SAMP(y) AS ss FROM special GROUP BY g;

-- name: nan_order
SELECT k, x FROM special ORDER BY x DESC, k LIMIT 9;

-- name: nan_rank
SELECT k, RANK() OVER (ORDER BY x) AS r, DENSE_RANK() OVER (PARTITION BY g ORDER BY y DESC) AS dr FROM special;

-- name: nan_in_list
SELECT k FROM special WHERE x IN (DOUBLE('NaN'), 1.0) OR y NOT IN (1.5, 2.5);

-- name: nan_greatest_least
SELECT k, GREATEST(x, y) AS g, LEAST(x, y) AS l FROM special;

-- name: nan_arithmetic
SELECT k, x + y AS s, x - y AS d, x * 0 AS z, -x AS n, ABS(x) AS a, SIGN(x) AS si, SQRT(x) AS r FROM special;

-- name: nan_set_operations
SELECT x FROM special INTERSECT ALL SELECT CAST(y AS DOUBLE) FROM special;

-- name: nan_except
SELECT x FROM special EXCEPT SELECT CAST(y AS DOUBLE) FROM special WHERE k < 10;

-- name: nan_not_in
SELECT k FROM special WHERE x NOT IN (SELECT CAST(y AS DOUBLE) FROM special WHERE y IS NOT NULL);

-- name: nan_count_distinct
SELECT COUNT(DISTINCT x) AS n_x, COUNT(DISTINCT y) AS n_y, SUM(DISTINCT y) AS s FROM special WHERE g IN ('a', 'c', 'e', '');

-- name: nan_cast
SELECT k, CAST(x AS STRING) AS s, CAST(y AS DOUBLE) AS d, TRY_CAST(x AS INT) AS i, CAST(x AS FLOAT) AS f FROM special;

-- name: negative_zero_group
SELECT z + 0.0 AS z, COUNT(*) AS n FROM special GROUP BY z;

-- name: negative_zero_compare
SELECT k, z = 0 AS eq, z < 0 AS lt, z <=> 0.0D AS nse FROM special;

-- name: negative_zero_join
SELECT a.k, b.k AS other FROM special a JOIN special b ON a.z = b.z AND a.k < b.k;

-- name: negative_zero_distinct
SELECT COUNT(DISTINCT z) AS n, SUM(z) AS total FROM special WHERE k < 19;

-- name: negative_zero_rank
SELECT k, RANK() OVER (ORDER BY z) AS r FROM special;

-- name: negative_zero_in
-- Spark over Parquet files with filter push-down loses the rows of files that hold -0.0 and not 0.0; compare in memory.
SELECT k FROM special WHERE z IN (0.0D, 3.0D);

-- name: nulls_in_group_keys
SELECT a, b, COUNT(*) AS n, COUNT(c) AS n_c FROM t1 GROUP BY a, b;

-- name: nulls_in_order
SELECT a, b, c FROM t1 ORDER BY a NULLS LAST, b DESC NULLS FIRST, c NULLS LAST LIMIT 24;

-- name: null_propagation
SELECT a, b, a + b AS s, a = NULL AS e, CONCAT(c, NULL) AS c, NOT (a > b) AS n, GREATEST(a, b) AS g FROM t1;

-- name: null_where
SELECT a, b FROM t1 WHERE NOT (a = 1 AND b = 10);

-- name: all_null_aggregates
SELECT COUNT(x) AS n, SUM(x) AS total, AVG(x) AS mean, MAX(y) AS high, VAR_POP(x) AS v, BOOL_OR(x > 0) AS b FROM special WHERE g = 'd';

-- name: nulls_full_join_on_nulls
SELECT x.a AS a1, y.a AS a2 FROM t1 x FULL JOIN t2 y ON x.a = y.a AND x.b IS NULL;
