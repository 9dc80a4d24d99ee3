CREATE TABLE t(a INT, b INT, c TEXT, n INT NOT NULL);
CREATE INDEX tab ON t(a, b);
CREATE INDEX tb ON t(b);
CREATE TABLE u(id INTEGER PRIMARY KEY, x INT, y INT);
CREATE INDEX ux ON u(x);
CREATE TABLE w(k INTEGER, x INT, y INT, PRIMARY KEY(k)) WITHOUT ROWID;
CREATE VIEW v(p, q) AS SELECT a, b FROM t UNION ALL SELECT x, y FROM u;
CREATE VIEW vv(p, q) AS SELECT * FROM v UNION ALL SELECT x, y FROM w;

-- UNION ALL in FROM.
SELECT * FROM v WHERE p = 5
SELECT * FROM vv WHERE p = 5
SELECT * FROM v ORDER BY p
SELECT * FROM v ORDER BY p LIMIT 5
SELECT * FROM v ORDER BY p + 1
SELECT * FROM v LIMIT 5
SELECT * FROM v JOIN u ON v.p = u.id
SELECT * FROM u LEFT JOIN v ON v.p = u.id
SELECT DISTINCT p FROM v
SELECT p, (SELECT max(y) FROM u WHERE x = p) FROM v WHERE p IN (SELECT x FROM w)
SELECT * FROM (SELECT a FROM t UNION ALL SELECT c FROM t)
SELECT * FROM (SELECT a FROM t UNION ALL SELECT x FROM u LIMIT 3)
SELECT count(*) FROM v
SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT x FROM u)
-- LIMIT in FROM.
SELECT a FROM (SELECT a FROM t ORDER BY b LIMIT 5)
SELECT abs(a) FROM (SELECT a FROM t ORDER BY b LIMIT 5)
SELECT a FROM (SELECT a FROM t ORDER BY c LIMIT 5 OFFSET 1)
SELECT a FROM (SELECT a FROM t LIMIT 5) WHERE a > 3
-- The order of a query in FROM.
SELECT * FROM (SELECT a, b FROM t UNION SELECT x, y FROM u) ORDER BY 2
SELECT * FROM (SELECT a, count(*) FROM t GROUP BY a ORDER BY a) ORDER BY 1
SELECT * FROM (SELECT DISTINCT c FROM t ORDER BY c DESC LIMIT 7) ORDER BY 1 DESC
SELECT * FROM (SELECT DISTINCT c FROM t ORDER BY c DESC LIMIT 7) ORDER BY 1
SELECT * FROM u, (SELECT a, b FROM t ORDER BY a DESC, b LIMIT 7) AS q ORDER BY q.a DESC
-- NULLs.
SELECT * FROM t ORDER BY n NULLS LAST
SELECT * FROM t ORDER BY a NULLS LAST
SELECT * FROM t ORDER BY a DESC NULLS FIRST, b DESC
SELECT * FROM t ORDER BY a NULLS LAST, b NULLS LAST
SELECT * FROM t WHERE a = 5 ORDER BY b NULLS LAST
SELECT * FROM t WHERE a > 5 ORDER BY a NULLS LAST
SELECT b FROM t WHERE b IS NOT NULL
SELECT b FROM t WHERE b IS NOT NULL OR a = 3
SELECT n FROM t WHERE n IS NULL
SELECT a FROM t WHERE n IS NOT NULL
SELECT min(b) FROM t
-- DISTINCT in aggregates.
SELECT count(DISTINCT a) FROM t
SELECT count(DISTINCT a), max(b) FROM t
SELECT a, count(DISTINCT b) FROM t GROUP BY a
SELECT a, count(DISTINCT c) FROM t GROUP BY a
SELECT id, count(DISTINCT y) FROM u GROUP BY id
SELECT sum(DISTINCT b) FROM t WHERE a = 5
-- Joins.
SELECT * FROM u JOIN w ON u.y = w.x
SELECT * FROM u LEFT JOIN w ON u.y = w.x
SELECT * FROM w RIGHT JOIN u ON w.y = u.x
SELECT * FROM t FULL JOIN u ON t.b = u.id
SELECT * FROM t CROSS JOIN u JOIN w ON w.x
SELECT * FROM t JOIN u ON t.c = u.id WHERE t.c = 'x'
SELECT * FROM t WHERE a = b AND b = 5
-- Likelihood.
SELECT * FROM t WHERE likely(a = 5)
SELECT * FROM u WHERE likely(id = 5)
SELECT * FROM t WHERE unlikely(a = 5) AND b = 3
SELECT * FROM t WHERE a = 5 AND likelihood(b = 3, 0.001)
SELECT * FROM t FULL JOIN u ON t.b = u.id JOIN w ON w.k = u.x WHERE t.a > 2
SELECT * FROM t LEFT JOIN u ON t.b = u.id JOIN w ON w.k = u.x

-- What is sought by a key before all else is not read as a whole for the sake of an order.
SELECT t.c, u.y FROM u LEFT JOIN t ON t.c = u.y WHERE u.id IN (3, 5) ORDER BY u.x
SELECT u.x, count(*) FROM u LEFT JOIN t ON t.c = u.y WHERE u.id IN (3, 5) GROUP BY u.x

-- A range with two ends leaves so little that no whole index is read for its order.
SELECT (SELECT count(DISTINCT x) FROM u WHERE id BETWEEN t.a AND t.b) FROM t
SELECT (SELECT x FROM u WHERE id > t.a AND id < t.b ORDER BY x) FROM t
SELECT (SELECT x FROM u WHERE id > t.a ORDER BY x) FROM t

-- A common table expression is stored once if it is used in several places, of nested queries as well; conditions go into one that is not.
WITH x AS (SELECT b, count(*) AS m FROM t GROUP BY b) SELECT * FROM x WHERE m > (SELECT avg(m) FROM x)
WITH x AS (SELECT b, count(*) AS m FROM t GROUP BY b) SELECT * FROM x WHERE b = 5
WITH x AS (SELECT b, count(*) AS m FROM t GROUP BY b) SELECT (SELECT m FROM x WHERE b = u.x), (SELECT max(m) FROM x) FROM u
WITH RECURSIVE p(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM p WHERE i < 100) SELECT i FROM p WHERE NOT EXISTS (SELECT 1 FROM p q WHERE q.i < p.i AND p.i % q.i = 0)

-- What is to be in a set goes into the arms of a compound that find rows by it.
SELECT * FROM v WHERE p IN (SELECT k FROM w WHERE x < 5)
SELECT * FROM v WHERE p IN (SELECT k FROM w WHERE x < 5) OR p = 7
SELECT * FROM v WHERE p NOT IN (SELECT k FROM w WHERE x < 5)
SELECT * FROM (SELECT a, b FROM t UNION SELECT x, y FROM u) WHERE b IN (SELECT k FROM w)
SELECT * FROM (SELECT b, count(*) AS m FROM t GROUP BY b) WHERE b IN (SELECT k FROM w WHERE x < 5)
