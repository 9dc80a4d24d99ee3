-- The affinity of a recursive query's column comes from all of its arms.
WITH RECURSIVE c(x, n) AS (SELECT CAST('1' AS TEXT), 0 UNION ALL SELECT 2, n + 1 FROM c WHERE n < 2) SELECT x, typeof(x), x = 2, x = '2', x = '1' FROM c;
WITH RECURSIVE c(x, n) AS (SELECT CAST('1' AS TEXT), 0 UNION ALL SELECT x || 'a', n + 1 FROM c WHERE n < 2 AND x < 5) SELECT x, typeof(x), x = 1 FROM c;
CREATE TABLE t(i INT, s TEXT, r REAL, b);
INSERT INTO t VALUES (1, '1', 1.5, x'31'), (2, '2', 2.5, '2'), (3, 'x', 3.5, 3);
WITH RECURSIVE c(x, n) AS (SELECT i, 0 FROM t WHERE i = 1 UNION ALL SELECT t.s, n + 1 FROM c, t WHERE t.i = n + 2) SELECT x, typeof(x), x = '1', x = 2, x = '2' FROM c;
WITH RECURSIVE c(x, n) AS (SELECT s, 0 FROM t WHERE i = 1 UNION SELECT t.i, n + 1 FROM c, t WHERE t.i = n + 2 AND c.x <> 9) SELECT x, typeof(x), x = '1', x = 1, x = 2, x IN (2, 3), x IN ('2', '3') FROM c;
WITH RECURSIVE c(x, n) AS (SELECT 1, 0 UNION ALL SELECT t.s, n + 1 FROM c, t WHERE t.i = n + 1 AND c.x = '1') SELECT x, typeof(x), x = 1, x = '1' FROM c;
WITH a(v) AS (SELECT s FROM t), RECURSIVE_(x) AS (SELECT 1),  c(x, n) AS (SELECT v, 0 FROM a WHERE v = '1' UNION ALL SELECT n, n + 1 FROM c, a WHERE n < 1 AND a.v = '2') SELECT x, typeof(x), x = 0, x = '0' FROM c;
