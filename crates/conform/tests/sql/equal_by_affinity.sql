-- Values that are equal to a constant once they are converted are not all one value: they have an order, and are groups of their own.
CREATE TABLE t(id INTEGER PRIMARY KEY, n INT);
CREATE TABLE u(id INTEGER PRIMARY KEY, v);
INSERT INTO t VALUES (1, 7), (2, 7);
INSERT INTO u VALUES (1, '7'), (2, 7), (3, '07'), (4, 7.0), (5, '7');
SELECT t.id, u.id, v FROM t CROSS JOIN u ON n = v AND n = 7 ORDER BY v, u.id, t.id;
SELECT t.id, u.id, v FROM t CROSS JOIN u ON n = v AND n = 7 ORDER BY v DESC, u.id, t.id LIMIT 3;
SELECT id, v FROM u WHERE v = CAST(7 AS TEXT) ORDER BY v, id;
SELECT quote(v), count(*) FROM u WHERE v = CAST(7 AS TEXT) GROUP BY v ORDER BY 1;
