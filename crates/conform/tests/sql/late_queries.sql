-- A query in FROM is stored when the loop over it begins: not where no row is around it.
CREATE TABLE e(x);
CREATE TABLE t(a, b);
INSERT INTO t VALUES (1, 10), (2, 20), (2, -9223372036854775807 - 1);
SELECT * FROM e JOIN (SELECT DISTINCT a, abs(b) FROM t) j ON j.a = e.x;
SELECT * FROM e LEFT JOIN (SELECT a, sum(abs(b)) FROM t GROUP BY a) j ON j.a = e.x;
SELECT count(*) FROM t LEFT JOIN (SELECT DISTINCT a, abs(b) FROM t) j ON j.a = t.b WHERE t.a = 3;
SELECT count(*) FROM t CROSS JOIN (SELECT DISTINCT a, abs(b) FROM t) j WHERE t.a = 2;
SELECT * FROM e RIGHT JOIN (SELECT a, count(*) FROM t GROUP BY a) j ON j.a = e.x ORDER BY 2;
SELECT * FROM e FULL JOIN (SELECT a, count(*) FROM t GROUP BY a) j ON j.a = e.x LEFT JOIN (SELECT DISTINCT a FROM t) k ON k.a = j.a ORDER BY 2;
WITH c AS MATERIALIZED (SELECT a, count(*) n FROM t GROUP BY a) SELECT t.b, x.n, y.n, (SELECT max(n) FROM c) FROM t LEFT JOIN c x ON x.a = t.a AND t.b > 10 LEFT JOIN c y ON y.a = x.a ORDER BY 1;
WITH c AS MATERIALIZED (SELECT a, count(*) n FROM t GROUP BY a) SELECT (SELECT max(n) FROM c), x.n FROM t CROSS JOIN c x WHERE t.b = 20;
SELECT t.b, (SELECT count(*) FROM e CROSS JOIN (SELECT DISTINCT a FROM t) j WHERE j.a = t.a), (SELECT count(*) FROM t u CROSS JOIN (SELECT DISTINCT a FROM t) j WHERE j.a = t.a) FROM t;
UPDATE t SET b = j.s FROM (SELECT a, sum(b) s FROM t WHERE b > 0 GROUP BY a) j WHERE j.a = t.a;
SELECT * FROM t;
DELETE FROM t WHERE a IN (SELECT j.a FROM e JOIN (SELECT DISTINCT a, abs(b) FROM t) j);
SELECT count(*) FROM t;
SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT b FROM t) WHERE a % 2 = 0 AND a + 1 > 2;
