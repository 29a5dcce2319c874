-- Dates, timestamps (session time zone UTC), timestamps without time zone, and intervals.

-- name: date_fields
SELECT k, YEAR(d) AS y, QUARTER(d) AS q, MONTH(d) AS m, DAY(d) AS dd, DAYOFMONTH(d) AS dom, DAYOFWEEK(d) AS dow,
       DAYOFYEAR(d) AS doy, WEEKOFYEAR(d) AS woy
FROM typed;

-- name: timestamp_fields
SELECT k, YEAR(ts) AS y, MONTH(ts) AS m, HOUR(ts) AS h, MINUTE(ts) AS mi, SECOND(ts) AS s, HOUR(ntz) AS nh, SECOND(ntz) AS ns
FROM typed;

-- name: extract_fields
SELECT k, EXTRACT(YEAR FROM d) AS y, EXTRACT(MONTH FROM ts) AS m, EXTRACT(DAY FROM ntz) AS dd, EXTRACT(HOUR FROM ts) AS h,
       EXTRACT(SECOND FROM ts) AS s, EXTRACT(DOW FROM d) AS dow, EXTRACT(WEEK FROM d) AS w, EXTRACT(QUARTER FROM d) AS q,
       EXTRACT(DOY FROM d) AS doy
FROM typed;

-- name: date_arithmetic
SELECT k, DATE_ADD(d, 30) AS plus_, DATE_SUB(d, 60) AS minus_, d + 1 AS next_day_, d - 1 AS previous_day_, DATEDIFF(d, DATE '2024-01-01') AS diff
FROM typed
WHERE k <= 16;

-- name: datediff_of_timestamps
SELECT k, DATEDIFF(ts, ntz) AS days_apart, DATEDIFF(DATE '2024-01-01', ts) AS days_left
FROM typed
WHERE k <= 16;

-- name: months
SELECT k, ADD_MONTHS(d, 1) AS one, ADD_MONTHS(d, -13) AS back, LAST_DAY(d) AS month_end, MONTHS_BETWEEN(d, DATE '2020-02-29') AS gap,
       MONTHS_BETWEEN(ts, TIMESTAMP '2020-02-29 12:00:00') AS ts_gap
FROM typed
WHERE k <= 16;

-- name: date_plus_interval
SELECT k, d + INTERVAL 1 DAY AS p1, d - INTERVAL 1 MONTH AS m1, d + INTERVAL 1 YEAR AS y1, d + INTERVAL '1-2' YEAR TO MONTH AS ym,
       d + INTERVAL '3' DAY AS p3
FROM typed
WHERE k <= 16;

-- name: date_plus_hours_is_timestamp
SELECT k, d + INTERVAL 5 HOUR AS h5, d - INTERVAL '1 02:03:04' DAY TO SECOND AS ds
FROM typed
WHERE k <= 16;

-- name: timestamp_plus_interval
SELECT k, ts + INTERVAL 1 HOUR AS h1, ts - INTERVAL 90 MINUTE AS m90, ts + INTERVAL 1 MONTH AS mo, ts - INTERVAL 1 YEAR AS y,
       ntz + INTERVAL 1 DAY AS nd, ntz - INTERVAL 1 MONTH AS nm
FROM typed
WHERE k <= 16;

-- name: date_trunc_units
SELECT k, DATE_TRUNC('YEAR', ts) AS y, DATE_TRUNC('QUARTER', ts) AS q, DATE_TRUNC('MONTH', ts) AS m, DATE_TRUNC('WEEK', ts) AS w,
       DATE_TRUNC('DAY', ts) AS dd, DATE_TRUNC('HOUR', ts) AS h, DATE_TRUNC('MINUTE', ts) AS mi, DATE_TRUNC('DAY', ntz) AS nd
FROM typed
WHERE k <= 16;

-- name: trunc_units
SELECT k, TRUNC(d, 'YEAR') AS y, TRUNC(d, 'MM') AS m, TRUNC(d, 'QUARTER') AS q, TRUNC(d, 'WEEK') AS w
FROM typed
WHERE k <= 16;

-- name: to_date_functions
SELECT id, TO_DATE(SUBSTRING(CAST(hired AS STRING), 1, 10)) AS plain,
       TO_DATE(CONCAT(DAY(hired), '/', MONTH(hired), '/', YEAR(hired)), 'd/M/yyyy') AS formatted, TO_DATE(CAST(hired AS STRING), 'yyyy-MM-dd') AS iso
FROM emp;

-- name: to_timestamp_functions
SELECT id, TO_TIMESTAMP(CAST(sold_at AS STRING)) AS plain, TO_TIMESTAMP(DATE_FORMAT(sold_at, 'yyyyMMdd HHmm'), 'yyyyMMdd HHmm') AS minute_
FROM sale;

-- name: date_format_patterns
SELECT k, DATE_FORMAT(d, 'yyyy/MM/dd') AS a, DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss.SSS') AS b, DATE_FORMAT(d, 'dd.MM.yy') AS c,
       DATE_FORMAT(d, 'yyyy-MM') AS e, DATE_FORMAT(d, 'EEE d MMM') AS f
FROM typed
WHERE k <= 16;

-- name: make_date_function
SELECT k, MAKE_DATE(2020 + i8 % 5, 2, 28) AS md, MAKE_DATE(2024, 2, 29) AS leap, UNIX_DATE(d) AS ud
FROM typed
WHERE k <= 16;

-- name: group_by_month
SELECT DATE_TRUNC('MONTH', sold_at) AS month_, COUNT(*) AS n, SUM(qty) AS total, MIN(sold_at) AS first_, MAX(sold_on) AS last_
FROM sale
GROUP BY DATE_TRUNC('MONTH', sold_at);

-- name: group_by_year_quarter
SELECT YEAR(sold_on) AS y, QUARTER(sold_on) AS q, COUNT(*) AS n
FROM sale
GROUP BY YEAR(sold_on), QUARTER(sold_on);

-- name: date_filters
SELECT id, sold_on
FROM sale
WHERE sold_on >= DATE '2023-12-01' AND sold_on < DATE '2023-12-01' + INTERVAL 2 MONTH AND sold_at > TIMESTAMP '2023-12-05 00:00:00';

-- name: timestamp_against_date
SELECT k, ts > d AS later, CAST(ts AS DATE) = d AS same_day, ts = ntz AS same_instant, ts BETWEEN '2020-01-01' AND '2024-06-01' AS inside
FROM typed
WHERE k <= 16;

-- name: timestamp_band_join
SELECT x.id, y.id AS later_id, HOUR(y.at) - HOUR(x.at) AS hours_
FROM event x JOIN event y ON x.user_id = y.user_id AND y.at > x.at AND y.at <= x.at + INTERVAL 10 HOUR;

-- name: leap_days
SELECT id, hired, ADD_MONTHS(hired, 12) AS anniversary, hired + INTERVAL 4 YEARS AS four
FROM emp
WHERE MONTH(hired) = 2 AND DAY(hired) = 29;

-- name: min_max_timestamps
SELECT user_id, MIN(at) AS first_, MAX(at) AS last_, DATEDIFF(MAX(at), MIN(at)) AS span, COUNT(DISTINCT day) AS days_
FROM event
GROUP BY user_id;
