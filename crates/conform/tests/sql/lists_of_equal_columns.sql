-- A list that a column is in holds of the columns that equal it, as they are compared.
CREATE TABLE a(id INTEGER PRIMARY KEY, b INT, s TEXT, x);
CREATE TABLE b(id INTEGER PRIMARY KEY, c INT, s TEXT COLLATE NOCASE, x);
CREATE TABLE c(id INTEGER PRIMARY KEY, b INT, s TEXT, n REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO a SELECT i, i * 7 % 60, iif(i % 2, 'k', 'K') || i % 9, CASE i % 3 WHEN 0 THEN i % 20 WHEN 1 THEN '' || i % 20 ELSE i % 20 / 1.0 END FROM n;
INSERT INTO b SELECT id, b, s, x FROM a WHERE id < 61;
INSERT INTO c SELECT id, nullif(id * 11 % 61, 5), s, x FROM a;
CREATE INDEX cb ON c(b);
SELECT count(*), sum(a.id), sum(c.id) FROM a JOIN b ON a.b = b.id JOIN c ON c.b = b.id WHERE c.b IN (3, 9, 40) AND c.s > 'k';
SELECT count(*), sum(a.id), sum(c.id) FROM a LEFT JOIN b ON a.b = b.id JOIN c ON c.b = b.id WHERE c.b IN (3, 9, '40', 17.0, NULL);
SELECT count(*), sum(a.id), sum(c.id) FROM a CROSS JOIN b ON a.b = b.id CROSS JOIN c ON c.b = b.id WHERE c.b IN (3, 9, 40) AND c.n > 2;
SELECT count(*), sum(a.id), sum(c.id) FROM a CROSS JOIN b ON a.b = b.id CROSS JOIN c ON c.b = b.id WHERE c.b NOT IN (3, 9, 40);
SELECT count(*), sum(a.id), sum(c.id) FROM a CROSS JOIN b ON a.s = b.s CROSS JOIN c ON c.s = a.s WHERE c.s IN ('k1', 'K4');
SELECT count(*), sum(a.id), sum(c.id) FROM a CROSS JOIN c ON c.s = a.s WHERE c.s IN ('k1', 'K4') COLLATE NOCASE;
SELECT count(*), sum(a.id), sum(b.id) FROM a CROSS JOIN b ON b.x = a.x WHERE b.x IN (1, '2', 3.0);
SELECT count(*), sum(a.id), sum(c.id) FROM a CROSS JOIN c ON c.n = a.b WHERE c.n IN (1, '2', 3.0);
SELECT count(*), sum(a.id), sum(c.id), sum(b.id) FROM a CROSS JOIN c ON c.n = a.b LEFT JOIN b ON b.id = a.b AND b.id IN (1, 2) WHERE c.n IN (1, 2, 3);
SELECT count(*), sum(a.id), sum(c.id) FROM a FULL JOIN c ON c.b = a.b WHERE c.b IN (3, 9) OR a.b IN (7);
