-- Generators other than explode and posexplode, lateral subqueries and PIVOT.

-- name: pivot_clause
SELECT *
FROM (SELECT region, product, qty FROM sale)
PIVOT (SUM(qty) FOR product IN ('apple' AS apple, 'fig' AS fig));

-- name: unpivot_by_explode
SELECT id, col, value
FROM (SELECT id, qty, CAST(discount * 8 AS INT) AS eighths FROM sale) q
LATERAL VIEW INLINE(ARRAY(STRUCT('qty' AS col, qty AS value), STRUCT('eighths' AS col, eighths AS value))) v AS col, value;

-- name: stack_generator
SELECT id, label, amount FROM emp LATERAL VIEW STACK(2, 'grade', CAST(grade AS INT), 'level', CAST(level AS INT)) s AS label, amount;

-- name: explode_sequence
SELECT id, n FROM dept LATERAL VIEW EXPLODE(SEQUENCE(1, id)) v AS n WHERE id <= 5;

-- name: lateral_subquery
SELECT d.id, x.top
FROM dept d, LATERAL (SELECT MAX(e.salary) AS top FROM emp e WHERE e.dept_id = d.id) x;
