PRAGMA encoding = 'UTF-16le';
CREATE TABLE t(a);
SELECT hex('abc'), octet_length('abc'), quote(CAST('a' AS BLOB)), hex(12);
SELECT CAST(x'3100' AS INTEGER), CAST(x'61006200' AS TEXT), x'6100' || 'b';
INSERT INTO t VALUES ('é'), ('日本');
SELECT x.a < y.a, x.a, y.a FROM t x, t y ORDER BY 1, 2, 3;
SELECT CASE WHEN a < '日本' THEN 1 ELSE 0 END FROM t;
