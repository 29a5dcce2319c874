-- Every aggregate function, with and without groups, FILTER, DISTINCT, HAVING and empty input.

-- name: count_star_global
SELECT COUNT(*) AS n
FROM t1;

-- name: counts
SELECT COUNT(*) AS n, COUNT(a) AS n_a, COUNT(a, b) AS n_ab, COUNT(1) AS n_one, COUNT(NULL) AS n_null
FROM t1;

-- name: counts_by_group
SELECT c, COUNT(*) AS n, COUNT(a) AS n_a, COUNT(a, b) AS n_ab
FROM t1
GROUP BY c;

-- name: sum_avg_integers
SELECT a, SUM(b) AS total, AVG(b) AS mean
FROM t1
GROUP BY a;

-- name: sum_avg_decimal
SELECT dept_id, SUM(salary) AS total, AVG(salary) AS mean
FROM emp
GROUP BY dept_id;

-- name: sum_avg_double
SELECT dept_id, SUM(bonus) AS total, AVG(bonus) AS mean
FROM emp
GROUP BY dept_id;

-- name: sum_small_integers
SELECT SUM(grade) AS grades, AVG(level) AS levels, SUM(level) AS level_sum
FROM emp;

-- name: min_max_numbers
SELECT dept_id, MIN(salary) AS low, MAX(salary) AS high, MIN(level) AS low_level, MAX(bonus) AS high_bonus
FROM emp
GROUP BY dept_id;

-- name: min_max_strings_dates
SELECT dept_id, MIN(name) AS first_name, MAX(name) AS last_name, MIN(hired) AS first_hired, MAX(hired) AS last_hired
FROM emp
GROUP BY dept_id;

-- name: min_max_extremes
SELECT MIN(i8) AS a, MAX(i16) AS b, MIN(i32) AS c, MAX(i64) AS d, MIN(i64) AS e, MAX(dec) AS f, MIN(dec) AS g,
       MIN(d) AS h, MAX(ts) AS i, MIN(ntz) AS j, MAX(flag) AS k, MIN(bin) AS l, MAX(bin) AS m
FROM typed;

-- name: variance_functions
SELECT dept_id, VAR_POP(bonus) AS vp, VAR_SAMP(bonus) AS vs, VARIANCE(bonus) AS v
FROM emp
WHERE bonus BETWEEN -100 AND 100
GROUP BY dept_id;

-- name: stddev_functions
SELECT region, STDDEV_POP(qty) AS sp, STDDEV_SAMP(qty) AS ss, STDDEV(qty) AS s
FROM sale
GROUP BY region;

-- name: variance_of_decimals
SELECT VAR_SAMP(salary) AS v, STDDEV_POP(salary) AS s
FROM emp
WHERE salary < 100000;

-- name: variance_single_row_groups
SELECT id, VAR_POP(bonus) AS vp, VAR_SAMP(bonus) AS vs, STDDEV_SAMP(bonus) AS ss
FROM emp
GROUP BY id;

-- name: covariance
SELECT region, COVAR_POP(qty, discount) AS cp, COVAR_SAMP(qty, discount) AS cs
FROM sale
GROUP BY region;

-- name: correlation
SELECT region, CORR(qty, CAST(price AS DOUBLE)) AS c
FROM sale
GROUP BY region;

-- name: correlation_global
SELECT CORR(qty, discount) AS c, COVAR_POP(qty, discount) AS cp
FROM sale;

-- name: bool_aggregates
SELECT dept_id, BOOL_AND(active) AS all_active, BOOL_OR(active) AS any_active, EVERY(salary > 1000) AS all_paid,
       SOME(bonus < 0) AS any_negative
FROM emp
GROUP BY dept_id;

-- name: min_by_max_by
SELECT dept_id, MIN_BY(name, id) AS first_hire, MAX_BY(salary, id) AS last_salary
FROM emp
GROUP BY dept_id;

-- name: max_by_nullable_order
SELECT MAX_BY(id, CASE WHEN id < 20 THEN id END) AS top, MIN_BY(id, level) AS bottom
FROM emp
WHERE level IS NOT NULL;

