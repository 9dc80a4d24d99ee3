-- Rows go into the new table as they are found.
CREATE TABLE a(x INTEGER, y TEXT, z);
INSERT INTO a VALUES(1, 'one', 1.5), (2, 'two', x'00'), (3, NULL, NULL);
CREATE TABLE b AS SELECT x, y || '!' AS y, CAST(x AS TEXT) AS t, x + 1 AS n FROM a;
SELECT *, typeof(x), typeof(y), typeof(t), typeof(n) FROM b;
SELECT sql FROM sqlite_schema WHERE name = 'b';
-- One that reads the schema table finds the place that is reserved there.
CREATE TABLE s AS SELECT type, name, tbl_name, sql FROM sqlite_schema;
SELECT * FROM s;
CREATE TABLE c AS SELECT count(*) AS n FROM sqlite_schema;
SELECT n FROM c;
SELECT name, rowid FROM sqlite_schema;
-- One that fails leaves nothing.
CREATE TABLE d AS SELECT abs(x) FROM (SELECT 1 AS x UNION ALL SELECT -9223372036854775807 - 1);
SELECT count(*) FROM sqlite_schema WHERE name IS NULL OR name = 'd';
CREATE TABLE d AS SELECT * FROM a ORDER BY x DESC LIMIT 2;
SELECT rowid, * FROM d;
CREATE TABLE e AS SELECT * FROM a UNION SELECT * FROM d;
SELECT count(*) FROM e;
CREATE TEMP TABLE f AS SELECT DISTINCT typeof(z) AS k, count(*) AS n FROM main.a GROUP BY k;
SELECT * FROM f;
CREATE TABLE IF NOT EXISTS d AS SELECT 1;
BEGIN;
CREATE TABLE g AS SELECT * FROM a;
ROLLBACK;
SELECT count(*) FROM sqlite_schema WHERE name = 'g';
PRAGMA integrity_check;
