-- Star Schema Benchmark 4 over the TPC-H tables.
SELECT sn.n_regionkey AS supplier_region, cn.n_regionkey AS customer_region, part.p_type,
       SUM(lineitem.l_quantity) AS quantity
FROM customer, orders, lineitem, part, supplier, nation cn, nation sn
WHERE customer.c_custkey = orders.o_custkey
  AND orders.o_orderkey = lineitem.l_orderkey
  AND part.p_partkey = lineitem.l_partkey
  AND supplier.s_suppkey = lineitem.l_suppkey
  AND orders.o_orderdate >= DATE('1997-01-01')
  AND orders.o_orderdate < DATE('1998-01-01')
  AND cn.n_nationkey = customer.c_nationkey
  AND sn.n_nationkey = supplier.s_nationkey
GROUP BY sn.n_regionkey, cn.n_regionkey, part.p_type
;
