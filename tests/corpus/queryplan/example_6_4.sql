-- Example 6.4: nested MAX correlated by inequality (range search tree).
-- With real volumes no bid exceeds three quarters of the total, so the answer is NULL; see example_6_4_small.
SELECT SUM(b.price * b.volume) AS vwap
FROM bids b
WHERE 0.75 * (SELECT SUM(b1.volume) FROM bids b1)
    < (SELECT MAX(b2.volume) FROM bids b2 WHERE b2.price <= b.price)
;
