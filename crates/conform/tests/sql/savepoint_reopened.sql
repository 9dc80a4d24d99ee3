-- Savepoints that were gone before the first change do not come back with it: a statement that fails, or a later savepoint, takes back no more than its own.
CREATE TABLE t(id INTEGER PRIMARY KEY, a);
CREATE TABLE u(id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4);
INSERT INTO u VALUES (1), (2), (3);
SAVEPOINT outermost;
SAVEPOINT inner;
ROLLBACK TO outermost;
DELETE FROM t WHERE id % 2 = 0;
UPDATE u SET id = id + 1 WHERE id % 2;
SELECT group_concat(id) FROM t;
ROLLBACK TO outermost;
SELECT group_concat(id) FROM t;
RELEASE outermost;
-- The same where the database was already locked for writing.
SAVEPOINT outermost;
SAVEPOINT inner;
DELETE FROM t WHERE false;
ROLLBACK TO outermost;
DELETE FROM t WHERE id % 2 = 0;
SAVEPOINT later;
INSERT INTO t VALUES (5, 5);
ROLLBACK TO later;
SELECT group_concat(id) FROM t;
COMMIT;
SELECT group_concat(id) FROM t;
