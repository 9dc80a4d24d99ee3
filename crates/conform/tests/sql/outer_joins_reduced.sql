-- A LEFT JOIN that changes nothing may name an index; one that cannot serve is an error all the same.
CREATE TABLE a(id INTEGER PRIMARY KEY, k TEXT, n INT);
CREATE TABLE b(id INTEGER PRIMARY KEY, a INT UNIQUE, v REAL);
INSERT INTO a VALUES (1, 'x', 5), (2, 'x', 6), (3, 'y', NULL);
INSERT INTO b VALUES (1, 1, 2.5), (2, 3, 3.5), (3, NULL, 1);
CREATE INDEX bv ON b(v);
CREATE INDEX bp ON b(a) WHERE v > 3;
SELECT DISTINCT a.k FROM a LEFT JOIN b INDEXED BY bv ON b.a = a.id ORDER BY 1;
SELECT a.k, a.n FROM a LEFT JOIN b INDEXED BY bv ON b.a = a.id ORDER BY 1, 2;
SELECT DISTINCT a.k FROM a LEFT JOIN b NOT INDEXED ON b.v = a.n ORDER BY 1;
SELECT DISTINCT a.k FROM a LEFT JOIN b INDEXED BY bp ON b.a = a.id ORDER BY 1;
SELECT DISTINCT a.k FROM a LEFT JOIN b INDEXED BY none ON b.a = a.id ORDER BY 1;
SELECT DISTINCT a.k FROM a LEFT JOIN b INDEXED BY bv ON b.v > a.n ORDER BY 1 LIMIT 1;
SELECT count(*), sum(v) FROM a LEFT JOIN b ON b.a = a.id WHERE NOT (b.v > 3 OR b.v < 1);
SELECT count(*), sum(v) FROM a LEFT JOIN b ON b.a = a.id WHERE NOT (b.v > 3 AND b.a < 9);
SELECT count(*), sum(v) FROM a LEFT JOIN b ON b.a = a.id WHERE NOT (b.v > 3 AND a.n > 5);
SELECT count(*), sum(v) FROM a LEFT JOIN b ON b.a = a.id WHERE NOT (b.v > 3 OR b.a IS 1);
SELECT count(*), sum(v), count(*) FILTER (WHERE n IS NULL) FROM a FULL JOIN b ON b.a = a.id WHERE NOT (a.n > 5 OR a.k = 'x');
