CREATE TABLE t(a, b);
INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (2, 2), (5, 2), (5, 3);
SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*) DESC;
SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*);
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*) DESC;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*) DESC, a > 0;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*), a > 0 DESC;
SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY count(*), 1 DESC LIMIT 3;
