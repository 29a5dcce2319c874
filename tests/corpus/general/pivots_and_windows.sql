-- PIVOT and UNPIVOT, windows of time, sessions, generators, range, pipes.

-- name: pivot_one_aggregate
SELECT *
FROM (SELECT region, product, qty FROM sale) PIVOT (SUM(qty) FOR product IN ('apple', 'fig', 'none of them'));

-- name: pivot_two_aggregates
SELECT *
FROM (SELECT region, product, qty, price FROM sale) PIVOT (SUM(price) AS s, COUNT(qty) AS n FOR product IN ('apple' AS a, 'fig' AS f));

-- name: pivot_text_values
SELECT *
FROM (SELECT region, product, emp_id FROM sale) PIVOT (MAX(product) FOR emp_id IN (1, 2, 3));

-- name: pivot_two_columns
SELECT *
FROM (SELECT dept_id, active, grade, bonus FROM emp) PIVOT (AVG(bonus) FOR (active, grade) IN ((TRUE, 4) AS t4, (FALSE, 4) AS f4));

-- name: pivot_average_of_dates
SELECT *
FROM (SELECT region, sold_on, discount FROM sale) PIVOT (MIN(discount) FOR sold_on IN (DATE'2023-11-28', DATE'2023-12-09'));

-- name: unpivot_columns
SELECT *
FROM (SELECT a, b, CAST(LENGTH(c) AS INT) AS n FROM t1) UNPIVOT (v FOR name IN (b, n));

-- name: tumbling_window
SELECT window.start, window.end, COUNT(*) AS n, SUM(qty) AS q
FROM sale
GROUP BY window(sold_at, '12 hours');

-- name: tumbling_window_with_offset
SELECT region, window(sold_at, '1 day', '1 day', '2 hours').start AS s, MAX(price) AS high
FROM sale
GROUP BY region, window(sold_at, '1 day', '1 day', '2 hours');

-- name: sliding_window
SELECT window.start AS s, COUNT(*) AS n
FROM sale
GROUP BY window(sold_at, '36 hours', '12 hours');

-- name: window_struct
SELECT window, COUNT(*) AS n
FROM typed
GROUP BY window(ts, '1 day');

-- name: window_of_local_time
SELECT window.end AS e, COUNT(*) AS n
FROM typed
GROUP BY window(ntz, '7 days');

-- name: window_as_a_column
SELECT id, window(sold_at, '1 hour') AS w
FROM sale;

-- name: session_window_global
SELECT session_window.start AS s, session_window.end AS e, COUNT(*) AS n
FROM sale
GROUP BY session_window(sold_at, '20 hours');

-- name: session_window_by_key
SELECT region, session_window.start AS s, session_window.end AS e, COUNT(*) AS n, SUM(price) AS p
FROM sale
GROUP BY region, session_window(sold_at, '5 days');

-- name: session_window_with_gaps_of_rows
SELECT user_id, session_window.start AS s, session_window.end AS e, COUNT(*) AS n
FROM event
GROUP BY user_id, session_window(at, CASE WHEN amount > 50 THEN '5 hours' WHEN amount < 10 THEN '-1 minute' ELSE '20 minutes' END);

-- name: session_window_that_touches
SELECT session_window.start AS s, session_window.end AS e, COUNT(*) AS n
FROM (SELECT TIMESTAMP_SECONDS(60 * a) AS at FROM t1)
GROUP BY session_window(at, '1 minute');

-- name: stacked
SELECT a, name, v
FROM (SELECT a, stack(3, 'b', b, 'a', a, 'none', CAST(NULL AS INT)) AS (name, v) FROM t1);

-- name: stack_that_does_not_fit
SELECT stack(2, a, b, a) AS (x, y)
FROM t1;

-- name: inlined
SELECT a, x, y
FROM t1 LATERAL VIEW INLINE(ARRAY(STRUCT(a AS x, c AS y), STRUCT(b AS x, UPPER(c) AS y))) i AS x, y;

-- name: inlined_outer
SELECT a, x
FROM t1 LATERAL VIEW OUTER INLINE(IF(a > 1, ARRAY(STRUCT(b AS x)), NULL)) i AS x;

-- name: positions
SELECT a, p, e
FROM t1, LATERAL POSEXPLODE(ARRAY(a, b)) AS x(p, e);

-- name: joined_range
SELECT t1.a, r.id
FROM t1 JOIN RANGE(0, 10, 2) r ON t1.a = r.id;

-- name: piped
FROM sale
|> WHERE qty > 0
|> EXTEND qty * 2 AS twice
|> AGGREGATE SUM(twice) AS s, COUNT(*) AS n GROUP BY region
|> WHERE n > 1;
