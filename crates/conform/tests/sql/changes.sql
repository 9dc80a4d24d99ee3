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
