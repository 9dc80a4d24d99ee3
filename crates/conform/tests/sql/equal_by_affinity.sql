-- Values that are equal to a constant once they are converted are not all one value: they have an order, and are groups of their own.
CREATE TABLE t(id INTEGER PRIMARY KEY, n INT);
CREATE TABLE u(id INTEGER PRIMARY KEY, v);
INSERT INTO t VALUES (1, 7), (2, 7);
INSERT INTO u VALUES (1, '7'), (2, 7), (3, '07'), (4, 7.0), (5, '7');
SELECT t.id, u.id, v FROM t CROSS JOIN u ON n = v AND n = 7 ORDER BY v, u.id, t.id;
SELECT t.id, u.id, v FROM t CROSS JOIN u ON n = v AND n = 7 ORDER BY v DESC, u.id, t.id LIMIT 3;
SELECT id, v FROM u WHERE v = CAST(7 AS TEXT) ORDER BY v, id;
SELECT quote(v), count(*) FROM u WHERE v = CAST(7 AS TEXT) GROUP BY v ORDER BY 1;
-- A column of texts equals a number as the text that it makes, and so do those that equal the column.
CREATE TABLE a(id INTEGER PRIMARY KEY, t TEXT);
CREATE TABLE b(id INTEGER PRIMARY KEY, x, n NUMERIC);
INSERT INTO a VALUES (1, '11'), (2, '1.5'), (3, '011');
INSERT INTO b VALUES (1, '11', 11), (2, 11, '11'), (3, '1.5', 1.5), (4, 1.5, 7), (5, '011', '011');
SELECT a.id, b.id FROM a JOIN b ON x = t WHERE t = 11 ORDER BY 1, 2;
SELECT a.id, b.id FROM a JOIN b ON t = x WHERE t = 1.5 ORDER BY 1, 2;
SELECT a.id, b.id FROM a JOIN b ON n = t WHERE t = 11 ORDER BY 1, 2;
SELECT a.id, b.id FROM a JOIN b ON x = t WHERE x = 11 ORDER BY 1, 2;
SELECT a.id, b.id FROM a JOIN b ON n = t WHERE n = '011' ORDER BY 1, 2;
SELECT a.id, b.id FROM a LEFT JOIN b ON x = t WHERE t = 11 ORDER BY 1, 2;
