-- CAST and TRY_CAST among all supported types.

-- name: cast_integers
SELECT k, CAST(i8 AS SMALLINT) AS a, CAST(i8 AS BIGINT) AS b, CAST(i16 AS INT) AS c, CAST(i32 AS BIGINT) AS e, CAST(i64 AS DECIMAL(20, 0)) AS f,
       CAST(i32 AS DOUBLE) AS g, CAST(i8 AS FLOAT) AS h, CAST(i32 AS STRING) AS i, CAST(i8 AS BOOLEAN) AS j
FROM typed;

-- name: cast_narrowing_tame
SELECT k, CAST(i64 % 100 AS TINYINT) AS a, CAST(i32 AS SMALLINT) AS b, CAST(i64 AS INT) AS c
FROM typed
WHERE k <= 12;

-- name: try_cast_narrowing
SELECT k, TRY_CAST(i64 AS INT) AS a, TRY_CAST(i32 AS TINYINT) AS b, TRY_CAST(i16 AS TINYINT) AS c, TRY_CAST(f64 AS INT) AS d_, TRY_CAST(dec AS BIGINT) AS e,
       TRY_CAST(money AS DECIMAL(6, 1)) AS f, TRY_CAST(i64 AS DECIMAL(10, 2)) AS g
FROM typed;

-- name: cast_floats
SELECT k, CAST(f64 AS FLOAT) AS a, CAST(f32 AS DOUBLE) AS b, CAST(f64 AS DECIMAL(20, 3)) AS c, CAST(f64 AS INT) AS d_, CAST(f64 AS BIGINT) AS e,
       CAST(f64 AS STRING) AS f, CAST(f32 AS STRING) AS g, CAST(f64 AS BOOLEAN) AS h
FROM typed
WHERE k <= 16;

-- name: cast_floats_to_text_extremes
SELECT k, CAST(f64 AS STRING) AS f, CAST(f64 * 1e7 AS STRING) AS big, CAST(f64 / 1e5 AS STRING) AS small
FROM typed;

-- name: cast_decimals
SELECT k, CAST(dec AS DOUBLE) AS a, CAST(money AS INT) AS b, CAST(dec AS STRING) AS c, CAST(money AS DECIMAL(20, 4)) AS d_, CAST(dec AS DECIMAL(30, 2)) AS e,
       CAST(money AS FLOAT) AS f, CAST(money AS BOOLEAN) AS g
FROM typed
WHERE k <= 16;

-- name: try_cast_text_to_numbers
SELECT k, s, TRY_CAST(s AS INT) AS i, TRY_CAST(s AS BIGINT) AS l, TRY_CAST(s AS DOUBLE) AS d_, TRY_CAST(s AS DECIMAL(10, 2)) AS dc, TRY_CAST(s AS TINYINT) AS t
FROM typed;

-- name: try_cast_text_to_others
SELECT k, s, TRY_CAST(s AS BOOLEAN) AS b, TRY_CAST(s AS DATE) AS d_, TRY_CAST(s AS TIMESTAMP) AS t, CAST(s AS BINARY) AS bin_
FROM typed;

-- name: cast_text_tame
SELECT CAST('42' AS INT) AS i, CAST(' 42 ' AS BIGINT) AS l, CAST('1e2' AS DOUBLE) AS d_, CAST('1.255' AS DECIMAL(5, 2)) AS dc, CAST('yes' AS BOOLEAN) AS b,
       CAST('2024-2-3' AS DATE) AS dt, CAST('2024-02-03 04:05:06.7' AS TIMESTAMP) AS t, CAST('2024-02-03T04:05' AS TIMESTAMP_NTZ) AS n, k
FROM typed
WHERE k = 1;

-- name: cast_dates
SELECT k, CAST(d AS STRING) AS a, CAST(d AS TIMESTAMP) AS b, CAST(d AS TIMESTAMP_NTZ) AS c, CAST(ts AS DATE) AS e, CAST(ntz AS DATE) AS f
FROM typed
WHERE k <= 16;

-- name: cast_timestamps
SELECT k, CAST(ts AS STRING) AS a, CAST(ntz AS STRING) AS b, CAST(ts AS TIMESTAMP_NTZ) AS c, CAST(ntz AS TIMESTAMP) AS d_, CAST(ts AS BIGINT) AS e, CAST(ts AS DOUBLE) AS f
FROM typed;

-- name: cast_number_to_timestamp
SELECT k, CAST(i32 AS TIMESTAMP) AS a, CAST(money AS TIMESTAMP) AS b
FROM typed
WHERE k <= 16;

-- name: cast_booleans
SELECT k, CAST(flag AS INT) AS a, CAST(flag AS STRING) AS b, CAST(flag AS DOUBLE) AS c, CAST(flag AS DECIMAL(3, 1)) AS d_, CAST(flag AS TINYINT) AS e
FROM typed;

-- name: cast_binary
SELECT k, CAST(bin AS STRING) AS a, CAST(s AS BINARY) AS b, CAST(CAST(s AS BINARY) AS STRING) AS c
FROM typed
WHERE k NOT IN (3, 13, 17, 19);

-- name: cast_null
SELECT a, CAST(NULL AS INT) AS i, CAST(NULL AS STRING) AS s, CAST(NULL AS TIMESTAMP_NTZ) AS n, CAST(a AS STRING) AS t
FROM t1;

-- name: implicit_casts
SELECT id FROM emp WHERE salary > '4000' AND hired < '2020-01-01' AND grade < 100L;

-- name: cast_join_key
SELECT t.k, t1.b FROM typed t JOIN t1 ON TRY_CAST(t.s AS INT) = t1.a;

-- name: cast_group_key
SELECT CAST(price AS INT) DIV 10 AS bucket, COUNT(*) AS n FROM sale GROUP BY CAST(price AS INT) DIV 10;

-- name: double_colon_cast
SELECT id::STRING AS s, salary::DOUBLE AS d_, hired::TIMESTAMP AS t FROM emp;