-- name: count_if_function
SELECT region, COUNT_IF(qty > 2) AS big, COUNT_IF(note IS NULL) AS no_note
FROM sale
GROUP BY region;

-- name: filter_clause
SELECT dept_id, COUNT(*) FILTER (WHERE active) AS active_count, SUM(salary) FILTER (WHERE NOT active) AS inactive_pay,
       MAX(bonus) FILTER (WHERE salary > 3000) AS rich_bonus
FROM emp
GROUP BY dept_id;

-- name: filter_clause_global
SELECT COUNT(*) FILTER (WHERE qty > 0) AS positive, AVG(price) FILTER (WHERE region = 'north') AS north_price,
       SUM(qty) FILTER (WHERE FALSE) AS never
FROM sale;

-- name: count_distinct
SELECT region, COUNT(DISTINCT product) AS products
FROM sale
GROUP BY region;

-- name: count_distinct_two_columns
SELECT COUNT(DISTINCT a, b) AS pairs, COUNT(DISTINCT a) AS singles
FROM t1;

-- name: sum_avg_distinct
SELECT a, SUM(DISTINCT b) AS total, AVG(DISTINCT b) AS mean
FROM t1
GROUP BY a;

-- name: several_distincts
SELECT dept_id, COUNT(DISTINCT salary) AS salaries, COUNT(DISTINCT active) AS states, SUM(DISTINCT grade) AS grades,
       COUNT(*) AS n
FROM emp
GROUP BY dept_id;

-- name: distinct_with_filter
SELECT COUNT(DISTINCT product) FILTER (WHERE qty > 1) AS big, COUNT(DISTINCT product) AS every_product,
       COUNT(DISTINCT region) FILTER (WHERE note IS NOT NULL) AS noted
FROM sale;

-- name: distinct_min_max_variance
SELECT MIN(DISTINCT b) AS low, MAX(DISTINCT b) AS high, VAR_POP(DISTINCT b) AS v, STDDEV_SAMP(DISTINCT a) AS s
FROM t1;

-- name: group_by_expression
SELECT YEAR(hired) AS hire_year, UPPER(SUBSTRING(name, 1, 1)) AS initial, COUNT(*) AS n
FROM emp
GROUP BY YEAR(hired), UPPER(SUBSTRING(name, 1, 1));

-- name: group_by_ordinal_and_alias
SELECT region AS area, qty % 2 AS parity, COUNT(*) AS n
FROM sale
GROUP BY 1, parity;

-- name: group_by_boolean
SELECT salary > 4000 AS well_paid, COUNT(*) AS n
FROM emp
GROUP BY salary > 4000;

-- name: group_by_all
SELECT region, product, SUM(qty) AS total
FROM sale
GROUP BY ALL;

-- name: group_by_binary
SELECT bin, COUNT(*) AS n, SUM(k) AS keys
FROM typed
GROUP BY bin;

-- name: group_by_without_aggregate
SELECT a, b
FROM t1
GROUP BY a, b;

-- name: group_by_constant
SELECT 'all' AS label, COUNT(*) AS n
FROM t1
GROUP BY 'all';

-- name: aggregate_of_expression
SELECT region, SUM(qty * price) AS revenue, SUM(qty * price * CAST(1 - discount AS DECIMAL(4, 3))) AS net,
       SUM(CASE WHEN qty > 0 THEN 1 ELSE 0 END) AS sold
FROM sale
GROUP BY region;

-- name: expression_of_aggregates
SELECT region, (MAX(qty) - MIN(qty)) * COUNT(*) AS spread, SUM(qty) / COUNT(qty) AS mean
FROM sale
GROUP BY region
HAVING COUNT(qty) > 0;

-- name: having_on_aggregate
SELECT dept_id, COUNT(*) AS n
FROM emp
GROUP BY dept_id
HAVING COUNT(*) >= 2 AND MIN(salary) > 0;

-- name: having_without_select
SELECT product
FROM sale
GROUP BY product
HAVING SUM(qty) > 5 AND COUNT(DISTINCT region) > 1;

