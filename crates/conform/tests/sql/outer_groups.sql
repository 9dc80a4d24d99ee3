-- An index made for one run leaves rows out by conditions on its own table alone; the aggregate of a query around is another with each group.
CREATE TABLE a(x, y);
CREATE TABLE b(id INTEGER PRIMARY KEY, x, y);
INSERT INTO a VALUES (1, 3), (1, 4);
INSERT INTO b VALUES (1, 5, 'b'), (2, 3, NULL), (3, NULL, 0), (4, 2, 1), (5, 11, 7), (6, 9, 0), (7, 11, 6), (8, 4, 0), (9, 3, 6), (10, 1, 10), (11, 1, 12);
SELECT x, max(y), (SELECT count(*) FROM a AS h JOIN b AS h2 ON h2.x = h.x AND h2.id > max(o.x)) AS n FROM b AS o GROUP BY x ORDER BY x;
SELECT x FROM b AS o GROUP BY x HAVING (SELECT count(*) FROM a AS h JOIN b AS h2 ON h2.x = h.x AND h2.id > max(o.x)) > 2 ORDER BY x;
SELECT x FROM b AS o GROUP BY x HAVING (SELECT count(*) FROM a AS h LEFT JOIN b AS h2 ON h2.x = h.x AND h2.id > max(o.x)) > 2 ORDER BY x;
SELECT x FROM b AS o GROUP BY x HAVING (SELECT count(*) FROM a AS h LEFT JOIN b AS h2 ON h2.x = h.x AND sum(o.id) > 9) > 2 ORDER BY x;
