-- A set behind a key's first column, where that is NULL in each row of the outer table.
CREATE TABLE t1(a, e);
CREATE TABLE t2(a, b, PRIMARY KEY (a, b DESC));
INSERT INTO t1 VALUES ('z', NULL), ('y', NULL);
INSERT INTO t2 VALUES (1, 2), (2, 3);
SELECT * FROM t1 LEFT JOIN t2 ON t1.e = t2.a AND t2.b IN (1, 2, 3);
SELECT * FROM t1 FULL JOIN t2 ON t1.e = t2.a AND t2.b IN (SELECT 2);
INSERT INTO t1 VALUES ('x', 1);
SELECT * FROM t1 LEFT JOIN t2 ON t1.e = t2.a AND t2.b IN (1, 2, 3);
