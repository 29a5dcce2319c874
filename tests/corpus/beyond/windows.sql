-- Window functions that skip NULLs.

-- name: lag_ignore_nulls
SELECT id, LAG(amount) IGNORE NULLS OVER (PARTITION BY user_id ORDER BY id) AS previous_known
FROM event;

-- name: first_value_ignore_nulls
SELECT id, FIRST_VALUE(amount) IGNORE NULLS OVER (PARTITION BY kind ORDER BY id DESC) AS latest_amount
FROM event;
