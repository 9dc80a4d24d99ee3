-- Joins by keys of few values: texts, expressions, NULLs, several matches, none, other affinities.
CREATE TABLE big(id INTEGER PRIMARY KEY, k TEXT, i INTEGER, m, w REAL)
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) INSERT INTO big SELECT x, CASE x % 7 WHEN 0 THEN NULL WHEN 1 THEN 'one' WHEN 2 THEN 'Two' WHEN 3 THEN '3' WHEN 4 THEN '' WHEN 5 THEN 'five ' ELSE x % 3 END, x % 5, CASE x % 6 WHEN 0 THEN NULL WHEN 1 THEN 1 WHEN 2 THEN '1' WHEN 3 THEN 1.5 WHEN 4 THEN x'31' ELSE 'one' END, x / 7.0 FROM n
CREATE TABLE names(name TEXT, kind)
INSERT INTO names VALUES ('one', 'a'), ('one', 'b'), ('two', 'c'), ('3', 'd'), ('', 'e'), (NULL, 'f'), ('1', 'g'), ('five', 'h')
CREATE TABLE mixed(m, kind)
INSERT INTO mixed VALUES (1, 'int'), ('1', 'text'), (1.5, 'real'), (x'31', 'blob'), ('one', 'word'), (NULL, 'null'), (1, 'again')
SELECT n.kind, count(*), min(b.id), max(b.id) FROM big b JOIN names n ON b.k = n.name GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*), min(b.id) FROM big b JOIN names n ON lower(trim(b.k)) = n.name GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*), sum(b.i) FROM big b LEFT JOIN names n ON coalesce(b.k, '') = n.name GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*) FROM big b LEFT JOIN names n ON b.k = n.name AND n.kind < 'd' GROUP BY n.kind ORDER BY 1
SELECT x.kind, count(*) FROM big b JOIN mixed x ON b.m = x.m GROUP BY x.kind ORDER BY 1
SELECT x.kind, count(*) FROM big b JOIN mixed x ON b.k = x.m GROUP BY x.kind ORDER BY 1
SELECT n.kind, count(*) FROM big b JOIN names n ON b.i = n.name GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*) FROM big b JOIN names n ON b.i + 1 = n.name GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*) FROM big b JOIN names n ON CASE WHEN b.i > 2 THEN 'one' WHEN b.i > 1 THEN '3' END = n.name WHERE b.id < 4000 GROUP BY n.kind ORDER BY 1
SELECT n.kind, count(*) FROM big b JOIN names n ON b.k = n.name JOIN mixed x ON b.m = x.m GROUP BY n.kind ORDER BY 1
SELECT count(*), sum(b.id) FROM big b JOIN names n ON b.k = n.name COLLATE NOCASE
-- Sums that stock takes in the order of an index.
CREATE TABLE wide(id INTEGER PRIMARY KEY, g INTEGER, v INTEGER, r REAL, c REAL)
INSERT INTO wide SELECT id, id % 3, (id * 2654435761 % 4294967296 - 2147483648) * 4294967296 + id, w * 1e6, id / 100.0 FROM big
CREATE INDEX wide_v ON wide(v)
CREATE INDEX wide_r ON wide(r, c)
CREATE INDEX wide_gv ON wide(g, v)
SELECT avg(v), total(v), count(v) FROM wide
SELECT avg(r), sum(r), total(c), avg(c), sum(c) FROM wide
SELECT g, avg(v), total(v), count(*) FROM wide GROUP BY g
SELECT g, sum(v % 1000), avg(v / 2) FROM wide GROUP BY g
SELECT avg(v), sum(r) FROM wide WHERE v > 0 AND v < 4611686018427387904
SELECT sum(v) FROM wide WHERE v BETWEEN -100000000000 AND 100000000000
SELECT sum(v) FROM wide
SELECT sum(r), avg(r) FROM wide WHERE r IS NULL
SELECT sum(c) FILTER (WHERE c > 10), avg(r) FILTER (WHERE g = 1) FROM wide
INSERT INTO wide VALUES (9001, 0, 1, 1e308, 1), (9002, 0, 2, 1e308, 1), (9003, 0, 3, -1e308, 1)
SELECT sum(r), avg(r) FROM wide
UPDATE wide SET r = 9e999 WHERE id = 5
SELECT sum(r), total(r) FROM wide
