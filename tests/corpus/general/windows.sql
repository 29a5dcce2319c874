-- Window functions: ranks over ties, row numbers over total orders, offsets, and ROWS and RANGE frames.

-- name: row_number_total_order
SELECT id, user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY at, id) AS n
FROM event;

-- name: ranks_with_ties
SELECT id, dept_id, salary,
       RANK() OVER (PARTITION BY dept_id ORDER BY salary DESC) AS r,
       DENSE_RANK() OVER (PARTITION BY dept_id ORDER BY salary DESC) AS dr
FROM emp;

-- name: percent_rank_cume_dist
SELECT id, grade, PERCENT_RANK() OVER (ORDER BY grade) AS pr, CUME_DIST() OVER (ORDER BY grade) AS cd
FROM emp;

-- name: percent_rank_partitioned
SELECT id, region, PERCENT_RANK() OVER (PARTITION BY region ORDER BY qty) AS pr,
       CUME_DIST() OVER (PARTITION BY region ORDER BY qty DESC) AS cd
FROM sale;

-- name: ntile_total_order
SELECT id, NTILE(4) OVER (ORDER BY id) AS quartile, NTILE(3) OVER (PARTITION BY region ORDER BY id DESC) AS third
FROM sale;

-- name: lag_lead
SELECT id, user_id, amount,
       LAG(amount) OVER (PARTITION BY user_id ORDER BY id) AS previous,
       LEAD(amount) OVER (PARTITION BY user_id ORDER BY id) AS following
FROM event;

-- name: lag_lead_offset_default
SELECT id, LAG(id, 2, -1) OVER (PARTITION BY user_id ORDER BY at, id) AS back_two,
       LEAD(kind, 3, 'none') OVER (PARTITION BY user_id ORDER BY at, id) AS forward_three
FROM event;

-- name: first_last_nth_value
SELECT id, user_id,
       FIRST_VALUE(kind) OVER (PARTITION BY user_id ORDER BY id) AS first_kind,
       LAST_VALUE(kind) OVER (PARTITION BY user_id ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS last_kind,
       NTH_VALUE(id, 2) OVER (PARTITION BY user_id ORDER BY id) AS second_id
FROM event;

-- name: running_sum_rows
SELECT id, user_id, SUM(amount) OVER (PARTITION BY user_id ORDER BY id ROWS UNBOUNDED PRECEDING) AS running
FROM event;

-- name: running_sum_default_range
SELECT id, region, qty, SUM(qty) OVER (PARTITION BY region ORDER BY qty) AS running, COUNT(*) OVER (PARTITION BY region ORDER BY qty) AS n
FROM sale;

-- name: moving_average_rows
SELECT id, AVG(score) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS moving
FROM event;

-- name: rows_frame_ahead
SELECT id, SUM(amount) OVER (PARTITION BY kind ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS ahead,
       MAX(id) OVER (PARTITION BY kind ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS behind
FROM event;

-- name: range_numeric_offset
SELECT id, salary, COUNT(*) OVER (ORDER BY salary RANGE BETWEEN 500 PRECEDING AND 500 FOLLOWING) AS near
FROM emp;

-- name: range_integer_offset
SELECT a, b, SUM(b) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS total
FROM t1;

-- name: range_descending_offset
SELECT a, b, COUNT(*) OVER (ORDER BY b DESC RANGE BETWEEN 10 PRECEDING AND 5 FOLLOWING) AS near
FROM t1;

-- name: range_dates
SELECT id, day, COUNT(*) OVER (PARTITION BY user_id ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS recent,
       SUM(amount) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS around
FROM event;

-- name: range_timestamps
SELECT id, COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 12 HOURS PRECEDING AND CURRENT ROW) AS half_day
FROM event;

-- name: range_unbounded_following
SELECT id, MIN(salary) OVER (PARTITION BY active ORDER BY grade RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS low
FROM emp;

-- name: whole_partition
SELECT id, dept_id, salary, SUM(salary) OVER (PARTITION BY dept_id) AS dept_total, MAX(salary) OVER () AS top
FROM emp;

-- name: share_of_total
SELECT id, region, qty, qty / NULLIF(SUM(qty) OVER (PARTITION BY region), 0) AS share
FROM sale;

-- name: window_nulls_order
SELECT id, ROW_NUMBER() OVER (ORDER BY level NULLS LAST, id) AS last_n,
       ROW_NUMBER() OVER (ORDER BY level DESC NULLS FIRST, id) AS first_n
FROM emp;

-- name: window_several_partitions
SELECT id, RANK() OVER (PARTITION BY region ORDER BY price) AS by_region,
       RANK() OVER (PARTITION BY product ORDER BY price DESC) AS by_product,
       COUNT(*) OVER (PARTITION BY region, product) AS n
FROM sale;

-- name: window_named
SELECT id, SUM(qty) OVER w AS total, AVG(qty) OVER w AS mean
FROM sale
WINDOW w AS (PARTITION BY region ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);

-- name: window_over_aggregate
SELECT region, SUM(qty) AS total, RANK() OVER (ORDER BY SUM(qty) DESC) AS r
FROM sale
GROUP BY region;

-- name: window_over_aggregate_window
SELECT dept_id, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS everyone
FROM emp
GROUP BY dept_id;

-- name: rank_filtered_top_two
SELECT dept_id, id, salary
FROM (SELECT dept_id, id, salary, RANK() OVER (PARTITION BY dept_id ORDER BY salary DESC) AS r FROM emp) q
WHERE r <= 2;

-- name: row_number_dedup
SELECT a, b, c
FROM (SELECT a, b, c, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b, c) AS n FROM t1) q
WHERE n = 1;

-- name: window_difference
SELECT user_id, id, amount - LAG(amount, 1, 0.00) OVER (PARTITION BY user_id ORDER BY id) AS change
FROM event
WHERE user_id IS NOT NULL;

-- name: window_statistics
SELECT id, STDDEV_POP(qty) OVER (PARTITION BY region) AS s, COUNT(product) OVER (PARTITION BY region ORDER BY id) AS n
FROM sale;

-- name: window_filter_aggregate
SELECT id, COUNT(*) FILTER (WHERE active) OVER (PARTITION BY dept_id) AS active_peers
FROM emp;

-- name: window_over_join
SELECT e.id, d.city, DENSE_RANK() OVER (PARTITION BY d.city ORDER BY e.hired) AS seniority
FROM emp e LEFT JOIN dept d ON e.dept_id = d.id;

-- name: window_over_empty
SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS n
FROM nothing;

-- name: window_bool_and_distinct_rows
SELECT DISTINCT region, MIN(price) OVER (PARTITION BY region) AS low, BOOL_OR(qty < 0) OVER (PARTITION BY region) AS returns
FROM sale;
