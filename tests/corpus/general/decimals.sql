-- Exact decimals: result precision and scale, rounding, large values, sums and averages.

-- name: decimal_arithmetic
SELECT id, salary + 0.005 AS plus_, salary - 1.1 AS minus_, salary * 1.075 AS times_, salary / 7 AS over_, salary % 1000 AS rem_, -salary AS neg_
FROM emp;

-- name: decimal_times_decimal
SELECT id, price * price AS square_, qty * price AS value_, price * CAST(0.125 AS DECIMAL(4, 3)) AS eighth
FROM sale;

-- name: decimal_times_double
SELECT id, price * discount AS off_, price * (1 - discount) AS net
FROM sale;

-- name: decimal_sum_avg
SELECT region, SUM(price) AS total, AVG(price) AS mean, SUM(price * qty) AS value_, SUM(price) / COUNT(price) AS by_hand
FROM sale
GROUP BY region
HAVING COUNT(price) > 0;

-- name: decimal_wide_sum
SELECT SUM(dec) AS total, AVG(dec) AS mean, MIN(dec) AS low, MAX(dec) AS high, COUNT(DISTINCT dec) AS n
FROM typed
WHERE k <= 16;

-- name: decimal_wide_budget
SELECT city, SUM(budget) AS total, MAX(budget) AS top
FROM dept
GROUP BY city;

-- name: decimal_round
SELECT k, ROUND(dec, 2) AS r2, ROUND(dec, 0) AS r0, ROUND(dec, -1) AS rm1, BROUND(money, 1) AS b1, ROUND(money, 1) AS m1, ROUND(money, -2) AS mm2
FROM typed
WHERE k <= 16;

-- name: decimal_rounding_half
SELECT v, ROUND(v, 0) AS half_up, BROUND(v, 0) AS half_even, CAST(v AS INT) AS cut, CAST(v AS DECIMAL(10, 0)) AS narrowed
FROM VALUES (0.5), (1.5), (2.5), (-0.5), (-1.5), (-2.5), (2.45), (NULL) AS t(v);

-- name: decimal_division_scale
SELECT id, CAST(1 AS DECIMAL(10, 0)) / CAST(3 AS DECIMAL(10, 0)) AS third, salary / NULLIF(CAST(grade AS DECIMAL(5, 2)), 0) AS per_grade
FROM emp;

-- name: decimal_wide_multiply
SELECT k, CAST(dec AS DECIMAL(38, 18)) AS rescaled, dec * 2 AS twice, dec + money AS sum_, dec / 3 AS third
FROM typed
WHERE k <= 12;

-- name: decimal_comparison_mixed
SELECT x.id, d.id AS dept_id
FROM emp x JOIN dept d ON x.salary > d.budget AND d.budget > 0;

-- name: decimal_equality_across_scales
SELECT t.k, m.k AS other
FROM typed t JOIN typed m ON t.dec = m.money;

-- name: decimal_group_key
SELECT salary, COUNT(*) AS n
FROM emp
GROUP BY salary;

-- name: decimal_distinct_sum
SELECT SUM(DISTINCT salary) AS total, AVG(DISTINCT salary) AS mean
FROM emp;

-- name: decimal_literals
SELECT a, a * 1.10 AS tenth, a + 1e0 AS dbl, a * 12345678901234567890 AS big, a / 0.3 AS over_
FROM t1;

-- name: decimal_extremes_ordered
SELECT k, dec FROM typed ORDER BY dec DESC NULLS LAST, k LIMIT 8;

-- name: bigint_sum_as_decimal
SELECT SUM(CAST(i64 AS DECIMAL(20, 0))) AS total, AVG(CAST(i64 AS DECIMAL(20, 0))) AS mean
FROM typed;

-- name: decimal_negative_scale_input
SELECT k, CAST(1e20 AS DECIMAL(38, 0)) AS large, CAST(money AS DECIMAL(38, 2)) * 1000000 AS scaled
FROM typed;
