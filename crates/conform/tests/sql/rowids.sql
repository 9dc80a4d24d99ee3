-- Rowids where the largest one is taken: those drawn at random go where they belong. Triggers insert, so that
-- last_insert_rowid() is the same in both engines.
CREATE TABLE go(n);
CREATE TABLE r(a, b);
INSERT INTO r(rowid, a) VALUES (9223372036854775807, 'top');
CREATE TABLE k(id INTEGER PRIMARY KEY, v UNIQUE);
INSERT INTO k VALUES (9223372036854775807, 1);
CREATE TABLE big(v);
INSERT INTO big(rowid, v) VALUES (9223372036854775807, zeroblob(5000));
CREATE TRIGGER go1 AFTER INSERT ON go WHEN new.n = 1 BEGIN INSERT INTO r(a) VALUES ('x'); INSERT INTO r(a) VALUES ('y'), ('z'); INSERT INTO r(rowid, a) SELECT NULL, 'w' FROM r; END;
CREATE TRIGGER go2 AFTER INSERT ON go WHEN new.n = 2 BEGIN INSERT INTO k(v) VALUES (2), (3); INSERT INTO k VALUES (NULL, 4), (NULL, 5); INSERT OR REPLACE INTO k(v) VALUES (3), (6); INSERT INTO k(v) VALUES (8) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER go3 AFTER INSERT ON go WHEN new.n = 3 BEGIN INSERT INTO big(v) VALUES (zeroblob(6000)), (zeroblob(7000)); END;
INSERT INTO go VALUES (1);
PRAGMA integrity_check;
SELECT count(*), count(DISTINCT rowid), max(rowid), min(rowid) > 0 FROM r;
SELECT count(*) FROM r x, r y WHERE x.rowid = y.rowid;
SELECT a FROM r ORDER BY rowid DESC LIMIT 1;
INSERT INTO go VALUES (2);
PRAGMA integrity_check;
SELECT v FROM k ORDER BY v;
SELECT count(*) FROM k x JOIN k y ON y.id = x.id;
INSERT INTO go VALUES (3);
SELECT length(v) FROM big ORDER BY length(v);
PRAGMA integrity_check;
CREATE TABLE seq(id INTEGER PRIMARY KEY AUTOINCREMENT, v);
INSERT INTO seq VALUES (9223372036854775807, 1);
INSERT INTO seq(v) VALUES (2);
