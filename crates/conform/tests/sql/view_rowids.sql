-- Rows of views have no rowid, in triggers neither.
CREATE TABLE t(a INTEGER PRIMARY KEY, b);
CREATE VIEW v AS SELECT a, b FROM t;
CREATE TRIGGER i INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.rowid, new.b); END;
INSERT INTO v VALUES (1, 2);
DROP TRIGGER i;
CREATE TRIGGER u INSTEAD OF UPDATE ON v WHEN old.oid > 1 BEGIN SELECT 1; END;
UPDATE v SET a = 1;
-- A recursive step whose row stands on the right of RIGHT and FULL JOIN.
CREATE TABLE a(x);
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a RIGHT JOIN r ON 1 WHERE i < 3) SELECT * FROM r;
WITH RECURSIVE r(i, j) AS (SELECT 1, 0 UNION ALL SELECT i + 1, x FROM a FULL JOIN r ON 0 WHERE i < 3 ORDER BY 1 DESC) SELECT * FROM r;
INSERT INTO a VALUES (1), (2), (7);
WITH RECURSIVE r(i, j) AS (SELECT 1, 0 UNION ALL SELECT i + 1, x FROM a FULL JOIN r ON 1 WHERE i < 3 ORDER BY 1 DESC) SELECT * FROM r;
-- Errors and answers of some pragmas.
PRAGMA foreign_key_check(nosuch);
PRAGMA integrity_check(nosuch);
PRAGMA quick_check(nosuch);
PRAGMA temp.synchronous;
PRAGMA temp.cache_size;
PRAGMA temp.cache_size = 50;
PRAGMA temp.cache_size;
SELECT * FROM pragma_optimize(2);
SELECT cache_spill > 0 FROM pragma_cache_spill WHERE schema = 'main';
SELECT 1__0;
SELECT 1_;
