-- Generators: LATERAL VIEW explode and posexplode, with OUTER; split and array as their input; inline tables.

-- name: explode_split
SELECT id, tag FROM doc LATERAL VIEW EXPLODE(SPLIT(tags, ',')) v AS tag;

-- name: explode_outer_split
SELECT id, tag FROM doc LATERAL VIEW OUTER EXPLODE(SPLIT(tags, ',')) v AS tag;

-- name: posexplode_split
SELECT id, pos, tag FROM doc LATERAL VIEW POSEXPLODE(SPLIT(tags, ',')) v AS pos, tag;

-- name: posexplode_outer_split
SELECT id, pos, tag FROM doc LATERAL VIEW OUTER POSEXPLODE(SPLIT(tags, ',')) v AS pos, tag;

-- name: explode_array_columns
SELECT a, v FROM t1 LATERAL VIEW EXPLODE(ARRAY(a, b)) x AS v;

-- name: explode_array_literals
SELECT id, n FROM dept LATERAL VIEW EXPLODE(ARRAY(1, 2, 2, NULL)) x AS n;

-- name: explode_in_select
SELECT id, EXPLODE(ARRAY(grade, level)) AS v FROM emp;

-- name: explode_outer_in_select
SELECT id, EXPLODE_OUTER(SPLIT(body, ' ')) AS word FROM doc;

-- name: explode_twice
SELECT id, word, n FROM doc LATERAL VIEW EXPLODE(SPLIT(title, ' ')) x AS word LATERAL VIEW EXPLODE(ARRAY(1, 2)) y AS n;

-- name: explode_dependent
SELECT id, part, letter
FROM doc
LATERAL VIEW EXPLODE(SPLIT(tags, ',')) x AS part
LATERAL VIEW OUTER EXPLODE(SPLIT(part, '_')) y AS letter;

-- name: word_count
SELECT LOWER(word) AS word, COUNT(*) AS n
FROM doc LATERAL VIEW EXPLODE(SPLIT(body, ' ')) v AS word
GROUP BY LOWER(word);

-- name: explode_join
SELECT x.id, y.id AS other_id, x.tag
FROM (SELECT id, EXPLODE(SPLIT(tags, ',')) AS tag FROM doc) x
JOIN (SELECT id, EXPLODE(SPLIT(tags, ',')) AS tag FROM doc) y ON x.tag = y.tag AND x.id < y.id;

-- name: explode_filtered
SELECT id, pos, tag
FROM doc LATERAL VIEW POSEXPLODE(SPLIT(tags, ',')) v AS pos, tag
WHERE pos > 0 AND tag <> '';

-- name: inline_values_only
SELECT * FROM VALUES (1, 'a'), (2, NULL), (2, NULL) AS v(n, s);

-- name: inline_values_aggregated
SELECT s, SUM(n) AS total FROM VALUES (1, 'a'), (2, 'b'), (3, 'a'), (NULL, 'b') AS v(n, s) GROUP BY s;

-- name: select_without_from
SELECT 1 AS one, 'x' AS x, CAST(NULL AS DATE) AS no_date;
