-- Windows, groups and what is sorted by expressions come in the order of the database's encoding.
PRAGMA encoding = 'UTF-16le';
CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT, n TEXT COLLATE NOCASE);
INSERT INTO t VALUES (1, 'a', 'a'), (2, '～a', '～a'), (3, 'A', 'A'), (4, '𐐀a', '𐐀a'), (5, 'é', 'é'), (6, 'ab', 'AB'), (7, 'a～', 'a～');
SELECT id, row_number() OVER (ORDER BY b || '', id), count(*) OVER (PARTITION BY b || '') FROM t ORDER BY id;
SELECT id, count(*) OVER (PARTITION BY b || '') FROM t;
SELECT id, rank() OVER (PARTITION BY n || '' ORDER BY id), first_value(id) OVER (ORDER BY n || '' DESC) FROM t;
SELECT y FROM (SELECT b || '' AS y, row_number() OVER (PARTITION BY b || '') FROM t) WHERE y > 'a';
SELECT y FROM (SELECT first_value(b || '') OVER (PARTITION BY id) AS y FROM t) WHERE y > 'a' ORDER BY y;
SELECT DISTINCT first_value(b || '') OVER (PARTITION BY id) AS y FROM t ORDER BY y;
SELECT b || '', count(*) FROM t GROUP BY b || '' ORDER BY b || '' LIMIT 3;
SELECT lower(b), count(*) FROM t GROUP BY lower(b) ORDER BY lower(b) DESC LIMIT 2;
CREATE INDEX tb ON t(b || '');
SELECT id, row_number() OVER (ORDER BY b || '', id), count(*) OVER (PARTITION BY b || '') FROM t ORDER BY id;
SELECT b || '' FROM t WHERE b || '' BETWEEN 'a' AND 'é';
