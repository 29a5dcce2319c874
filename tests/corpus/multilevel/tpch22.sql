-- TPC-H 22 with NOT EXISTS written as a nested count.
-- The paper's SUM(1) over no rows is 0 in its algebra and NULL in SQL, so COALESCE restores its meaning.
SELECT c1.c_nationkey, SUM(c1.c_acctbal) AS balance
FROM customer c1
WHERE c1.c_acctbal < (SELECT SUM(c2.c_acctbal) FROM customer c2 WHERE c2.c_acctbal > 0)
  AND 0 = (SELECT COALESCE(SUM(1), 0) FROM orders o WHERE o.o_custkey = c1.c_custkey)
GROUP BY c1.c_nationkey
;
