-- String functions outside the promised list.

-- name: like_any_all
SELECT id FROM doc WHERE title LIKE ANY ('%quick%', '%Quick%') OR tags LIKE ALL ('%a%', '%b%');

-- name: regexp_functions
SELECT id, REGEXP_REPLACE(title, '[aeiou]', '*') AS masked, REGEXP_EXTRACT(title, '([a-z]+)_([a-z]+)', 2) AS second_, REGEXP_COUNT(body, 'a') AS n
FROM doc;

-- name: hashes
SELECT id, MD5(title) AS m, SHA2(title, 256) AS s, CRC32(body) AS c, BASE64(CAST(title AS BINARY)) AS b
FROM doc;

-- name: elt_field
SELECT id, ELT(id % 3 + 1, 'one', 'two', 'three') AS e, FIND_IN_SET('red', tags) AS f, LEVENSHTEIN(title, 'the quick') AS lev, SOUNDEX(title) AS sx
FROM doc;

-- name: more_string_functions
SELECT id, INITCAP(title) AS i, OCTET_LENGTH(title) AS bytes_, BIT_LENGTH(title) AS bits_, TRANSLATE(title, 'abc', 'xy') AS t,
       OVERLAY(title PLACING '__' FROM 2) AS o, SPACE(3) AS blank, ASCII(title) AS first_code, CHR(65 + id) AS letter
FROM doc;

-- name: split_parts
SELECT id, SPLIT_PART(tags, ',', 2) AS second_, SPLIT_PART(tags, ',', -1) AS last_, SIZE(SPLIT(tags, ',')) AS n, HEX(title) AS hx
FROM doc;
