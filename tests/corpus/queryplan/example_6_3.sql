-- Example 6.3: VWAP, nested SUM correlated by inequality (relative partial aggregate index).
SELECT SUM(b.price * b.volume) AS vwap
FROM bids b
WHERE 0.75 * (SELECT SUM(b1.volume) FROM bids b1)
    < (SELECT SUM(b2.volume) FROM bids b2 WHERE b2.price <= b.price)
;
