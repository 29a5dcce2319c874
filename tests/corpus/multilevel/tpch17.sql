-- TPC-H 17 with a nested SUM in place of AVG.
SELECT SUM(l.l_extendedprice) AS total
FROM lineitem l, part p
WHERE p.p_partkey = l.l_partkey
  AND l.l_quantity < 0.005 * (SELECT SUM(l2.l_quantity)
                              FROM lineitem l2
                              WHERE l2.l_partkey = p.p_partkey)
;
