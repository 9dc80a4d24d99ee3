CREATE TABLE t(a INTEGER PRIMARY KEY, g, b);
INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 1, 'c'), (4, 2, 'd'), (5, 2, 'e'), (6, 3, 'f'), (7, NULL, 'g'), (8, NULL, 'h');
SELECT a, nth_value(b, 2) OVER (ORDER BY g EXCLUDE CURRENT ROW), nth_value(b, 3) OVER (ORDER BY g EXCLUDE TIES), nth_value(b, 2) OVER (ORDER BY g EXCLUDE GROUP) FROM t;
SELECT a, nth_value(b, 2) OVER w, first_value(b) OVER w, last_value(b) OVER w FROM t WINDOW w AS (ORDER BY a ROWS BETWEEN 2 FOLLOWING AND 4 FOLLOWING EXCLUDE CURRENT ROW);
SELECT a, nth_value(b, 1) OVER w, first_value(b) OVER w, last_value(b) OVER w FROM t WINDOW w AS (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 PRECEDING EXCLUDE TIES);
SELECT a, nth_value(b, 4) OVER w, first_value(b) OVER w, last_value(b) OVER w FROM t WINDOW w AS (ORDER BY g GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE TIES);
SELECT a, nth_value(b, 1) OVER w, first_value(b) OVER w, last_value(b) OVER w, group_concat(b) OVER w FROM t WINDOW w AS (ORDER BY a ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING EXCLUDE GROUP);
SELECT a, nth_value(b, a) OVER (ORDER BY a), nth_value(b, 9 - a) OVER (ORDER BY a DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) FROM t;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT count(x), max(x) FROM (SELECT nth_value(i, 20000) OVER (ORDER BY i) AS x FROM n);
