-- Finance: per broker, half the square of its bids' value.
-- Multiplied as decimals: the product of two bid values exceeds a bigint on the standard data.
SELECT x.broker_id,
       SUM(CAST(x.volume * x.price AS DECIMAL(18, 0)) * CAST(y.volume * y.price AS DECIMAL(18, 0)) * 0.5) AS bsv
FROM bids x, bids y
WHERE x.broker_id = y.broker_id
GROUP BY x.broker_id
;
