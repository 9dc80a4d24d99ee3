-- COLLATE inside the arguments of a call counts for its result, that of an aggregate and of a window function, too.
CREATE TABLE t(a TEXT, n TEXT COLLATE NOCASE);
INSERT INTO t VALUES ('abc', 'abc'), ('ABC', 'ABC'), ('b', 'B');
SELECT lower('ABC' COLLATE NOCASE) = 'ABC';
SELECT total('a' COLLATE NOCASE) x UNION SELECT 'abc' UNION SELECT 'ABC';
SELECT max('a' COLLATE NOCASE) x UNION SELECT 'abc' UNION SELECT 'ABC';
SELECT group_concat(a COLLATE NOCASE) = 'ABC,abc,B', group_concat(a) = 'ABC,ABC,B' FROM t;
SELECT 1 FROM t GROUP BY 1 HAVING max(a COLLATE NOCASE) = 'B';
SELECT max(n) = 'b', min(n) = 'aBC' FROM t;
SELECT max(a COLLATE NOCASE) OVER () = 'B' FROM t;
SELECT first_value(a COLLATE NOCASE) OVER (ORDER BY a) = 'abc' FROM t;
SELECT x FROM (SELECT max(a COLLATE NOCASE) x FROM t GROUP BY a) WHERE x = 'B';
SELECT count(a COLLATE NOCASE), sum(a COLLATE NOCASE), max(a COLLATE RTRIM, 'z') FROM t;
SELECT a FROM t GROUP BY a ORDER BY max(a COLLATE NOCASE), a;
