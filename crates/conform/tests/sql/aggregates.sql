-- What stands beside an extreme of distinct values: rows with a value that was there before go with the last one looked at.
CREATE TABLE t(a, b);
INSERT INTO t VALUES (1, 5), (2, 9), (3, 9), (4, 1), (5, 1), (6, 3);
SELECT a, max(DISTINCT b) FROM t;
SELECT a, min(DISTINCT b) FROM t;
SELECT a, max(b) FROM t;
SELECT a, max(DISTINCT b) FILTER (WHERE a > 1) FROM t;
-- A table with empty parentheses behind IN is the table.
CREATE TABLE o(x);
INSERT INTO o VALUES (1), (3);
SELECT a IN o(), a IN main.o() FROM t;
SELECT 1 IN json_each();
