-- Expressions that only Spark's own code computes, wherever an expression may stand.

-- name: spark_code_json
SELECT id, get_json_object(concat('{"a":"', tags, '"}'), '$.a') AS tag, to_json(named_struct('t', title, 'n', id)) AS j,
       from_json(concat('{"n":', id, '}'), 'n INT, m STRING').n AS n
FROM doc;

-- name: spark_code_variant
SELECT id, variant_get(parse_json(concat('{"n":', id, ', "t": ["a", null]}')), '$.n', 'int') AS n,
       to_json(try_parse_json(concat('{"t":"', title, '"}'))) AS j, try_parse_json(body):x::string AS x
FROM doc;

-- name: spark_code_lambdas
SELECT id, transform(split(tags, ','), x -> concat(x, id)) AS t, filter(split(body, ' '), (x, i) -> length(x) > i) AS f,
       aggregate(split(body, ' '), 0, (acc, x) -> acc + length(x), acc -> acc * 2) AS n
FROM doc;

-- name: spark_code_lambdas_over_what_is_never_null
SELECT dept_id, size(filter(array(count(*), count(name)), x -> x > 1)) AS n,
       aggregate(array(count(*), 1), 0L, (acc, x) -> acc + x) AS m FROM emp GROUP BY dept_id;

-- name: spark_code_in_filter
SELECT a, b FROM t1 WHERE pmod(hash(a, c), 3) = 0 OR soundex(c) = 'A000';

-- name: spark_code_as_group_key
SELECT soundex(name) AS sound, count(*) AS n, sum(salary) AS paid, max(format_string('%s/%d', name, id)) AS last
FROM emp GROUP BY soundex(name);

-- name: spark_code_over_aggregates
SELECT dept_id, to_json(named_struct('n', count(*), 'm', max(salary))) AS j, mask(max(name)) AS hidden FROM emp GROUP BY dept_id;

-- name: spark_code_in_join
SELECT x.a, y.b, y.d FROM t1 x JOIN t2 y ON crc32(encode(x.c, 'utf-8')) = crc32(encode(y.d, 'utf-8')) AND hash(x.a) < hash(y.b);

-- name: spark_code_in_outer_join
SELECT x.a, x.c, y.d FROM t1 x LEFT JOIN t2 y ON x.a = y.a AND soundex(x.c) = soundex(y.d);

-- name: spark_code_summed_over_join
SELECT e.dept_id, sum(conv(hex(e.id), 16, 10) * s.qty) AS n FROM emp e JOIN sale s ON s.emp_id = e.id GROUP BY e.dept_id;

-- name: spark_code_of_numbers
SELECT k, xxhash64(f64, f32) AS h, to_char(cast(i16 AS DECIMAL(7, 1)), '99999.9') AS c, width_bucket(f64, 0, 10, 5) AS w,
       format_number(f64, 2) AS f
FROM typed WHERE f64 IS NULL OR abs(f64) < 1e9;

-- name: spark_code_of_times
SELECT k, to_csv(named_struct('d', d, 'ts', ts)) AS c, array_sort(array(d, date'2020-01-01')) AS ds, map_keys(map(k, ts))[0] AS key
FROM typed WHERE k IS NOT NULL AND (d IS NULL OR d > date'0002-01-01') AND (ts IS NULL OR ts > timestamp'0002-01-01 00:00:00');

-- name: spark_code_of_times_and_intervals
SELECT k, sequence(CAST(ts AS DATE), CAST(ts AS DATE) + INTERVAL 2 DAYS, INTERVAL 1 DAY) AS days,
       sequence(ts, ts + INTERVAL 3 HOURS, INTERVAL 90 MINUTES) AS hours,
       to_csv(named_struct('a', ts - INTERVAL 1 HOUR, 'b', d - INTERVAL 1 MONTH)) AS c
FROM typed WHERE k IS NOT NULL AND (d IS NULL OR d > date'0002-01-01') AND ts > timestamp'0002-01-01 00:00:00';

-- name: spark_code_of_collations
SELECT id, name COLLATE UNICODE_CI < 'e' AS before_e, CAST(upper(name COLLATE UTF8_LCASE) AS STRING) AS u
FROM emp WHERE name COLLATE UTF8_LCASE IN ('ANN', 'bob', 'Eve') OR contains(name COLLATE UTF8_LCASE, 'A');

-- name: spark_code_nested_in_ours
SELECT id, CASE WHEN name LIKE 'A%' THEN upper(soundex(name)) ELSE coalesce(soundex(lower(name)), 'none') END AS s FROM emp;

-- name: spark_code_in_window
SELECT id, row_number() OVER (PARTITION BY soundex(name) ORDER BY hash(id), id) AS n FROM emp;

-- name: spark_code_in_subquery
SELECT a FROM t1 WHERE soundex(c) IN (SELECT soundex(d) FROM t2 WHERE d IS NOT NULL);

-- name: spark_code_maps
SELECT k, map(k, s, -1, NULL) AS m, map_values(map_filter(map('i', i32, 'j', i64), (n, v) -> v > 0)) AS v, map('s', s)['s'] AS s
FROM typed WHERE k IS NOT NULL AND k <> -1;
