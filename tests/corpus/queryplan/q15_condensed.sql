-- Figure 1a: TPC-H 15 without order; the view it defines is a CTE used twice.
WITH r AS (
  SELECT l_suppkey AS sk, SUM(l_extendedprice * (1 - l_discount)) AS tr
  FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01'
    AND l_shipdate < DATE '1996-04-01'
  GROUP BY l_suppkey
)
SELECT s.s_suppkey, s.s_name, s.s_address, s.s_phone, r.tr
FROM supplier s, r
WHERE s.s_suppkey = r.sk
  AND r.tr = (SELECT MAX(tr) FROM r)
;
