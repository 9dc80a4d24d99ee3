-- An UPDATE of few of many columns makes the new record out of the old one.
CREATE TABLE wide(id INTEGER PRIMARY KEY, a, b INT, c REAL, d TEXT, e BLOB, f NOT NULL DEFAULT 'f', g, p DEFAULT 1, q DEFAULT 2.5, r DEFAULT 'r', s, t, u, v, w DEFAULT -1);
CREATE INDEX wide_d ON wide(d);
INSERT INTO wide(id, a, b, c, d, e, f, g) VALUES (1, 'one', 1, 1, 'd1', x'01', 'f1', NULL), (2, NULL, -300, 2.5, 'd2', zeroblob(3), 'f2', 'last'), (70000, 1e300, 1 << 40, 3, 'd3', '', 'f3', 9);
UPDATE wide SET b = b + 1;
UPDATE wide SET c = 7, a = 'a longer text than before' WHERE id = 1;
UPDATE wide SET c = '2.25', g = zeroblob(2) WHERE d = 'd2';
UPDATE wide SET b = '12', c = '9' WHERE rowid = 70000;
UPDATE wide SET a = b, b = a WHERE id = 1;
SELECT *, typeof(b), typeof(c) FROM wide ORDER BY id;
SELECT id FROM wide WHERE d = 'd2';
UPDATE wide SET f = NULL;
UPDATE OR IGNORE wide SET f = CASE id WHEN 2 THEN NULL ELSE 'new' END, a = 0;
UPDATE OR REPLACE wide SET f = NULL, a = 1 WHERE id = 2;
SELECT id, a, f FROM wide;
-- Rows that are older than a column.
ALTER TABLE wide ADD COLUMN h DEFAULT 'eight';
ALTER TABLE wide ADD COLUMN i REAL DEFAULT 5;
ALTER TABLE wide ADD COLUMN j;
UPDATE wide SET i = i + 1 WHERE id = 1;
UPDATE wide SET a = 'again' WHERE id = 2;
SELECT id, a, h, i, j, typeof(i) FROM wide;
-- Values that leave the page, that stay and that change, first and last.
UPDATE wide SET a = replace(hex(zeroblob(5000)), '00', 'ab') WHERE id = 1;
UPDATE wide SET b = 4 WHERE id = 1;
UPDATE wide SET j = zeroblob(40000) WHERE id = 1;
UPDATE wide SET h = 'h' WHERE id = 1;
SELECT id, length(a), substr(a, 9990), b, h, length(j) FROM wide WHERE id = 1;
UPDATE wide SET a = 'short', j = 'short' WHERE id = 1;
SELECT id, a, b, c, d, hex(e), f, g, h, i, j FROM wide;
-- Conditions, types, other statements that update.
CREATE TABLE firm(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL, d ANY, e INT, f INT, g INT, h INT, i REAL DEFAULT 4, j ANY DEFAULT 'j', CHECK (a < 10), CHECK (length(b) < 5)) STRICT;
INSERT INTO firm(k, a, b, c, d) VALUES (1, 1, 'b', 1, x'00'), (2, 2, 'bb', 2, 'd');
UPDATE firm SET c = 3;
UPDATE firm SET c = 'x';
UPDATE firm SET d = 4, c = k WHERE k = 2;
UPDATE firm SET a = 10 WHERE k = 1;
UPDATE firm SET b = 'bbb' WHERE k = 1;
INSERT INTO firm(k, c) VALUES (2, 8) ON CONFLICT DO UPDATE SET c = excluded.c + c, d = NULL;
INSERT INTO firm(k, c) VALUES (1, 8) ON CONFLICT DO UPDATE SET a = 99;
UPDATE firm SET d = x.d FROM (SELECT k, b || 'x' AS d FROM firm) AS x WHERE x.k = firm.k RETURNING k, d;
UPDATE firm SET d = x.n FROM (SELECT k, count(*) AS n FROM firm GROUP BY k) AS x WHERE x.k = firm.k;
SELECT *, typeof(c), typeof(d) FROM firm;
-- Whoever asks for the whole row gets it.
CREATE TABLE heard(a, b, c, d, e AS (a || d), f);
CREATE TABLE said(t);
CREATE TRIGGER hear AFTER UPDATE ON heard BEGIN INSERT INTO said VALUES (old.a || new.a || new.d || new.e); END;
INSERT INTO heard(a, b, c, d, f) VALUES (1, 2, 3, 4, 5);
UPDATE heard SET a = 6;
UPDATE heard SET f = 7 RETURNING *;
SELECT * FROM said;
PRAGMA integrity_check;
