-- Joins by rowid where the inner tables' filters are asked at the head of the outer loop: keys of every kind.
CREATE TABLE fact(n INTEGER PRIMARY KEY, a, b TEXT, c REAL, d INTEGER);
CREATE TABLE one(id INTEGER PRIMARY KEY, kind TEXT);
CREATE TABLE two(id INTEGER PRIMARY KEY, kind TEXT);
WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 900) INSERT INTO fact SELECT i, CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN CAST(i % 40 AS TEXT) WHEN 2 THEN i % 40 + 0.0 WHEN 3 THEN i % 40 + 0.5 WHEN 4 THEN x'31' WHEN 5 THEN ' 7 ' WHEN 6 THEN 'x' ELSE i % 40 END, i % 50, i % 60, i * 1000003 FROM k;
WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 40) INSERT INTO one SELECT i, CASE WHEN i % 4 = 0 THEN 'few' ELSE 'many' END FROM k;
WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 60) INSERT INTO two SELECT i - 5, CASE WHEN i % 7 = 0 THEN 'few' ELSE 'many' END FROM k;
-- A column that older records do not have.
ALTER TABLE fact ADD COLUMN e INTEGER DEFAULT 7;
INSERT INTO fact(n, e) VALUES (1001, 8), (1002, 7), (1003, NULL);
ANALYZE;
SELECT count(*), sum(n), min(id), max(id) FROM fact, one WHERE a = id AND kind = 'few';
SELECT count(*), sum(n), min(id), max(id) FROM fact, one WHERE b = id AND kind = 'few';
SELECT count(*), sum(n), min(id), max(id) FROM fact, two WHERE c = id AND kind = 'few';
SELECT count(*), sum(n) FROM fact, one WHERE e = id AND kind = 'few';
SELECT count(*), sum(n) FROM fact, one WHERE e = id AND kind = 'many';
SELECT count(*), sum(n) FROM fact, one WHERE n = id AND kind = 'few';
-- Several at once, in either order of strictness, in both orders of the tables.
SELECT count(*), sum(n) FROM fact, one, two WHERE b = one.id AND c = two.id AND one.kind = 'few' AND two.kind = 'few';
SELECT count(*), sum(n) FROM fact, one, two WHERE b = one.id AND c = two.id AND one.kind = 'many' AND two.kind = 'few';
SELECT count(*), sum(n) FROM fact, two, one WHERE b = one.id AND c = two.id AND one.kind = 'few' AND two.kind = 'many';
SELECT count(*), sum(n) FROM fact, one, two WHERE b = one.id AND c = two.id AND one.kind = 'none' AND two.kind = 'few';
-- Far apart, with negative ones.
CREATE TABLE far(id INTEGER PRIMARY KEY, kind TEXT);
INSERT INTO far SELECT d, CASE WHEN n % 3 THEN 'few' ELSE 'many' END FROM fact WHERE d % 5 = 0;
INSERT INTO far SELECT -d, 'few' FROM fact WHERE d % 25 = 0;
INSERT INTO far VALUES (-9223372036854775808, 'few'), (9223372036854775807, 'few');
UPDATE fact SET d = -d WHERE n % 50 = 0;
UPDATE fact SET d = 9223372036854775807 WHERE n = 17;
UPDATE fact SET d = -9223372036854775808 WHERE n = 18;
ANALYZE;
SELECT count(*), sum(n) FROM fact, far WHERE d = id AND kind = 'few';
SELECT count(*), sum(n) FROM fact, far WHERE d = id AND kind = 'many';
-- In a query that is run for each row of another, and of a row that has no partner.
SELECT id, (SELECT count(*) FROM fact, two WHERE b = two.id AND two.kind = 'few' AND fact.c < one.id) FROM one WHERE id < 4;
SELECT count(*), count(two.id) FROM fact LEFT JOIN two ON b = two.id AND two.kind = 'few';
-- A column compared twice in a row is read once; what lies between may read others.
SELECT count(*) FROM fact WHERE c BETWEEN 10 AND 20 AND b BETWEEN '2' AND '3';
SELECT count(*) FROM fact WHERE b > 20 AND b < '3' AND c > 5;
SELECT count(*) FROM fact WHERE a >= 7 AND a <= '7' AND n > 9 AND a < 8;
-- More columns than are looked for one by one.
CREATE TABLE wide(id INTEGER PRIMARY KEY, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18);
WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 200) INSERT INTO wide SELECT i, i % 2, i, i * 1000, i * 100000, i * 10000000, i * 1000000000000, i / 2.0, 'text' || i, CASE WHEN i % 10 = 0 THEN printf('%.*c', 200, 'x') ELSE 'y' END, NULL, 0, 1, i % 3, x'00ff', -i, i, 'seventeen', i % 5 FROM k;
SELECT sum(c1), sum(c2), sum(c3), sum(c4), sum(c5), sum(c6), sum(c7), max(c8), sum(length(c9)), count(c10) FROM wide;
SELECT sum(c11), sum(c12), sum(c13), max(c14), sum(c15), sum(c16), max(c17), sum(c18) FROM wide;
SELECT sum(c18), sum(c2) FROM wide WHERE c16 BETWEEN 20 AND 60 AND c13 = 1 AND c18 <> 2;
