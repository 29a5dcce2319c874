-- TPC-H 18 with EXISTS and HAVING written as nested sums.
-- The paper correlates the innermost sum with l2; that is what Spark decorrelates too.
SELECT c.c_custkey, SUM(l1.l_quantity) AS quantity
FROM customer c, orders o, lineitem l1
WHERE 1 <= (SELECT SUM(1)
            FROM lineitem l2
            WHERE l1.l_orderkey = l2.l_orderkey
              AND 100 < (SELECT SUM(l3.l_quantity)
                         FROM lineitem l3
                         WHERE l2.l_orderkey = l3.l_orderkey))
  AND c.c_custkey = o.o_custkey
  AND o.o_orderkey = l1.l_orderkey
GROUP BY c.c_custkey
;
