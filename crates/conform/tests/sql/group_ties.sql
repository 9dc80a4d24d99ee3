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
