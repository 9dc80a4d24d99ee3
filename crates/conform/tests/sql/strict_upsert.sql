-- What ON CONFLICT clauses and triggers see of a STRICT table's REAL columns is real.
CREATE TABLE t(a INTEGER PRIMARY KEY, c REAL, d INT, e ANY, f REAL CHECK (f / 2 <> 1)) STRICT;
INSERT INTO t VALUES (1, 3, 3, 3, 5);
INSERT INTO t VALUES (1, 3, 3, 3, 5) ON CONFLICT (a) DO UPDATE SET c = excluded.c / 2, d = excluded.d / 2, e = excluded.e / 2, f = excluded.f / 4;
SELECT *, typeof(c), typeof(e) FROM t;
INSERT INTO t SELECT 1, 3, 3, 3, 5 WHERE 1 ON CONFLICT (a) DO UPDATE SET c = c + excluded.c / 2, e = excluded.c || 1 RETURNING *;
INSERT INTO t VALUES (2, 3, 1, 1, 3);
INSERT INTO t VALUES (3, 'x', 1, 1, 3);
INSERT INTO t VALUES (3, '7', 1, 1, 3) RETURNING c / 2, typeof(c);
UPDATE t SET c = 9, f = 7 WHERE a = 3 RETURNING c / 2, f / 2;
UPDATE t SET f = 2 WHERE a = 3;
UPDATE t SET f = 3 WHERE a = 3;
CREATE TABLE log(x, y);
CREATE TRIGGER before BEFORE INSERT ON t BEGIN INSERT INTO log VALUES (new.c / 2, typeof(new.c)); END;
CREATE TRIGGER after AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.c / 2, typeof(new.c)); END;
INSERT INTO t VALUES (4, 5, 1, 1, 3);
INSERT INTO t VALUES (4, 7, 1, 1, 3) ON CONFLICT DO UPDATE SET c = excluded.c / 2;
SELECT * FROM log;
SELECT a, c, f FROM t ORDER BY a;
