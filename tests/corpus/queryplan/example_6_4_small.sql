-- Example 6.4 with a fraction small enough that rows qualify on the finance data.
SELECT SUM(b.price * b.volume) AS vwap
FROM bids b
WHERE 0.01 * (SELECT SUM(b1.volume) FROM bids b1)
    < (SELECT MAX(b2.volume) FROM bids b2 WHERE b2.price <= b.price)
;
