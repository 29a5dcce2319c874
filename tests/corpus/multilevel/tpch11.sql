-- TPC-H 11 without the nation filter and the nested threshold.
SELECT ps.ps_partkey, SUM(ps.ps_supplycost * ps.ps_availqty) AS value
FROM partsupp ps, supplier s
WHERE ps.ps_suppkey = s.s_suppkey
GROUP BY ps.ps_partkey
;
