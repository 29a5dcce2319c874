-- Arithmetic, comparison, conditionals and mathematics.

-- name: integer_arithmetic
SELECT k, i32 + 1 AS add_, i32 - i16 AS sub_, i32 * i8 AS mul_, i64 % 7 AS rem_, i64 DIV 7 AS div_, -i32 AS neg_, +i8 AS pos_
FROM typed
WHERE k <= 16;

-- name: mixed_width_arithmetic
SELECT k, i16 + i16 AS i16_sum, i16 * 2L AS to_bigint, i32 + f32 AS to_double, i64 + money AS to_decimal
FROM typed
WHERE k <= 16;

-- name: division
SELECT k, i32 / 4 AS quarter, i32 / NULLIF(i8, 0) AS ratio, f64 / 2 AS half, money / 3 AS third, 7 DIV 2 AS seven_half
FROM typed
WHERE k <= 16;

-- name: remainder_signs
SELECT k, i32 % 3 AS rem_, MOD(i32, 3) AS mod_, PMOD(i32, 3) AS pmod_, f64 % 2 AS frem, PMOD(f64, 2) AS fpmod, money % 3 AS drem
FROM typed
WHERE k <= 16;

-- name: comparisons
SELECT a, b, a = b AS eq, a <> b AS ne, a < b AS lt, a <= b AS le, a > b AS gt, a >= b AS ge, a <=> b AS nse, a != 1 AS ne_one
FROM t1;

-- name: three_valued_logic
SELECT k, flag AND i8 > 0 AS both, flag OR i8 > 0 AS either, NOT flag AS negated, flag IS TRUE AS is_true,
       flag IS NOT FALSE AS not_false, flag IS UNKNOWN AS is_unknown, (i8 > 0) = flag AS same
FROM typed;

-- name: case_searched
SELECT id, CASE WHEN salary IS NULL THEN 'none' WHEN salary < 0 THEN 'debt' WHEN salary < 4000 THEN 'low' ELSE 'high' END AS band
FROM emp;

-- name: case_simple
SELECT id, CASE dept_id WHEN 1 THEN 'one' WHEN 2 THEN 'two' WHEN NULL THEN 'never' END AS label
FROM emp;

-- name: case_guards_division
SELECT k, CASE WHEN i8 <> 0 THEN 100 DIV i8 ELSE -1 END AS guarded
FROM typed;

-- name: coalesce_family
SELECT a, b, COALESCE(a, b, 0) AS c, NULLIF(a, 1) AS n, IF(a > 2, 'big', 'small') AS i, IFNULL(b, -1) AS f, NVL(a, b) AS v,
       NVL2(a, 'set', 'unset') AS v2
FROM t1;

-- name: between_and_in_list
SELECT id, salary
FROM emp
WHERE salary BETWEEN 1000 AND 5000 AND dept_id IN (2, 4, 9) OR id NOT BETWEEN 3 AND 22;

-- name: in_list_with_null
SELECT a, a IN (1, 2, NULL) AS in_, a NOT IN (1, 2, NULL) AS not_in_, a IN (1, 2) AS plain
FROM t1;

-- name: in_list_strings_dates
SELECT id
FROM emp
WHERE name IN ('Ada', 'ada', '') OR hired IN (DATE '2004-02-29', DATE '2024-02-29');

-- name: null_tests
SELECT a, ISNULL(a) AS is_n, ISNOTNULL(a) AS not_n, a IS NULL AS is_null, b IS NOT NULL AS not_null, a IS DISTINCT FROM b AS dist
FROM t1;

-- name: abs_sign
SELECT k, ABS(i32) AS ai, ABS(f64) AS af, ABS(money) AS am, SIGN(i32) AS si, SIGN(f64) AS sf, SIGN(money) AS sm
FROM typed
WHERE k <= 16;

-- name: round_doubles
SELECT k, ROUND(f64) AS r0, ROUND(f64, 1) AS r1, ROUND(f64 * 100, -2) AS rm2, BROUND(f64) AS b0, BROUND(f64, 1) AS b1
FROM typed
WHERE k <= 16;

-- name: round_integers
SELECT k, ROUND(i32, -1) AS rm1, ROUND(i32, -2) AS rm2, BROUND(i16, -1) AS bm1, ROUND(i64) AS r0
FROM typed
WHERE k <= 16;

-- name: floor_ceil
SELECT k, FLOOR(f64) AS ff, CEIL(f64) AS cf, FLOOR(money) AS fm, CEILING(money) AS cm, FLOOR(i32) AS fi
FROM typed
WHERE k <= 16;

-- name: roots_and_powers
SELECT k, SQRT(ABS(f64)) AS sq, SQRT(f64) AS maybe_nan, POWER(f64, 2) AS p2, POW(2, i8 % 10) AS p, EXP(i8 / 100) AS ex
FROM typed
WHERE k <= 16;

-- name: logarithms
SELECT k, LN(i64) AS l, LOG(i64) AS lg, LOG(2, i64) AS l2, LOG10(i64) AS l10
FROM typed
WHERE k <= 16;

-- name: greatest_least
SELECT k, GREATEST(i8, i16, i32) AS g, LEAST(i8, i16, i32) AS l, GREATEST(f64, money) AS gf, GREATEST(s, 'm') AS gs, LEAST(d, DATE '2020-01-01') AS ld
FROM typed;

-- name: try_functions
SELECT k, TRY_ADD(i64, 1) AS ta, TRY_ADD(i8, i8) AS tb, TRY_DIVIDE(i32, i8) AS td, TRY_DIVIDE(money, i8) AS tm
FROM typed;

-- name: extremes_compared
SELECT k, i64 = 9223372036854775807 AS is_max, i64 < 0 AS negative, i32 > i16 AS wider, dec > money AS more, f64 > dec AS f_more
FROM typed;

-- name: boolean_filter_only
SELECT id FROM emp WHERE active;

-- name: constant_folding
SELECT a, 2 * 3 + 1 AS seven, CONCAT('a', 'b') AS ab, DATE '2024-01-31' + INTERVAL 1 MONTH AS feb
FROM t1
WHERE 1 = 1 AND a > 2 - 1;

-- name: sum_of_case_pivot
SELECT region, SUM(IF(product = 'apple', qty, 0)) AS apples, SUM(CASE product WHEN 'pear' THEN qty END) AS pears,
       MAX(CASE WHEN qty < 0 THEN id END) AS last_return
FROM sale
GROUP BY region;

-- name: in_long_list
SELECT k, i32 IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, NULL) AS ints,
       s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'alpha') AS strings
FROM typed
WHERE k NOT IN (-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12);

-- name: struct_fields
SELECT p.x, COUNT(*) AS n
FROM (SELECT NAMED_STRUCT('x', i32, 'y', s) AS p FROM typed) q
GROUP BY p.x;
