-- One row of VALUES may call aggregates and window functions, and is a query then.
CREATE TABLE t(a, b);
VALUES (count(*), sum(5), 'x');
VALUES (row_number() OVER ());
SELECT * FROM (VALUES (count(*) OVER (), 1));
INSERT INTO t VALUES (1, 2), (3, 4);
SELECT (VALUES (count(*))) FROM t;
SELECT (VALUES (count(a))) FROM t;
SELECT (VALUES (row_number() OVER (ORDER BY a))) FROM t;
UPDATE t SET (a, b) = (VALUES (row_number() OVER (), 1));
SELECT * FROM t;
INSERT INTO t VALUES (count(*), 1);
VALUES (max(1, 2)), (3);
