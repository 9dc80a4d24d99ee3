-- The row that was to be inserted is one of values: no query's rows, and without a rowid of its own.
CREATE TABLE t(a INTEGER PRIMARY KEY, b);
CREATE TABLE log(x);
INSERT INTO t VALUES (1, 1);
INSERT INTO log VALUES (5), (6);
INSERT INTO t VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = (SELECT max(excluded.b) FROM log);
INSERT INTO t VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = (SELECT sum(excluded.b + x) FROM log);
SELECT * FROM t;
INSERT INTO t VALUES (1, 7) ON CONFLICT (a) DO UPDATE SET b = rowid + excluded.rowid, rowid = rowid + 1;
SELECT * FROM t;
INSERT INTO t AS q VALUES (2, 7) ON CONFLICT (a) DO UPDATE SET b = q.b || excluded.b RETURNING *;
INSERT INTO t AS q VALUES (2, 7) ON CONFLICT (a) DO UPDATE SET b = 1 RETURNING q.b;
INSERT INTO t VALUES (8, 1) RETURNING sum(b);
INSERT INTO t VALUES (8, 1) RETURNING (SELECT sum(b)), (SELECT max(t.a) FROM log), (SELECT count(x) FROM log);
-- The table itself in FROM: only under the same alias, or where both have none.
UPDATE t SET b = 1 FROM t;
UPDATE t SET b = 1 FROM t AS t;
UPDATE t AS u SET b = 1 FROM t AS u;
UPDATE t AS u SET b = 2 FROM t;
UPDATE t SET b = t.b FROM t;
SELECT changes();
EXPLAIN QUERY PLAN INSERT INTO t VALUES (90, 1);
SELECT changes();
