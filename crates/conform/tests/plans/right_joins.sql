CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b INT, c TEXT);
CREATE INDEX ta ON t(a);
CREATE TABLE u(id INTEGER PRIMARY KEY, x INT, y INT, c TEXT);
CREATE INDEX uxy ON u(x, y);
CREATE TABLE v(id INTEGER PRIMARY KEY, a INT, b INT, c TEXT);
CREATE TABLE w(k TEXT PRIMARY KEY, a INT, b INT, s TEXT) WITHOUT ROWID;
CREATE INDEX ws ON w(lower(s));
CREATE INDEX wab ON w(b) WHERE a = 7;
CREATE INDEX wm ON w(a % 10, b);
CREATE TABLE d(id INTEGER PRIMARY KEY, b INT, c TEXT);
CREATE INDEX dbc ON d(b DESC, c);

-- How rows without a match are found.
SELECT count(*) FROM t FULL JOIN u ON u.x = t.b
SELECT u.c FROM t FULL JOIN u ON u.x = t.b
SELECT count(*) FROM t RIGHT JOIN u ON u.x = t.b WHERE u.x IS NULL
SELECT count(*) FROM t RIGHT JOIN w ON w.k = t.c
SELECT u.y FROM t RIGHT JOIN u ON u.y = t.b
-- What comes behind the last RIGHT JOIN moves, what stands before it does not.
SELECT count(*) FROM t FULL JOIN u ON u.x = t.b, v, v AS z WHERE z.id = 5
SELECT count(*) FROM t, v FULL JOIN u ON u.x = t.b WHERE u.y IS NULL
SELECT count(*) FROM t LEFT JOIN v ON v.id = t.a FULL JOIN u ON u.x = t.b JOIN v AS z ON z.id = t.b
-- Conditions of inner joins behind the last RIGHT JOIN reject rows of NULLs.
SELECT count(*) FROM t FULL JOIN u ON u.id = t.b JOIN v ON v.id = u.y
SELECT count(*) FROM t LEFT JOIN v ON v.id = t.a FULL JOIN u ON u.id = t.b JOIN v AS z ON z.id = v.a
-- One that has become inner makes no other so.
SELECT count(*) FROM t LEFT JOIN u ON u.id = t.a LEFT JOIN v ON v.id = u.y WHERE v.c = 'c'
SELECT count(*) FROM t FULL JOIN u ON u.id = t.a LEFT JOIN v ON v.id = u.y WHERE v.c = 'c'
-- Expressions and conditions that an index of a WITHOUT ROWID table holds.
SELECT lower(s) FROM w ORDER BY lower(s)
SELECT k, lower(s) FROM w WHERE lower(s) > 'm'
SELECT s, lower(s) FROM w WHERE lower(s) > 'm'
SELECT k, b FROM w WHERE a = 7 AND b > 3
SELECT a % 10, sum(b) FROM w GROUP BY a % 10
-- Rows of IN over fields of several directions.
SELECT id FROM d WHERE (b, c) IN (SELECT x, c FROM u)
SELECT id FROM d WHERE (b, c) IN (SELECT x, c FROM u) ORDER BY b DESC
-- One value of IN at a time, backwards.
SELECT id FROM d WHERE b IN (1, 2, 3) ORDER BY c DESC
