-- The outermost loop of a nested query goes along an automatic index: it is made once, and not again within the loop.
CREATE TABLE t(id INTEGER PRIMARY KEY, v INT) WITHOUT ROWID;
CREATE TABLE u(id INTEGER PRIMARY KEY, v);
INSERT INTO u VALUES (1, 9), (2, 2), (3, 6), (4, 0), (5, 'b'), (6, NULL), (7, NULL), (8, 8), (9, 0);
CREATE VIEW w AS SELECT id, +v AS v FROM u UNION ALL SELECT id, +v FROM t;
SELECT x.id, x.v FROM w AS x JOIN u AS y ON x.v = y.id AND EXISTS (SELECT 1 FROM w AS p JOIN w AS q ON p.id = q.id AND p.v >= 5 WHERE q.id = x.id) ORDER BY 1;
SELECT count(*), max(x.v) FROM w AS x JOIN u AS y ON x.v = y.id AND EXISTS (SELECT 1 FROM w AS p LEFT JOIN w AS q ON p.id = q.id AND p.v >= 5 WHERE q.id = x.id);
