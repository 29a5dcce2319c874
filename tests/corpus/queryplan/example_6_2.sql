-- Example 6.2: nested MAX compared by equality (partial aggregate index and a search tree).
SELECT SUM(r.a * r.b) AS total
FROM r
WHERE 0.75 * (SELECT SUM(r1.b) FROM r r1) =
      (SELECT MAX(r2.b) FROM r r2 WHERE r2.a = r.a)
;