-- name: having_global
SELECT SUM(qty) AS total
FROM sale
HAVING COUNT(*) > 10;

-- name: aggregate_of_aggregate
SELECT n, COUNT(*) AS depts
FROM (SELECT dept_id, COUNT(*) AS n FROM emp GROUP BY dept_id) q
GROUP BY n;

-- name: max_of_sums
SELECT MAX(total) AS best, MIN(total) AS worst, AVG(total) AS mean
FROM (SELECT region, SUM(qty) AS total FROM sale GROUP BY region) q;

-- name: select_distinct
SELECT DISTINCT a, b
FROM t1;

-- name: select_distinct_expression
SELECT DISTINCT COALESCE(region, 'none') AS region, qty > 0 AS positive
FROM sale;

-- name: distinct_over_join
SELECT DISTINCT d.city, s.product
FROM sale s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id;

-- name: empty_global
SELECT COUNT(*) AS n, COUNT(v) AS n_v, SUM(v) AS total, AVG(v) AS mean, MIN(s) AS low, MAX(d) AS high,
       VAR_SAMP(v) AS vs, STDDEV_POP(v) AS sp, CORR(v, k) AS c, BOOL_AND(v > 0) AS b, COUNT(DISTINCT v) AS dv,
       COUNT_IF(v > 0) AS ci, MAX_BY(s, v) AS mb, SUM(d) AS sd
FROM nothing;

-- name: empty_grouped
SELECT k, COUNT(*) AS n
FROM nothing
GROUP BY k;

-- name: empty_by_filter
SELECT COUNT(*) AS n, SUM(qty) AS total, MAX(sold_on) AS latest
FROM sale
WHERE qty > 1000000;

-- name: aggregate_over_join
SELECT d.city, COUNT(*) AS n, SUM(s.qty * s.price) AS revenue
FROM dept d JOIN emp e ON e.dept_id = d.id JOIN sale s ON s.emp_id = e.id
GROUP BY d.city;

-- name: all_null_group
SELECT k, SUM(i32) AS total, AVG(f64) AS mean, MIN(s) AS low, COUNT(money) AS n
FROM typed
WHERE k IN (5, 6)
GROUP BY k;

-- name: moments_over_join
SELECT d.city, COUNT(*) AS n, VAR_SAMP(e.bonus) AS vs, STDDEV_POP(s.qty) AS sp, COVAR_POP(e.bonus, s.qty) AS cp,
       COVAR_SAMP(s.discount, e.bonus) AS cs, CORR(e.bonus, s.discount) AS c
FROM dept d JOIN emp e ON e.dept_id = d.id JOIN sale s ON s.emp_id = e.id
GROUP BY d.city;

-- name: covariance_over_three_tables
SELECT COVAR_SAMP(s.discount, d.budget) AS cs, VAR_POP(s.discount) FILTER (WHERE e.active) AS vp
FROM dept d JOIN emp e ON e.dept_id = d.id JOIN sale s ON s.emp_id = e.id;

-- name: regression_over_join
SELECT e.dept_id, REGR_COUNT(s.discount, e.bonus) AS n, REGR_AVGX(s.discount, e.bonus) AS ax, REGR_SXX(s.discount, e.bonus) AS sxx,
       REGR_SYY(s.discount, e.bonus) AS syy, REGR_SXY(s.discount, e.bonus) AS sxy, REGR_SLOPE(s.discount, e.bonus) AS slope,
       REGR_INTERCEPT(s.discount, e.bonus) AS intercept, REGR_R2(s.discount, e.bonus) AS r2
FROM emp e JOIN sale s ON s.emp_id = e.id
GROUP BY e.dept_id;

-- name: truths_over_join
SELECT d.city, BOOL_AND(e.active) AS every_one, BOOL_OR(s.qty > 3) AS any_one, COUNT_IF(e.active AND s.qty > 1) AS n
FROM dept d JOIN emp e ON e.dept_id = d.id JOIN sale s ON s.emp_id = e.id
GROUP BY d.city;
