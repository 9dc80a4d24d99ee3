CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c);
CREATE INDEX ta ON t(a, b);
CREATE INDEX tb ON t(b, a);
CREATE TABLE w(a INT, b TEXT, c INT, d INT, PRIMARY KEY(a, b)) WITHOUT ROWID;
CREATE INDEX wc ON w(c);
CREATE INDEX wd ON w(d, c);

SELECT a, b FROM w WHERE c = 1 OR d = 2;
SELECT c FROM w WHERE c = 1 OR d = 2;
SELECT count(*) FROM w WHERE c = 1 AND b = 'x' OR d = 2;
SELECT a FROM w WHERE c = 1 AND d = 2 OR a = 5 AND b = 3 OR d = 6;
SELECT a, b FROM t WHERE a = 1 OR b = 2;
SELECT count(*) FROM t WHERE a = 1 OR b = 2;
SELECT * FROM t WHERE a = 1 OR b = 2;
SELECT t.a FROM w LEFT JOIN t ON t.a = w.c OR t.b = w.d;
DELETE FROM w WHERE c = 1 OR d = 2;
UPDATE t SET c = 1 WHERE a = 1 OR b = 2;
