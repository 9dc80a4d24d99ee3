-- The last row known is the last of all: values that waited for later rows are decided then.
CREATE TABLE t(id INTEGER PRIMARY KEY, v INT);
WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 700) INSERT INTO t SELECT i, i % 7 FROM s;
SELECT count(*), count(y), max(id) FROM (SELECT id, lead(id) OVER (ORDER BY id) AS y FROM t WHERE id <= 64);
SELECT max(n), count(*) FROM (SELECT id AS n, (SELECT count(y) FROM (SELECT lead(id) OVER (ORDER BY id) AS y FROM t AS u WHERE u.id <= t.id)) AS c FROM t) WHERE c = n - 1;
SELECT max(n), count(*) FROM (SELECT id AS n, (SELECT count(y) FROM (SELECT last_value(id) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS y FROM t AS u WHERE u.id <= t.id)) AS c FROM t) WHERE c = n;
SELECT max(n), count(*) FROM (SELECT id AS n, (SELECT max(y) FROM (SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND UNBOUNDED FOLLOWING) AS y FROM t AS u WHERE u.id <= t.id)) AS c FROM t) WHERE c = n;
-- Of several windows, and of partitions that come one after the other.
SELECT max(n), count(*) FROM (SELECT id AS n, (SELECT count(y) + count(z) FROM (SELECT lead(id) OVER (ORDER BY id) AS y, rank() OVER (ORDER BY id) AS z FROM t AS u WHERE u.id <= t.id)) AS c FROM t) WHERE c = 2 * n - 1;
SELECT max(n), count(*) FROM (SELECT id AS n, (SELECT count(z) FROM (SELECT lead(id) OVER (PARTITION BY id / 100 ORDER BY id) AS y, 1 AS z FROM t AS u WHERE u.id <= t.id)) AS c FROM t WHERE id % 32 = 0 OR id < 100) WHERE c = n;
