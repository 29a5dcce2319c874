-- TPC-H 3 without order and limit.
SELECT orders.o_orderkey, orders.o_orderdate, orders.o_shippriority,
       SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE customer.c_mktsegment = 'BUILDING'
  AND orders.o_custkey = customer.c_custkey
  AND lineitem.l_orderkey = orders.o_orderkey
  AND orders.o_orderdate < DATE('1995-03-15')
  AND lineitem.l_shipdate > DATE('1995-03-15')
GROUP BY orders.o_orderkey, orders.o_orderdate, orders.o_shippriority
;
