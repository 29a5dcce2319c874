-- Strings and binaries: patterns, slices, padding, searching; Unicode, empty and NULL inputs.

-- name: like_patterns
SELECT id, title FROM doc WHERE title LIKE '%o%' OR body LIKE 'jumps%' OR title LIKE '_' OR title LIKE '';

-- name: like_escape
SELECT id, title LIKE '%!%%' ESCAPE '!' AS percent, body LIKE '%\_%' AS underscore, title LIKE '%\\\\%' AS backslash, tags LIKE 'a#_b%' ESCAPE '#' AS tag
FROM doc;

-- name: not_like_ilike
SELECT id, title NOT LIKE 'the%' AS not_the, title ILIKE 'THE%' AS any_the, title NOT ILIKE '%FOX' AS no_fox
FROM doc;

-- name: rlike_patterns
SELECT id, title RLIKE '^[a-z]+$' AS lower_, title REGEXP '[0-9]{4}-[0-9]{2}' AS dated, body RLIKE '(?i)LAZY' AS lazy
FROM doc;

-- name: like_column_pattern
SELECT x.id, y.id AS other FROM doc x JOIN doc y ON x.title LIKE CONCAT(y.tags, '%') AND y.tags <> '';

-- name: substrings
SELECT id, SUBSTRING(title, 1, 3) AS a, SUBSTRING(title, -3) AS b, SUBSTRING(title, -3, 2) AS c, SUBSTRING(title, 0, 2) AS d_, SUBSTR(title, 5) AS e,
       SUBSTRING(title FROM 2 FOR 3) AS f, SUBSTRING(title, 3, -1) AS g, SUBSTRING(title, -100, 99) AS h, SUBSTRING(title, 100) AS i
FROM doc;

-- name: concatenation
SELECT id, CONCAT(title, '/', tags) AS c, title || '-' || body AS bars, CONCAT_WS('|', title, tags, NULL, 'end') AS ws, CONCAT_WS(',') AS nil
FROM doc;

-- name: concat_numbers
SELECT id, CONCAT(id, ':', salary, ':', hired, ':', active) AS line FROM emp;

-- name: case_and_trim
SELECT id, UPPER(title) AS u, LOWER(title) AS l, TRIM(title) AS t, LTRIM(title) AS lt, RTRIM(body) AS rt,
       TRIM(BOTH 'a' FROM title) AS ba, TRIM(LEADING 'a' FROM body) AS la, TRIM(TRAILING 'c' FROM body) AS tc
FROM doc;

-- name: lengths
SELECT id, LENGTH(title) AS n, CHAR_LENGTH(body) AS cn, LENGTH(tags) AS tn
FROM doc;

-- name: replace_text
SELECT id, REPLACE(title, 'a', 'bb') AS r, REPLACE(body, ' ') AS no_space
FROM doc;

-- name: padding
SELECT id, LPAD(title, 8, '*') AS l, RPAD(title, 8, 'xy') AS r, LPAD(title, 2, '*') AS cut, RPAD(title, 10) AS blank, LPAD(CAST(id AS STRING), 4, '0') AS zero
FROM doc;

-- name: searching
SELECT id, INSTR(title, 'o') AS i, LOCATE('a', body) AS l, LOCATE('a', body, 3) AS l3, POSITION('b' IN title) AS p, INSTR(title, '') AS nil
FROM doc;

-- name: left_right
SELECT id, LEFT(title, 3) AS l, RIGHT(title, 3) AS r, LEFT(title, 0) AS nothing_, RIGHT(title, -1) AS negative
FROM doc;

-- name: prefix_suffix
SELECT id, STARTSWITH(title, 'the') AS s, ENDSWITH(title, 'fox') AS e, CONTAINS(body, 'lazy') AS c, STARTSWITH(tags, '') AS empty_
FROM doc;

-- name: reverse_repeat
SELECT id, REVERSE(title) AS rv, REPEAT(tags, 2) AS twice, REPEAT(tags, 0) AS none_
FROM doc;

-- name: split_element
SELECT id, SPLIT(tags, ',')[0] AS first_
FROM doc
WHERE tags IS NOT NULL;

-- name: split_with_limit_and_regex
SELECT id, CONCAT_WS('|', SPLIT(body, '[ .]')) AS pieces, CONCAT_WS('|', SPLIT(tags, ',', 2)) AS two
FROM doc;

-- name: string_comparison
SELECT x.id, y.id AS other FROM doc x JOIN doc y ON x.title < y.title AND y.title < x.body;

-- name: string_group
SELECT LOWER(TRIM(title)) AS key_, COUNT(*) AS n, MIN(body) AS low, MAX(tags) AS high
FROM doc
GROUP BY LOWER(TRIM(title));

-- name: string_distinct_count
SELECT COUNT(DISTINCT title) AS titles, COUNT(DISTINCT LOWER(title)) AS lower_titles, COUNT(DISTINCT body, tags) AS pairs
FROM doc;

-- name: binary_functions
SELECT k, LENGTH(bin) AS n, bin = X'6162' AS is_ab, bin < X'61' AS less, CONCAT(bin, X'00') AS longer, SUBSTRING(bin, 2, 1) AS second_
FROM typed;

-- name: binary_join
SELECT x.k, y.k AS other FROM typed x JOIN typed y ON x.bin = y.bin AND x.k < y.k;
