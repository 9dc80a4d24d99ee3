-- NOT NULL: a default that REPLACE puts in counts for generated columns; what has no default fails first.
CREATE TABLE g(a DEFAULT '' NOT NULL, b AS (a), c);
REPLACE INTO g(a, c) VALUES (NULL, 1) RETURNING *;
CREATE TABLE h(x DEFAULT NULL NOT NULL, k PRIMARY KEY) WITHOUT ROWID;
REPLACE INTO h DEFAULT VALUES;
-- STRICT: columns computed when read are checked when they are computed, the others behind NOT NULL.
CREATE TABLE s(a REAL NOT NULL, d BLOB AS ('x')) STRICT;
INSERT INTO s DEFAULT VALUES;
CREATE TABLE s2(b ANY NOT NULL, c BLOB) STRICT;
INSERT INTO s2 VALUES (NULL, 'text');
-- Dates in a schema must not depend on the clock or the time zone.
CREATE TABLE d(a, CHECK (date(a) <> '2024'));
INSERT INTO d VALUES ('now');
INSERT INTO d VALUES ('2020-01-01');
CREATE INDEX di ON d(date(a, 'utc'));
-- UPDATE FROM: of several matches the last counts, rows change in the order of their keys.
CREATE TABLE u(a, b UNIQUE);
INSERT INTO u VALUES (1, 1), (2, 2);
UPDATE u SET a = x.column1 FROM (VALUES (7), (8)) AS x WHERE u.b = 2;
SELECT * FROM u ORDER BY b;
-- RETURNING sees the row before AFTER triggers run.
CREATE TABLE f(a);
CREATE TRIGGER ft AFTER INSERT ON f BEGIN SELECT RAISE(IGNORE); END;
INSERT INTO f VALUES (5) RETURNING rowid, a;
-- A trigger that inserts into the same table shares its sequence.
CREATE TABLE q(a, k INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TRIGGER qt AFTER INSERT ON q WHEN new.a > 0 BEGIN INSERT INTO q(a) VALUES (new.a - 1); END;
INSERT INTO q(a, k) VALUES (1, 18);
SELECT * FROM sqlite_sequence;
PRAGMA schema_version;
-- REPLACE looks again after the triggers that it fired.
CREATE TABLE z(a, b PRIMARY KEY, c);
CREATE TRIGGER zt BEFORE DELETE ON z BEGIN REPLACE INTO z VALUES (old.b, old.c, 'new'); UPDATE z SET c = old.c; END;
INSERT INTO z VALUES ('x', 5, '3132');
PRAGMA recursive_triggers = 1;
REPLACE INTO z VALUES ('y', 5, '00');
REPLACE INTO z VALUES ('0x10', '', '00');
SELECT * FROM z ORDER BY 1, 2;
-- A rowid's affinity holds in triggers, by whatever name.
CREATE TABLE w(a INTEGER, PRIMARY KEY (a));
CREATE TABLE wl(a);
CREATE TRIGGER wt AFTER INSERT ON w WHEN new.a BETWEEN ' 3' AND 20 BEGIN INSERT INTO wl VALUES (new.a); END;
INSERT INTO w VALUES (14);
SELECT * FROM wl;
-- Nobody looks at what an UPSERT would do where nothing can conflict.
CREATE TABLE p(a);
INSERT INTO p VALUES (1) ON CONFLICT DO UPDATE SET a = (SELECT b FROM nosuch);
CREATE TABLE c1(a UNIQUE ON CONFLICT ABORT, PRIMARY KEY (a) ON CONFLICT ROLLBACK);
-- A clause for conflicts that cannot be, or that another clause answers, is never looked at.
CREATE TABLE answered(a PRIMARY KEY, b);
INSERT INTO answered(a) VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT DO UPDATE SET b = (SELECT x FROM nosuch);
INSERT INTO answered(a) VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT (rowid) DO UPDATE SET nosuch = 1;
INSERT INTO answered(a) VALUES (1) ON CONFLICT DO UPDATE SET b = (SELECT x FROM nosuch);
SELECT * FROM answered;
-- Triggers of temp fire before the table's own, the oldest first; the table's own, the newest first.
CREATE TABLE fired(a);
CREATE TABLE fires(x);
CREATE TEMP TRIGGER t1 AFTER INSERT ON main.fired BEGIN INSERT INTO fires VALUES ('t1'); END;
CREATE TEMP TRIGGER t2 AFTER INSERT ON main.fired BEGIN INSERT INTO fires VALUES ('t2'); END;
CREATE TRIGGER m1 AFTER INSERT ON fired BEGIN INSERT INTO fires VALUES ('m1'); END;
CREATE TRIGGER m2 AFTER INSERT ON fired BEGIN INSERT INTO fires VALUES ('m2'); END;
INSERT INTO fired VALUES (1);
SELECT group_concat(x) FROM fires;
-- VACUUM makes the schema anew: tables, then indexes, then the rest; sqlite_sequence only where it is needed.
CREATE TABLE counted(k INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE INDEX of_fires ON fires(x);
CREATE TABLE later(a UNIQUE);
VACUUM;
SELECT group_concat(name) FROM sqlite_schema WHERE name IN ('counted', 'sqlite_sequence', 'of_fires', 'later', 'm1', 'sqlite_autoindex_later_1');
DROP TABLE counted;
VACUUM;
SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence';
PRAGMA recursive_triggers = 0;
CREATE TABLE numbered(a, b INTEGER PRIMARY KEY AUTOINCREMENT, c UNIQUE);
CREATE TRIGGER takes_numbers BEFORE INSERT ON numbered BEGIN INSERT OR IGNORE INTO numbered(a, c) VALUES ('t', 0); END;
INSERT INTO numbered(a, c) VALUES ('x', 1), ('y', 2);
SELECT * FROM numbered;
SELECT seq FROM sqlite_sequence WHERE name = 'numbered';
CREATE TABLE by_key(a, b UNIQUE, d PRIMARY KEY, UNIQUE (a)) WITHOUT ROWID;
INSERT INTO by_key VALUES (0, 10, x'ff'), (10, 100, x'61');
UPDATE by_key SET b = a WHERE EXISTS (VALUES (0));
UPDATE by_key SET b = a;
CREATE TEMP TABLE aside(x);
BEGIN;
CREATE TABLE beside_it(k PRIMARY KEY) WITHOUT ROWID;
SAVEPOINT s;
COMMIT;
BEGIN;
INSERT INTO aside VALUES (1);
INSERT INTO beside_it VALUES (1), (NULL);
COMMIT;
SELECT * FROM aside;
ROLLBACK;
PRAGMA recursive_triggers = 1;
CREATE TABLE held(a PRIMARY KEY ON CONFLICT REPLACE);
CREATE TABLE kept(b PRIMARY KEY, n DEFAULT 0);
CREATE TRIGGER on_replace DELETE ON held BEGIN INSERT OR IGNORE INTO kept(b, n) VALUES (1, old.rowid); END;
INSERT INTO held VALUES ('x'), ('y');
INSERT INTO held VALUES ('x');
INSERT INTO held VALUES ('y');
SELECT * FROM kept;
CREATE TABLE met(a UNIQUE, b, c, n UNIQUE);
CREATE INDEX met_nb ON met(n, b);
INSERT INTO met VALUES (1, 2, 3, 4), (5, 6, 7, 8);
CREATE TRIGGER before_met BEFORE UPDATE OF b ON met BEGIN UPDATE met SET n = n + 100, c = c + 1; END;
INSERT INTO met VALUES (1, 9, 9, 9) ON CONFLICT DO UPDATE SET b = excluded.c;
SELECT * FROM met;
PRAGMA integrity_check;

-- A row found by all columns of a unique index goes in the loop that finds it.
CREATE TABLE once(a, b, c, d, UNIQUE(a, b));
CREATE INDEX once_c ON once(c);
CREATE UNIQUE INDEX once_part ON once(d) WHERE d > 10;
INSERT INTO once VALUES (1, 1, 'x', 5), (1, 2, 'y', 11), (2, 1, 'x', 12), (NULL, 1, 'n', 13), (3, 3, 'z', 14);
DELETE FROM once WHERE a = 1 AND b = 2;
SELECT changes();
DELETE FROM once WHERE a = 1 AND b = 2;
SELECT changes();
DELETE FROM once WHERE d = 12 AND d > 10;
DELETE FROM once WHERE a = NULL AND b = 1;
DELETE FROM once WHERE a IS NULL AND b = 1 AND c = 'm';
DELETE FROM once WHERE a = 3 AND b IN (1, 2, 3) AND c = (SELECT max(c) FROM once);
SELECT * FROM once ORDER BY rowid;
SELECT c FROM once INDEXED BY once_c WHERE c > '' ORDER BY c;
PRAGMA integrity_check;
CREATE INDEX lost ON nowhere(a);
CREATE INDEX temp.lost ON nowhere(a);
CREATE INDEX main.lost ON nowhere(a);
