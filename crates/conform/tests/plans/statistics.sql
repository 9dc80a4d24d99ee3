CREATE TABLE people(name TEXT PRIMARY KEY, role TEXT NOT NULL, height INT);
CREATE INDEX rh ON people(role, height);
CREATE TABLE few(a INT, b INT, c INT, d INT);
CREATE INDEX fabc ON few(a, b, c);
CREATE TABLE big(x INT, y INT, z INT);
CREATE TABLE small(p INT, q INT);
WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO people SELECT 'n' || i, CASE i % 2 WHEN 0 THEN 'student' ELSE 'teacher' END, 140 + i % 60 FROM n;
WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO few SELECT i % 2, i % 3, i, i FROM n;
WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO big SELECT i, i % 100, i FROM n;
INSERT INTO small VALUES (1, 2), (3, 4);
ANALYZE;

-- Fields of few values are passed over.
SELECT name FROM people WHERE height >= 180
SELECT name FROM people WHERE height = 180
SELECT name FROM people WHERE height IN (180, 190)
SELECT name FROM people WHERE height BETWEEN 180 AND 182 ORDER BY role DESC, height DESC
SELECT count(*) FROM few WHERE c = 5
SELECT count(*) FROM few WHERE b = 1 AND c = 5
SELECT d FROM few WHERE b = 1
DELETE FROM people WHERE height = 181
UPDATE people SET name = name || 'x' WHERE height = 181
-- Nested queries that depend on others have automatic indexes where they run often.
SELECT (SELECT z FROM big WHERE y = x1.z) FROM big AS x1
SELECT (SELECT z FROM big WHERE y = p) FROM small
SELECT x FROM big AS b1 WHERE NOT EXISTS (SELECT 1 FROM big WHERE y = b1.z)
SELECT x FROM big AS b1 WHERE x = (SELECT max(x) FROM big WHERE y = b1.z)
SELECT x FROM big WHERE x = (SELECT max(x) FROM big WHERE y = 5)
