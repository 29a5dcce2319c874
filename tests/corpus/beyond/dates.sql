-- Date functions outside the promised list, and results of an interval type.

-- name: unix_functions
SELECT k, UNIX_DATE(d) AS ud, DATE_FROM_UNIX_DATE(i32) AS fd, UNIX_SECONDS(ts) AS us, UNIX_MICROS(ts) AS um, UNIX_TIMESTAMP(ts) AS ut,
       TIMESTAMP_SECONDS(i32) AS tsec
FROM typed
WHERE k <= 16;

-- name: next_day_and_names
SELECT k, NEXT_DAY(d, 'MON') AS monday, DAYNAME(d) AS dn, MONTHNAME(d) AS mn
FROM typed
WHERE k <= 16;

-- name: timestampdiff_and_add
SELECT k, TIMESTAMPDIFF(HOUR, TIMESTAMP '2024-01-01 00:00:00', ts) AS hours_, TIMESTAMPADD(MONTH, 1, ts) AS later, DATEDIFF(MONTH, d, DATE '2024-05-15') AS months_
FROM typed
WHERE k <= 16;

-- name: interval_results
SELECT k, d - DATE '2024-01-01' AS days_, ts - TIMESTAMP '2024-01-01 00:00:00' AS span, ntz - TIMESTAMP_NTZ '2024-01-01 00:00:00' AS local_span
FROM typed
WHERE k <= 16;

-- name: interval_of_aggregates
SELECT user_id, MAX(at) - MIN(at) AS span
FROM event
GROUP BY user_id;

-- name: more_fields
SELECT k, WEEKDAY(d) AS wd, DATE_PART('YEAROFWEEK', d) AS yow, MAKE_TIMESTAMP(2024, 2, 29, ABS(i8 % 24), 30, 15.5) AS mt
FROM typed
WHERE k <= 16;
