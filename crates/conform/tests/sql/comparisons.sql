-- An index with another collation does not serve a comparison, whatever the affinity.
CREATE TABLE n(b DATE PRIMARY KEY COLLATE NOCASE);
CREATE TABLE k(a);
INSERT INTO n VALUES ('A');
INSERT INTO k VALUES ('a');
SELECT * FROM k JOIN n ON k.a = n.b;
SELECT * FROM k JOIN n ON n.b = k.a;
-- An automatic index compares as the comparison does.
CREATE TABLE t1(a TEXT);
CREATE TABLE t2(x);
INSERT INTO t1 VALUES ('1');
INSERT INTO t2 VALUES (1), (NULL);
SELECT * FROM t2 CROSS JOIN t1 WHERE a = x;
CREATE TABLE r(a REAL);
CREATE TABLE i(x);
INSERT INTO r VALUES (9007199254740993), (1.5);
INSERT INTO i VALUES (9007199254740993), (9007199254740992);
SELECT * FROM i CROSS JOIN r WHERE a = x;
SELECT a IN (VALUES (9007199254740993)), a = 9007199254740993 FROM r ORDER BY 1;
-- A row of NULLs is not followed by rows whose key is NULL.
CREATE TABLE l(a, b);
CREATE TABLE m(a, c);
INSERT INTO l VALUES (1, NULL);
INSERT INTO m VALUES (1e10, NULL), (NULL, NULL);
SELECT m.a FROM l LEFT JOIN m ON l.b = m.c;
-- Of equal rows that look different, UNION shows its right side's, other sets the first.
CREATE TABLE e(a COLLATE RTRIM);
INSERT INTO e VALUES ('a '), ('z'), ('a'), ('z ');
SELECT a FROM e EXCEPT SELECT 5;
SELECT a FROM e INTERSECT SELECT a FROM e;
SELECT a FROM e UNION SELECT a || '  ' FROM e;
SELECT 1 UNION SELECT 1.0;
SELECT 1 UNION SELECT 1.0 UNION SELECT 1;
-- The last arm of a compound says how IN compares.
SELECT v IN (SELECT 'x' UNION SELECT c FROM (SELECT 3 AS c)) FROM (SELECT '3 ' AS v);
-- A NUL ends a number.
SELECT '12' || x'00' = 12, abs('3' || x'00'), typeof(CAST('12' || x'00' || '5' AS NUMERIC));
SELECT 2 IS TRUE COLLATE nocase, 'x' IS ((FALSE) COLLATE binary), 'x' IS NOT FALSE COLLATE nocase, 2 IS NOT likely(TRUE);
SELECT typeof(CAST('9500000000000002.0' AS NUMERIC)), typeof(CAST('2251799813685247.0' AS NUMERIC)), typeof(CAST('2251799813685248.0' AS NUMERIC)), typeof(CAST('-2251799813685248.0' AS NUMERIC));
SELECT 0 AND nosuch, (nosuch AND 0) AND 5, 1 IN () AND nosuch, 0 AND (SELECT nosuch);
SELECT 0 AND abs(nosuch);
CREATE TABLE ended(a PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;
INSERT INTO ended VALUES ('B' || char(0) || 'x'), ('b' || char(0) || 'abc'), ('b'), ('b' || char(0)), ('ba');
SELECT hex(a) FROM ended;
INSERT INTO ended VALUES ('b' || char(0) || 'Y');
SELECT count(*), hex(min(a)) FROM ended GROUP BY a COLLATE NOCASE;
SELECT DISTINCT hex(a) FROM (SELECT 'q' || char(0) || '1' COLLATE NOCASE AS a UNION SELECT 'Q' || char(0) || '2');
PRAGMA integrity_check;
