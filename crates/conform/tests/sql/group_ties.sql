CREATE TABLE t(a, b);
INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (2, 2), (5, 2), (5, 3);
SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*) DESC;
SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*);
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*) DESC;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*) DESC, a > 0;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*), a > 0 DESC;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*), 1 DESC LIMIT 3;
-- DISTINCT over what is the same in every row, NULL too.
SELECT count(DISTINCT NULL), count(DISTINCT CAST(NULL AS INTEGER)), count(DISTINCT -CAST(NULL AS REAL)), count(DISTINCT 5), count(DISTINCT 'a' || NULL) FROM (SELECT 1 UNION ALL SELECT 2);
CREATE TABLE dc(a, b);
INSERT INTO dc VALUES (1, 2), (1, 3), (2, 4);
SELECT a, count(DISTINCT NULL), count(DISTINCT 7), sum(DISTINCT 7), group_concat(DISTINCT 'x'), sum(DISTINCT NULL) FROM dc GROUP BY a;
SELECT count(DISTINCT NULL), count(DISTINCT 7), sum(DISTINCT NULL), total(DISTINCT NULL) FROM dc;
-- A LIMIT: the groups' own order decides among those that are equal, though they are not sorted by it.
CREATE TABLE gl(k TEXT COLLATE NOCASE, n, v);
WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 60) INSERT INTO gl SELECT CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN char(65 + i % 7) WHEN 2 THEN char(97 + i % 7) ELSE i % 3 END, CASE i % 3 WHEN 0 THEN i % 5 WHEN 1 THEN i % 5 + 0.0 ELSE x'01' END, i FROM s;
SELECT k, count(*) FROM gl GROUP BY k ORDER BY count(*) DESC LIMIT 4;
SELECT count(*), k FROM gl GROUP BY k ORDER BY count(*) DESC, 'x' LIMIT 4 OFFSET 2;
SELECT k, n, count(*), max(v) FROM gl GROUP BY k, n ORDER BY 3 DESC LIMIT 7;
SELECT k, n, count(*), v FROM gl GROUP BY n, k ORDER BY count(*), n IS NULL DESC LIMIT 7 OFFSET 3;
SELECT count(*) FROM gl GROUP BY k, n HAVING count(*) > 1 ORDER BY count(*) LIMIT 5;
SELECT k COLLATE BINARY, min(v) FROM gl GROUP BY k COLLATE BINARY ORDER BY count(*) DESC LIMIT 6;
SELECT (SELECT k || n FROM gl WHERE v > o.v GROUP BY k, n ORDER BY count(*) DESC LIMIT 1), v FROM gl o WHERE v % 9 = 0;
SELECT v + 1, group_concat(n) FROM gl GROUP BY v % 5, v % 2 ORDER BY count(*) DESC, v % 2 LIMIT 5;
SELECT DISTINCT count(*) FROM gl GROUP BY k, n ORDER BY count(*) DESC LIMIT 2;
SELECT k, count(*) FROM gl GROUP BY k ORDER BY k DESC LIMIT 3;
SELECT * FROM (SELECT k, count(*) AS c FROM gl GROUP BY k ORDER BY c DESC LIMIT 5) ORDER BY rowid IS NULL, c;
