-- Automatic indexes are made when their loop is first entered, in order: rows that are equal in what is sought keep theirs.
CREATE TABLE a(x, y);
CREATE TABLE b(x, y, z TEXT);
INSERT INTO a VALUES (1, 'p'), (2, 'q'), (NULL, 'r'), (1.0, 's'), ('1', 't');
INSERT INTO b VALUES (1, 3, 'c'), (1, 1, 'a'), (1.0, 2, 'b'), ('1', 0, 'd'), (NULL, 9, 'n'), (2, 5, 'e'), (1, NULL, 'f');
SELECT a.y, b.z FROM a CROSS JOIN b ON a.x = b.x ORDER BY a.y, b.z;
SELECT a.y, b.z FROM a LEFT JOIN b ON a.x = b.x AND b.z <> 'a' ORDER BY a.y, b.z;
SELECT a.y, (SELECT group_concat(z, '') FROM (SELECT z FROM b WHERE b.x = a.x ORDER BY z)) FROM a ORDER BY 1;
-- A filter of an index that nobody has made yet lets all rows pass.
CREATE TABLE c(k, v);
INSERT INTO c VALUES ('p', 1), ('q', 2), ('s', 3);
SELECT a.y, c.v, b.z FROM a CROSS JOIN c CROSS JOIN b ON a.y = c.k AND b.x = a.x ORDER BY 1, 2, 3;
SELECT a.y, b.z FROM a CROSS JOIN b ON b.x = a.x CROSS JOIN c ON c.k = a.y AND c.v > 1 ORDER BY 1, 2;
DELETE FROM b;
SELECT a.y, b.z FROM a LEFT JOIN b ON a.x = b.x ORDER BY 1;
SELECT count(*) FROM a CROSS JOIN c CROSS JOIN b ON a.x = b.x;
-- Sorts by several keys of few values: each of them decides in turn, and ties stay as they came.
CREATE TABLE s(i INTEGER PRIMARY KEY, g, h, t TEXT COLLATE NOCASE);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO s SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 1 WHEN 2 THEN 1.0 WHEN 3 THEN 'aaaaaaa' ELSE 'aaaaaaa' || char(0) END, CASE i % 4 WHEN 0 THEN 281474976710656 WHEN 1 THEN 281474976710657 WHEN 2 THEN -0.0 ELSE 0 END, CASE i % 3 WHEN 0 THEN 'X' ELSE 'x' END FROM n;
SELECT group_concat(i) FROM (SELECT i FROM s ORDER BY g, h, t);
SELECT group_concat(i) FROM (SELECT i FROM s ORDER BY g DESC, h, t DESC);
SELECT group_concat(i) FROM (SELECT i FROM s ORDER BY g NULLS LAST, t, h DESC);
SELECT group_concat(i) FROM (SELECT i FROM s ORDER BY h, g);
CREATE UNIQUE INDEX u ON s(g, h, t);
CREATE UNIQUE INDEX u ON s(g, h, i);
DELETE FROM s WHERE i > 20;
CREATE UNIQUE INDEX w ON s(h, t, g);
-- So do the keys behind many that are alike.
CREATE TABLE m(i INTEGER PRIMARY KEY, a, b);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) INSERT INTO m SELECT i, 'same', i * 7 % 5 FROM n;
SELECT group_concat(i) FROM (SELECT i FROM m ORDER BY a, a || 1, a || 2, a || 3, a || 4, a || 5, a || 6, a || 7, a || 8, a || 9, b, i DESC);
CREATE TABLE wide(w TEXT, z INT, x INT, id2 INT, y INT, id1 INT, PRIMARY KEY(id1, id2 DESC)) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO wide SELECT 'w' || i * 7 % 31, i * 11 % 17, i % 5, i * 7 % 8, i % 3, i / 3 FROM n;
CREATE TABLE ones(x INT);
INSERT INTO ones VALUES (1), (2), (NULL), (4);
SELECT group_concat(q.w) FROM ones p CROSS JOIN wide q ON p.x = q.x;
SELECT group_concat(q.z) FROM ones p CROSS JOIN wide q ON p.x = q.x;
SELECT group_concat(q.y || q.w) FROM ones p CROSS JOIN wide q ON p.x = q.x;
SELECT group_concat(q.w) FROM ones p CROSS JOIN wide q ON p.x IS q.id2;
SELECT group_concat(q.w) FROM ones p LEFT JOIN wide q ON p.x = q.y AND q.x = p.x;
