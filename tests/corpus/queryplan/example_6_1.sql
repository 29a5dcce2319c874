-- Example 6.1: nested SUM compared by equality (served by a partial aggregate index).
SELECT SUM(r.a * r.b) AS total
FROM r
WHERE 0.5 * (SELECT SUM(r1.b) FROM r r1) =
      (SELECT SUM(r2.b) FROM r r2 WHERE r2.a = r.a)
;
