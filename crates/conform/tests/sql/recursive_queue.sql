-- A recursive query delivers rows in the order in which they were made.
WITH RECURSIVE n(i, s) AS (SELECT 1, 'x' UNION ALL SELECT i * 2 + d.column1, s || i FROM n, (VALUES (0), (1)) d WHERE i < 600) SELECT count(*), sum(i), group_concat(i) FROM n;
WITH RECURSIVE n(i) AS (VALUES (1), (500) UNION SELECT (i * 7 + k.column1) % 997 FROM n, (VALUES (1), (3), (5)) k) SELECT count(*), group_concat(i) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5 OFFSET 3) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i * 10 + k.column1 FROM n, (VALUES (1), (2), (3)) k WHERE i < 1000 LIMIT 20 OFFSET 90) SELECT * FROM n;
WITH RECURSIVE n(i, t) AS (SELECT 1, zeroblob(3000) UNION ALL SELECT i + 1, t FROM n WHERE i < 20) SELECT i, length(t) FROM n WHERE i % 5 = 0;
WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a WHERE i < 3), b(i, j) AS (SELECT i, 0 FROM a UNION ALL SELECT i, j + 1 FROM b WHERE j < 2) SELECT * FROM b;
SELECT v.column1, (WITH RECURSIVE n(i) AS (SELECT v.column1 UNION ALL SELECT i - 1 FROM n WHERE i > 0) SELECT group_concat(i) FROM n) FROM (VALUES (3), (0), (5)) v;
