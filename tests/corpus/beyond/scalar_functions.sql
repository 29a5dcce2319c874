-- Mathematics outside the promised list.

-- name: bitwise
SELECT k, i32 & 6 AS and_, i32 | 6 AS or_, i32 ^ 6 AS xor_, ~i32 AS not_, SHIFTLEFT(i8, 2) AS left_, SHIFTRIGHT(i32, 1) AS right_
FROM typed
WHERE k <= 16;

-- name: trigonometry
SELECT k, SIN(f64) AS s, COS(f64) AS c, ATAN2(f64, 2) AS a, DEGREES(f64) AS d, RADIANS(f64) AS r, PI() AS pi_
FROM typed
WHERE k <= 12;

-- name: width_bucket_and_hex
SELECT k, WIDTH_BUCKET(f64, -10, 10, 5) AS bucket, HEX(i32) AS hx, CONV('ff', 16, 10) AS cv, FACTORIAL(ABS(i8 % 5)) AS fact
FROM typed
WHERE k <= 16;

-- name: more_roots_and_logarithms
SELECT k, CBRT(f64) AS cb, LOG2(i64) AS lb, LOG1P(f64) AS l1p, RINT(f64 + 1) AS ri, CEIL(f64, 1) AS c1, FLOOR(money, 1) AS f1
FROM typed
WHERE k <= 16;

-- name: more_try_functions
SELECT k, TRY_SUBTRACT(i32, 1) AS s, TRY_MULTIPLY(i64, 2) AS m, TRY_MOD(i32, i8) AS r
FROM typed;
