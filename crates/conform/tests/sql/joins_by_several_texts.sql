-- Joins by several columns of few values each: whichever of them becomes the key, all of them count.
CREATE TABLE p(id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT COLLATE NOCASE, n INT);
CREATE TABLE q(id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT COLLATE NOCASE, n INT);
WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 6000) INSERT INTO p SELECT x, 'a' || (x % 4), nullif('b' || (x % 7), 'b6'), substr('xXyY', x % 4 + 1, 1), x % 3 FROM i;
INSERT INTO q SELECT id, b, a, upper(c), n FROM p WHERE id <= 4500;
UPDATE q SET a = 'a' || (id % 5), b = 'b' || (id % 11);
SELECT count(*), sum(p.id), sum(q.id) FROM p JOIN q ON p.a = q.a AND p.b = q.b AND p.c = q.c AND p.n = q.n;
SELECT count(*), sum(p.id) FROM p JOIN q ON p.n = q.n AND p.b = q.b AND p.id = q.id;
SELECT p.a, count(*), max(q.id) FROM p JOIN q ON p.b = q.b AND p.a = q.a WHERE p.id < 40 GROUP BY p.a ORDER BY 1;
SELECT count(*) FROM p LEFT JOIN q ON p.a = q.a AND p.b = q.b AND p.id = q.id WHERE q.id IS NULL;
